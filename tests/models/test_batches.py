"""Batched runs against an OpenAI-style batch API on loopback: submitted, collected, resumed and never repeated."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction_lab.cli import main
from compaction_lab.sweep.loading import Run, load_run
from tests.models.batch_server import BatchServer, Outcome, serving
from tests.models.faulty_server import Body, completion
from tests.processes import spawned, wait_for

SECRET = "sk-lab-0123456789abcdef"
FACTS = 6


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with one session, an empty cache and a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPACTION_LAB_CACHE", str(tmp_path / "cache.sqlite"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("LAB_KEY", SECRET)
    talk = [("user", "My code is 8471."), ("assistant", "Noted."), ("user", "Go on."), ("assistant", "Done.")]
    session = {"messages": [{"role": role, "content": text} for role, text in talk]}
    (tmp_path / "talk.jsonl").write_text(json.dumps(session) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with serving() as started:
        yield started


def command(server: BatchServer, *words: str, judge: bool = False, name: str = "batched") -> list[str]:
    line = ["run", "dataset.path=talk.jsonl", f"dataset.planted={FACTS}", "references.enabled=false", "--name", name]
    for part, kind in {"reader": "openai_compatible", **({"judge": "llm"} if judge else {})}.items():
        line += [
            f"{part}={kind}",
            f"{part}.model=gpt-5-mini",
            f"{part}.base_url={server.url}",
            f"{part}.key_variable=LAB_KEY",
            f"{part}.retries=1",
            f"{part}.batch=true",
            f"{part}.batch_poll_s=0.02",
        ]
    return [*line, *words]


def run(name: str = "batched") -> Run:
    return load_run(Path("experiments") / name)


def judged(body: Body) -> Outcome:
    """Answer as the reader, or as the judge of what the reader said."""
    return completion('{"reason": "same", "score": 1}' if "grade" in body["messages"][0]["content"] else "As stated.")


def submitted(server: BatchServer) -> Counter[str]:
    return Counter(
        json.dumps(body, sort_keys=True) for number in range(len(server.batches)) for body in server.lines(number)
    )


def test_readers_and_judges_are_answered_by_batches_and_nothing_else(
    server: BatchServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = judged
    window = ("--arm", "strategy=sliding_window strategy.keep_last=1")
    assert main(command(server, *window, judge=True)) == 0
    said = capsys.readouterr().err
    assert "batch batch_0 of gpt-5-mini: 12 requests submitted" in said
    # A judge is blind to the arm: the same answer to the same question is judged once.
    assert "batch_1 of gpt-5-mini: completed, 6 of 6 requests answered" in said
    probes = run().probes
    assert list(probes["score"]) == [1.0] * 2 * FACTS
    assert set(probes["judge"]) == {"llm:gpt-5-mini"}
    calls = run().calls
    assert calls["purpose"].value_counts().to_dict()["judge"] == 2 * FACTS
    assert calls.loc[calls["purpose"] == "probe", "input_tokens"].eq(100).all()
    assert (server.chats, len(server.batches), max(submitted(server).values())) == (0, 2, 1)
    assert main(command(server, *window, judge=True)) == 0
    assert main([*command(server, *window, judge=True, name="again"), "--existing", "only-cache", "-j", "2"]) == 0
    assert len(server.batches) == 2
    assert run("again").probes["score"].mean() == 1


def test_refused_lines_leave_their_units_owed_and_are_submitted_again(
    server: BatchServer, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def some(body: Body) -> Outcome:
        asked.append(body["messages"][-1]["content"])
        return 500 if len(asked) == 2 else completion()

    server.answer = some
    assert main(command(server)) == 2
    said = capsys.readouterr().err
    assert f"{FACTS - 1} of {FACTS} requests answered; 1 were not" in said
    assert "HTTP 500" in said
    assert "the line was refused" in said
    assert run().coverage.failed == 1
    assert main(command(server)) == 0
    assert [len(server.lines(number)) for number in range(2)] == [FACTS, 1]


def test_an_expired_batch_is_said_and_what_it_answered_is_kept(
    server: BatchServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.ends = "expired"
    assert main(command(server)) == 2
    assert "expired, 3 of 6 requests answered" in capsys.readouterr().err
    server.ends = "completed"
    assert main(command(server)) == 0
    assert [len(server.lines(number)) for number in range(2)] == [FACTS, 3]


def test_a_batch_that_fails_as_a_whole_says_why(server: BatchServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.ends = "failed"
    assert main(command(server)) == 2
    assert "the file is no JSONL" in capsys.readouterr().err


def test_a_prompt_that_does_not_fit_is_a_result_in_a_batch_too(server: BatchServer) -> None:
    long = "This model's maximum context length is 8192 tokens."
    server.answer = lambda _: {"choices": [], "error": {"message": long}}
    assert main(command(server)) == 0
    assert set(run().units["outcome"]) == {"overflow"}
    assert run().probes["score"].isna().all()


@pytest.mark.parametrize("path", ["/files", "/batches", "/batches/batch_0", "/files/file-1"])
def test_passing_faults_of_the_api_are_waited_out(server: BatchServer, path: str) -> None:
    server.refuse = [(path, 503)]
    assert main(command(server)) == 0
    assert len(server.batches) == 1


def test_a_server_that_is_down_while_it_works_costs_nothing(
    server: BatchServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refuse = [("/batches/batch_0", 503)] * 2
    assert main(command(server)) == 2
    assert "HTTP 503" in capsys.readouterr().err
    assert run().coverage.failed == 0
    assert main(command(server)) == 0
    assert len(server.batches) == 1


def test_a_killed_run_goes_on_with_the_batch_it_submitted(
    server: BatchServer, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.looks = 10**6
    process = spawned(command(server), desk)
    wait_for(lambda: bool(server.batches) and server.batches[0]["status"] == "in_progress")
    process.kill()
    process.communicate(timeout=60)
    server.looks = 1
    assert main(command(server)) == 0
    assert "6 of 6 requests answered" in capsys.readouterr().err
    assert len(server.batches) == 1


def test_a_run_killed_while_it_submits_finds_its_batch_at_the_provider(
    server: BatchServer, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.slow_create_s = 5.0
    process = spawned(command(server), desk)
    wait_for(lambda: bool(server.batches))
    process.kill()
    process.communicate(timeout=60)
    server.slow_create_s = 0.0
    server.create({"input_file_id": server.store(b"{}"), "metadata": {}})  # somebody else's, newer
    assert main(command(server)) == 0
    assert "batch_0 of gpt-5-mini: found again" in capsys.readouterr().err
    assert len(server.batches) == 2


def test_a_submission_that_was_never_made_is_made_once(server: BatchServer, desk: Path) -> None:
    server.refuse = [("/batches", 503)] * 2
    assert main(command(server)) == 2
    assert server.batches == []
    process = spawned(command(server), desk)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert len(server.batches) == 1


def test_an_interrupt_leaves_the_batch_at_the_provider(server: BatchServer, desk: Path) -> None:
    server.looks = 10**6
    process = spawned(command(server), desk)
    wait_for(lambda: bool(server.batches) and server.batches[0]["status"] == "in_progress")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "go on with" in said
    server.looks = 1
    assert main(command(server)) == 0
    assert len(server.batches) == 1


def test_two_runs_with_requests_in_common_submit_each_once(server: BatchServer, desk: Path) -> None:
    window = ("--arm", "strategy=sliding_window strategy.keep_last=1")
    processes = [spawned(command(server, name="one"), desk), spawned(command(server, *window, name="two"), desk)]
    for process in processes:
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert set(submitted(server).values()) == {1}
    assert sum(submitted(server).values()) == 2 * FACTS


def test_a_budget_is_kept_by_batches(server: BatchServer, capsys: pytest.CaptureFixture[str]) -> None:
    # Each answer of at most 1,024 tokens could cost 0.002 USD, and costs 0.000065.
    assert main([*command(server), "--max-cost", "0.005"]) == 2
    said = capsys.readouterr().err
    assert "4 batched calls to gpt-5-mini could cost" in said
    assert len(server.lines()) == 2
    assert run().coverage.failed == 0
    assert main([*command(server), "--max-cost", "0"]) == 2
    assert "--max-cost 0 allows no call that costs anything" in capsys.readouterr().err
    assert len(server.batches) == 1
    assert main([*command(server), "--max-cost", "1"]) == 0
    assert [len(server.lines(number)) for number in range(2)] == [2, 4]


def test_what_a_batch_cannot_do_is_refused_at_the_start(
    server: BatchServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(server, "reader.cache=false")) == 1
    assert "reader.cache=false" in capsys.readouterr().err
    assert main(["run", "model=openai_compatible", "model.model=m", "model.batch=true"]) == 1
    assert "model has no key 'batch'" in capsys.readouterr().err
    assert not server.files


def test_the_key_is_in_nothing_that_a_batched_run_writes(
    server: BatchServer, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = lambda body: 500 if "8471" in str(body["messages"][-1]) else completion(f"You are {SECRET}.")
    main(command(server, "-v"))
    assert set(server.keys) == {f"Bearer {SECRET}"}
    out = capsys.readouterr()
    assert SECRET not in out.out + out.err
    for path in desk.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
