"""A run folder loses nothing that was written, whoever dies and however many write."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest

from compaction_lab.errors import StoreError
from compaction_lab.records import Cell, UnitResult
from compaction_lab.sweep import lines
from compaction_lab.sweep.loading import load_run
from compaction_lab.sweep.store import RunStore

FORK = multiprocessing.get_context("fork")
SPAWN = multiprocessing.get_context("spawn")

CELL = Cell("c1", "none", "stub", "data", 0, {"baseline_arm": "none"})
OTHER = Cell("c2", "truncation", "stub", "data", 0, {"baseline_arm": "none"})


def result(tokens: int, calls: int = 2, text: str = "hello") -> UnitResult:
    rows = [
        {"turn": 1, "call": n + 1, "purpose": "agent", "input_tokens": tokens, "output_tokens": 3} for n in range(calls)
    ]
    return UnitResult(calls=rows, messages={text: {"role": "user", "text": text}}, log=[text] * calls)


def written(folder: Path, units: int = 3) -> Path:
    with RunStore.open(folder, create=True) as store:
        store.freeze([CELL, OTHER], {"command": "test"})
        for number in range(units):
            store.write(CELL, f"t{number}", 0, result(number + 1, text=f"text {number + 1}"))
    return folder


def test_a_unit_is_done_when_its_last_row_says_so(tmp_path: Path) -> None:
    with RunStore.open(tmp_path / "run", create=True) as store:
        store.freeze([CELL], {})
        store.write(CELL, "failed then ok", 0, UnitResult("failed", "model said no"))
        store.write(CELL, "overflow", 0, UnitResult("overflow"))
        store.write(CELL, "ok then failed", 0, UnitResult())
        assert ("c1", "ok then failed", 0) in store.done()
        store.write(CELL, "failed then ok", 0, UnitResult())
        store.write(CELL, "ok then failed", 0, UnitResult("failed"))
        assert store.done() == {("c1", "failed then ok", 0), ("c1", "overflow", 0)}


@pytest.mark.parametrize("file", ["units", "calls", "messages"])
def test_a_file_torn_at_any_byte_costs_at_most_its_last_unit(tmp_path: Path, file: str) -> None:
    """A writer dies in the middle of a row; the same work again makes the run whole."""
    whole = written(tmp_path / "whole")
    files = {path.name: path.read_bytes() for path in whole.glob("*.jsonl")}
    last_row = {name: data[:-1].rfind(b"\n") + 1 for name, data in files.items()}
    torn = tmp_path / "torn"
    shutil.copytree(whole, torn)
    for length in range(last_row[f"{file}.jsonl"], len(files[f"{file}.jsonl"])):
        for name, data in files.items():
            (torn / name).write_bytes(data)
        if file != "units":  # the units row comes last, so it is missing as well
            (torn / "units.jsonl").write_bytes(files["units.jsonl"][: last_row["units.jsonl"]])
        (torn / f"{file}.jsonl").write_bytes(files[f"{file}.jsonl"][:length])
        store = RunStore.open(torn, create=False)
        if ("c1", "t2", 0) not in store.done():
            store.write(CELL, "t2", 0, result(3, text="text 3"))
        run = load_run(torn)
        assert {unit: row["input_tokens"] for unit, row in run.unit_rows.items()} == {
            ("c1", f"t{number}", 0): 2 * (number + 1) for number in range(3)
        }
        for number in range(3):
            unit = ("c1", f"t{number}", 0)
            assert [row["input_tokens"] for row in run.unit_rows_of("calls", unit)] == [number + 1] * 2
            assert run.log(unit) == [f"text {number + 1}"] * 2
        assert set(run.messages) == {"text 1", "text 2", "text 3"}
        if length % 50 == 0:
            assert list(run.calls["input_tokens"]) == [1, 1, 2, 2, 3, 3]


def test_messages_are_stored_once(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", units=5)
    written(folder, units=2)
    rows = list(lines.read(folder / "messages.jsonl"))
    assert len(rows) == len({row["sha256"] for row in rows}) == 10  # five messages, five logs


def test_freezing_again_adds_only_what_is_not_shown(tmp_path: Path) -> None:
    changed = Cell("c3", "none", "stub", "data", 0, {"dataset": {"sha256": "other"}})
    with RunStore.open(tmp_path / "run", create=True) as store:
        store.freeze([CELL, OTHER], {"command": "first"})
        store.freeze([CELL, OTHER], {"command": "second"})
        assert len(list(lines.read(tmp_path / "run/cells.jsonl"))) == 2
        store.freeze([changed], {"command": "third"})
        assert [cell.key for cell in store.cells()] == ["c2", "c3"]
        store.freeze([CELL], {"command": "the file is as it was"})
        assert [cell.key for cell in store.cells()] == ["c2", "c1"]
    kept = json.loads((tmp_path / "run/manifest.json").read_text())
    assert kept["command"] == "the file is as it was"
    assert [one["command"] for one in kept["invocations"]][:2] == ["first", "second"]


def write_many(folder: Path, name: str, count: int) -> None:
    with RunStore.open(folder, create=True) as store:
        for number in range(count):
            store.write(CELL, f"{name}-{number}", 0, result(number + 1, calls=5, text=f"text {number % 7} " * 2000))


@pytest.mark.parametrize("context", [FORK, SPAWN], ids=["fork", "spawn"])
def test_processes_append_side_by_side(tmp_path: Path, context: multiprocessing.context.BaseContext) -> None:
    folder = written(tmp_path / "run", units=0)
    workers = [context.Process(target=write_many, args=(folder, name, 40)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    run = load_run(folder)
    assert len(run.units) == 120
    assert len(run.calls) == 600
    assert len(run.messages) == 7
    assert all(lines.decode(line) for file in folder.glob("*.jsonl") for line in file.read_bytes().splitlines())


def claim_and_write(folder: Path, units: list[tuple[str, str, int]], done: multiprocessing.Queue[int]) -> None:
    with RunStore.open(folder, create=True) as store:
        count = 0
        for start in range(0, len(units), 4):
            for _, transcript, trial in store.claim(units[start : start + 4]):
                store.write(CELL, transcript, trial, result(1))
                count += 1
        done.put(count)
        time.sleep(0.2)


def test_two_runs_of_one_name_do_no_unit_twice(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", units=0)
    units = [("c1", f"t{number}", 0) for number in range(200)]
    counts: multiprocessing.Queue[int] = FORK.Queue()
    workers = [FORK.Process(target=claim_and_write, args=(folder, units, counts)) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert sum(counts.get(timeout=60) for _ in workers) == 200
    for worker in workers:
        worker.join()
    assert sum(1 for _ in lines.read(folder / "units.jsonl")) == 200


def hold(folder: Path, ready: multiprocessing.Queue[int]) -> None:
    store = RunStore.open(folder, create=False)
    store.claim([("c1", "t", 0)])
    orphan = os.fork()
    if orphan == 0:  # a worker that outlives its killed parent must not keep the parent's claims alive
        time.sleep(20)
        os._exit(0)
    ready.put(orphan)
    time.sleep(60)


def test_claims_end_with_their_process(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", units=0)
    ready: multiprocessing.Queue[int] = FORK.Queue()
    holder = FORK.Process(target=hold, args=(folder, ready))
    holder.start()
    orphan = ready.get(timeout=30)
    with RunStore.open(folder, create=False) as store:
        assert store.claim([("c1", "t", 0), ("c1", "free", 0)]) == [("c1", "free", 0)]
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGKILL)
        holder.join()
        assert store.claim([("c1", "t", 0)]) == [("c1", "t", 0)]
    os.kill(orphan, signal.SIGKILL)
    assert not list((folder / ".claims").iterdir())


def test_claims_leave_out_what_is_done_unless_it_is_to_be_redone(tmp_path: Path) -> None:
    folder = written(tmp_path / "run")
    with RunStore.open(folder, create=False) as store:
        assert store.claim([("c1", "t0", 0), ("c1", "new", 0), ("c1", "new", 0)]) == [("c1", "new", 0)]
        assert store.claim([("c1", "t0", 0)], redo=True) == [("c1", "t0", 0)]


def write_forever(folder: Path, first: int) -> None:
    with RunStore.open(folder, create=True) as store:
        for number in range(first, 10_000):
            store.write(CELL, f"t{number}", 0, result(number + 1, calls=20, text="x" * 3000 + str(number)))


def test_killed_writers_leave_whole_units_only(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", units=0)
    first = 0
    for attempt in range(6):
        writer = FORK.Process(target=write_forever, args=(folder, first))
        writer.start()
        while sum(1 for _ in lines.read(folder / "units.jsonl")) <= first + attempt:
            time.sleep(0.001)
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        run = load_run(folder)
        first = len(run.units)
        assert len(run.calls) == 20 * first
        assert list(run.units["input_tokens"].sort_values()) == [20 * (number + 1) for number in range(first)]
        assert all(run.log(unit) for unit in run.unit_rows)


def test_a_store_is_not_shared_with_forked_workers(tmp_path: Path) -> None:
    store = RunStore.open(written(tmp_path / "run"), create=False)
    worker = FORK.Process(target=store.write, args=(CELL, "t", 0, result(1)))
    worker.start()
    worker.join()
    assert worker.exitcode == 1
    assert ("c1", "t", 0) not in store.done()


def fill(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = RunStore.open(folder, create=False)
    for number in range(100):
        try:
            store.write(CELL, f"t{number}", 0, result(number + 1))
        except StoreError as error:
            assert "free some space" in str(error)  # noqa: PT017 - runs in a child process
            os._exit(7)


def test_a_full_disk_is_an_error_and_the_next_run_completes(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", units=0)
    worker = FORK.Process(target=fill, args=(folder,))
    worker.start()
    worker.join()
    assert worker.exitcode == 7
    with RunStore.open(folder, create=False) as store:
        owed = store.claim([("c1", f"t{number}", 0) for number in range(30)])
        assert 0 < len(owed) < 30
        for _, transcript, trial in owed:
            store.write(CELL, transcript, trial, result(int(transcript[1:]) + 1))
    assert sorted(load_run(folder).units["input_tokens"]) == [2 * (number + 1) for number in range(30)]


def test_rows_that_are_no_json_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", units=0)
    with RunStore.open(folder, create=False) as store, pytest.raises(StoreError, match="missing number is None"):
        store.write(CELL, "t", 0, UnitResult(calls=[{"purpose": "agent", "latency_s": float("nan")}]))
    assert not (folder / "calls.jsonl").exists()


def test_folders_that_are_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no run here"):
        RunStore.open(tmp_path / "absent", create=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="folder it may write to"):
        RunStore.open(tmp_path / "file", create=True)


def test_surrogates_and_line_separators_survive(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", units=0)
    odd = "a\udcb2b\u2028c\x00\r\n\U0001f600"
    with RunStore.open(folder, create=False) as store:
        store.write(CELL, odd, 0, UnitResult(messages={"m": {"text": odd}}, log=["m"]))
        assert store.done() == {("c1", odd, 0)}
    run = load_run(folder)
    assert run.messages["m"]["text"] == odd
    assert run.units["transcript"][0] == "a\\udcb2b\u2028c\x00\r\n\U0001f600"
