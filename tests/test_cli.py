"""The command line as a user meets it: real commands, real run folders, real interruptions."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction_lab.cli import VERBS, main

SWEEP = ("dataset.path=talk.jsonl", "seed=range(0,4)")
ARMS = (
    "strategy=sliding_window strategy.keep_last=1,2",
    "strategy=truncation strategy.max_tokens=200",
    "strategy=hybrid",
)
COMMAND = ("run", *SWEEP, *(word for line in ARMS for word in ("--arm", line)), "--name", "sweep")
UNITS = 5 * 4 * 3


def talk(turns: int) -> dict[str, object]:
    messages: list[dict[str, object]] = [{"role": "system", "content": "Answer with the tool's figures."}]
    for turn in range(turns):
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "read", "arguments": f'{{"row": {turn}}}'}}
        messages += [
            {"role": "user", "content": f"What stands in row {turn}? " + "Please. " * turn},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": f"row {turn}: " + " ".join(map(str, range(40)))},
            {"role": "assistant", "content": f"Row {turn} begins with 0 and ends with 39."},
        ]
    return {"messages": messages}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working directory with three short conversations in it."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(talk(turns)) for turns in (12, 20, 4)]
    (tmp_path / "talk.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def command(*words: str, folder: Path, start: tuple[str, ...] = ("-m", "compaction_lab")) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    line = [sys.executable, *start, *words]
    return subprocess.Popen(
        line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def exported(run: str, capfdbinary: pytest.CaptureFixture[bytes]) -> dict[str, bytes]:
    capfdbinary.readouterr()
    tables = {}
    for table in ("calls", "turns", "compactions", "probes", "units"):
        assert main(["export", run, "--table", table]) == 0
        tables[table] = capfdbinary.readouterr().out
    return tables


def stored_units(folder: Path) -> list[tuple[object, ...]]:
    path = folder / "experiments" / "sweep" / "units.jsonl"
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_bytes().splitlines() if line.endswith(b"}")]
    return [(row["cell"], row["transcript"], row["trial"]) for row in rows]


def wait_for_rows(process: subprocess.Popen[str], folder: Path, more: int) -> None:
    """Wait until a run has stored some more units, or ended."""
    wanted = len(stored_units(folder)) + more
    while process.poll() is None and len(stored_units(folder)) < wanted:
        time.sleep(0.005)


@pytest.fixture
def running(desk: Path) -> Iterator[subprocess.Popen[str]]:
    process = command(*COMMAND, folder=desk)
    wait_for_rows(process, desk, 3)
    yield process
    if process.poll() is None:
        process.kill()
        process.communicate()


def test_a_run_ends_with_its_table_and_the_same_command_again_does_nothing(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(list(COMMAND)) == 0
    table = capsys.readouterr().out
    assert "none " in table
    assert f"planned {UNITS}, ran {UNITS}, failed 0" in table
    assert "Run: experiments/sweep" in table
    assert max(map(len, table.splitlines())) <= 80
    before = {path: path.read_bytes() for path in (desk / "experiments" / "sweep").glob("*.json*")}
    assert main(list(COMMAND)) == 0
    again = capsys.readouterr()
    assert f"nothing to do: all {UNITS} units of sweep are stored" in again.err
    assert again.out == table
    assert before == {path: path.read_bytes() for path in before}
    assert main(["list"]) == 0
    assert "sweep" in capsys.readouterr().out


def test_more_cells_are_added_to_a_run_of_that_name(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "dataset.path=talk.jsonl", "strategy=hybrid", "--name", "grow"]) == 0
    assert (
        main(
            [
                "run",
                "dataset.path=talk.jsonl",
                "strategy=truncation",
                "strategy.max_tokens=200,300",
                "--name",
                "grow",
                "--json",
            ]
        )
        == 0
    )
    result = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert result["units"] == {"planned": 9, "done_before": 3, "ran": 6, "failed": 0, "owed": 0}
    assert [row["arm"] for row in result["table"]] == [
        "none",
        "hybrid",
        "truncation max_tokens=200",
        "truncation max_tokens=300",
    ]
    assert (desk / "experiments" / "grow" / "manifest.json").exists()


def test_equal_cells_export_equal_bytes_wherever_and_however_they_ran(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(list(COMMAND)) == 0
    here = exported("sweep", capfdbinary)
    (desk / "there").mkdir()
    monkeypatch.chdir(desk / "there")
    (desk / "there" / "talk.jsonl").write_bytes((desk / "talk.jsonl").read_bytes())
    assert main([*COMMAND, "-j", "2"]) == 0
    assert exported("sweep", capfdbinary) == here


def test_killed_at_random_moments_and_resumed_a_run_is_the_same(
    desk: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    moments = random.Random(7)  # noqa: S311 - it chooses when to kill
    kills = 0
    while len(set(stored_units(desk))) < UNITS - 6 and kills < 10:
        process = command(*COMMAND, folder=desk)
        wait_for_rows(process, desk, moments.randint(1, 5))
        time.sleep(moments.uniform(0, 0.03))
        process.kill()
        process.communicate()
        kills += 1
    assert kills >= 5
    code, _, err = finish(command(*COMMAND, folder=desk))
    assert (code, err.count("Traceback")) == (0, 0)
    interrupted = exported("sweep", capfdbinary)
    assert main([*COMMAND[:-1], "whole"]) == 0
    assert exported("whole", capfdbinary) == interrupted


JUMPING = """
import itertools, runpy, sys, time
real, jumps = time.time, itertools.cycle((0, 86_400, -86_400, 3, -7))
time.time = lambda: real() + next(jumps)
if __name__ == "__main__":  # workers start from this file too
    runpy.run_module("compaction_lab", run_name="__main__")
"""


def test_a_clock_that_jumps_changes_nothing(desk: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (desk / "jumping.py").write_text(JUMPING)
    process = command(*COMMAND, folder=desk, start=("jumping.py",))
    wait_for_rows(process, desk, 5)
    process.kill()
    process.communicate()
    code, _, err = finish(command(*COMMAND, "-j", "2", folder=desk, start=("jumping.py",)))
    assert (code, err.count("Traceback")) == (0, 0)
    jumped = exported("sweep", capfdbinary)
    assert main([*COMMAND[:-1], "whole"]) == 0
    assert exported("whole", capfdbinary) == jumped


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_exits_with_130_and_the_command_that_resumes(
    desk: Path, running: subprocess.Popen[str], number: signal.Signals
) -> None:
    running.send_signal(number)
    code, out, err = finish(running)
    assert code == 130
    assert "Traceback" not in err
    assert "Run: experiments/sweep" in out
    assert "still owed; go on with" in err
    assert "compaction-lab run dataset.path=talk.jsonl" in err
    assert main(list(COMMAND)) == 0
    assert len(stored_units(desk)) == len(set(stored_units(desk))) == UNITS


def test_an_interrupt_reaches_worker_processes_too(desk: Path) -> None:
    process = command(*COMMAND, "-j", "2", folder=desk)
    wait_for_rows(process, desk, 2)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code in {0, 130}
    assert "Traceback" not in err
    assert main(list(COMMAND)) == 0
    assert len(stored_units(desk)) == len(set(stored_units(desk))) == UNITS


def test_two_runs_of_one_name_share_the_work(desk: Path, running: subprocess.Popen[str]) -> None:
    other = command(*COMMAND, folder=desk)
    assert finish(other)[0] == 0
    assert finish(running)[0] == 0
    assert len(stored_units(desk)) == len(set(stored_units(desk))) == UNITS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rnu"], ["no verb", "Did you mean run"]),
        (["run", "--exsting", "never"], ["Did you mean --existing"]),
        (["run", "strategy=truncatoin"], ["Did you mean truncation"]),
        (["run", "strategy=sliding_window", "strategy.keep=1"], ["Did you mean keep_last"]),
        (["run", "sed=1"], ["Did you mean seed"]),
        (["run", "dataset.path=bad.jsonl"], ["bad.jsonl", "2", "role"]),
        (["run", "dataset.path=empty.jsonl"], ["empty.jsonl"]),
        (["run", "-j", "0"], ["at least 1"]),
        (["run", "--max-error-rate", "7"], ["between 0 and 1"]),
        (["plan", "seed="], ["no value"]),
        (["show", "nothing"], ["nothing"]),
        (["list", "seed=1"], ["does not take"]),
        (["options", "strategie"], ["Did you mean strategy"]),
        (["compact", "talk.jsonl", "seed=1"], ["takes a strategy"]),
        (["compact", "talk.jsonl", "strategy=hybrid"], ["not JSON"]),
        (["compact", "wizard.json", "strategy=hybrid"], ["wizard.json: messages[1]", "role"]),
        (["import", "bad.jsonl", "--out", "out"], ["bad.jsonl", "role"]),
    ],
)
def test_what_is_refused_exits_with_1_says_why_and_writes_nothing(
    desk: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: list[str]
) -> None:
    (desk / "empty.jsonl").write_bytes(b"")
    bad = [{"role": "user", "content": "hi"}, {"role": "wizard", "content": "hello"}]
    lines = [json.dumps(talk(2)), json.dumps({"messages": bad})]
    (desk / "bad.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (desk / "wizard.json").write_text(json.dumps(bad), encoding="utf-8")
    before = sorted(desk.rglob("*"))
    assert main(words) == 1
    message = capsys.readouterr().err
    for part in expected:
        assert part in message
    assert sorted(desk.rglob("*")) == before


def test_bad_records_can_be_skipped_and_are_counted(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps(talk(2)), json.dumps({"messages": [{"role": "wizard", "content": "hello"}]})]
    (desk / "bad.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["run", "dataset.path=bad.jsonl", "--on-error", "skip", "strategy=hybrid"]) == 0
    captured = capsys.readouterr()
    assert "skipped 1 record" in captured.err
    assert captured.err.count("bad.jsonl, line 2") == 1
    assert "planned 2, ran 2" in captured.out


def test_what_is_odd_but_accepted_is_counted(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    (desk / "odd.jsonl").write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    assert main(["run", "dataset.path=odd.jsonl"]) == 0
    assert "odd: accepted 1 x unanswered_call" in capsys.readouterr().err


@pytest.mark.usefixtures("desk")
def test_an_output_that_cannot_be_written_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "dataset.path=talk.jsonl", "--name", "n" * 300]) == 1
    assert "too long" in capsys.readouterr().err


def test_flags_may_stand_anywhere_and_m_is_accepted(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "-m", "strategy=sliding_window", "--json", "strategy.keep_last=1,2", "--name", "x", *SWEEP]
    assert main(words) == 0
    planned = json.loads(capsys.readouterr().out)
    assert (planned["run"], planned["units"]["owed"], planned["spent_usd"]) == ("x", 36, 0)
    assert planned["calls"] > 0
    assert not (desk / "experiments").exists()


@pytest.mark.usefixtures("desk")
def test_one_call_is_shown_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["run", "dataset.path=talk.jsonl", "strategy=sliding_window", "strategy.keep_last=1", "-q", "--name", "w"])
        == 0
    )
    assert main(["show", "w"]) == 0
    capsys.readouterr()
    assert main(["show", "w", "--unit", "sliding_window keep_last=1/talk:3", "--call", "7"]) == 0
    before, _, after = capsys.readouterr().out.partition("=== after")
    assert "row 0" in before
    assert "row 0" not in after
    assert "row 3" in after
    assert main(["show", "w", "--unit", "keep_last"]) == 1
    assert "fits 3 units" in capsys.readouterr().err


def test_a_message_list_is_compacted_once(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (desk / "messages.json").write_text(json.dumps(talk(6)), encoding="utf-8")
    assert main(["compact", "messages.json", "strategy=sliding_window", "strategy.keep_last=1"]) == 0
    captured = capsys.readouterr()
    kept = json.loads(captured.out)
    assert kept[0] == talk(6)["messages"][0]
    assert len(kept) < 25
    assert "25 ->" in captured.err


@pytest.mark.usefixtures("desk")
def test_sessions_are_imported_into_the_labs_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "talk.jsonl", "--out", "own"]) == 0
    assert "3 transcripts" in capsys.readouterr().out
    assert main(["plan", "dataset.path=own/talk.jsonl"]) == 0
    assert "3 transcripts" in capsys.readouterr().out


def test_options_explain_a_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["options", "strategy/sliding_window"]) == 0
    assert "strategy.keep_last=4     complete units" in capsys.readouterr().out
    assert main(["options"]) == 0
    assert "semantic_kernel/hybrid" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [[], *([name] for name in VERBS)])
def test_help_explains_every_verb_without_heavy_imports(verb: list[str]) -> None:
    code = (
        "import sys; from compaction_lab.cli import main; code = main([*sys.argv[1:], '--help']);"
        "heavy = {'pandas', 'numpy', 'hydra', 'matplotlib', 'scipy', 'tiktoken', 'openai'} & set(sys.modules);"
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *verb], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "examples:" in done.stdout


def test_hydras_own_front_door_writes_the_same_store(desk: Path) -> None:
    pytest.importorskip("hydra")
    words = [
        "-m",
        "dataset=recorded",
        "dataset.path=talk.jsonl",
        "strategy=sliding_window",
        "strategy.keep_last=1,2",
        "name=sweep",
    ]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "compaction_lab.hydra_app", *words],
        cwd=desk,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(stored_units(desk)) == len(set(stored_units(desk))) == 9
