"""Whole runs against an endpoint: nothing lost, nothing asked or counted twice, nothing said that must not be."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction_lab.cli import main
from compaction_lab.sweep.loading import load_run
from tests.models.faulty_server import Body, Fault, FaultyServer, completion, error, running
from tests.processes import spawned, wait_for

SECRET = "sk-lab-0123456789abcdef"
TOO_LONG = Fault(400, error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"))
TURNS = 21


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder with an empty cache and a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPACTION_LAB_CACHE", str(tmp_path / "cache.sqlite"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("LAB_KEY", SECRET)
    return tmp_path


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with running() as started:
        yield started


def command(server: FaultyServer, *words: str, name: str = "real") -> list[str]:
    return [
        "run",
        "dataset=laptop_catalog",
        "dataset.languages=[en]",
        "model=openai_compatible",
        "model.model=gpt-5-mini",
        f"model.base_url={server.url}",
        "model.key_variable=LAB_KEY",
        "model.retries=0",
        "model.timeout_s=2.0",
        "reader=null",
        "--name",
        name,
        *words,
    ]


MASKING = ("--arm", "strategy=sliding_window strategy.keep_last=2")


def outcomes(name: str = "real") -> dict[str, str]:
    units = load_run(Path("experiments") / name).units
    return dict(zip(units["arm"], units["outcome"], strict=True))


def exported(capsys: pytest.CaptureFixture[str], name: str = "real") -> str:
    capsys.readouterr()
    for table in ("calls", "turns", "units", "probes", "compactions"):
        assert main(["export", name, "--table", table]) == 0
    return capsys.readouterr().out


FAULTS = {
    "429": Fault(429, error("slow down")),
    "hang": Fault(hang_s=3.0),
    "malformed": Fault(body='{"choices'),
}
"""Of each kind of failure one: the client's own tests tell every fault from a success and from an overflow."""


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_failed_unit_is_owed_and_resumed_without_asking_twice(server: FaultyServer, fault: Fault) -> None:
    answered = server.answer

    def fail_once(body: Body) -> Body:
        if server.requests == 4:
            server.faults.append(fault)
        return answered(body)

    server.answer = fail_once
    assert main(command(server)) == 2
    run = load_run(Path("experiments/real"))
    assert (run.coverage.failed, len(run.calls)) == (1, 0)
    assert main(command(server)) == 0
    run = load_run(Path("experiments/real"))
    assert (run.coverage.ran, run.coverage.failed, len(run.calls)) == (1, 0, TURNS)
    assert server.requests == TURNS + 1
    assert main(command(server)) == 0
    assert server.requests == TURNS + 1


OWED, OVERFLOWED, DATA = "owed", "overflow", "ok"
KINDS: dict[str, tuple[str, Fault]] = {
    "429 with Retry-After": (OWED, Fault(429, error("slow down"), {"Retry-After": "1"})),
    "429 without": (OWED, Fault(429, error("slow down"))),
    "500": (OWED, Fault(500, error("oops"))),
    "503": (OWED, Fault(503, "<html>unavailable</html>")),
    "connection reset": (OWED, Fault(reset=True)),
    "hang": (OWED, Fault(hang_s=1.5)),
    "truncated stream": (OWED, Fault(cut_after=300)),
    "malformed JSON": (OWED, Fault(body='{"choices')),
    "empty choices": (OWED, Fault(body={**completion(), "choices": []})),
    "wrong model name": (OWED, Fault(404, error("The model `m` does not exist", code="model_not_found"))),
    "too long, OpenAI": (OVERFLOWED, TOO_LONG),
    "too long, Anthropic": (OVERFLOWED, Fault(400, error("prompt is too long: 210034 tokens > 200000 maximum"))),
    "too long, Gemini": (
        OVERFLOWED,
        Fault(400, error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")),
    ),
    "10 MB answer": (DATA, Fault(body=completion("wort " * 2_000_000))),
    "usage missing": (DATA, Fault(body=completion(usage=None))),
    "more cached than sent": (
        DATA,
        Fault(
            body=completion(
                usage={"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 99}}
            )
        ),
    ),
    "empty answer": (DATA, Fault(body=completion(""))),
    "refusal": (DATA, Fault(body=completion("", refusal="I cannot help with that."))),
    "tool call nobody asked for": (
        DATA,
        Fault(body=completion("", tool_calls=[{"id": "c", "function": {"name": "look", "arguments": "{not json"}}])),
    ),
}
PROBES = 3


@pytest.mark.parametrize(("ends", "fault"), KINDS.values(), ids=KINDS)
def test_every_fault_ends_as_what_it_is(server: FaultyServer, desk: Path, ends: str, fault: Fault) -> None:
    session = {"messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello."}] * 3}
    (desk / "talk.jsonl").write_text(json.dumps(session) + "\n", encoding="utf-8")
    words = [
        "run",
        "dataset.path=talk.jsonl",
        f"dataset.planted={PROBES}",
        "reader=openai_compatible",
        "--name",
        "real",
    ]
    reader = (f"base_url={server.url}", "model=gpt-5-mini", "key_variable=LAB_KEY", "retries=0", "timeout_s=1.0")
    words += [f"reader.{setting}" for setting in (*reader, f"stream={'true' if fault.cut_after else 'false'}")]
    answered = server.answer

    def second_fails(body: Body) -> Body:
        if server.requests == 1:
            server.faults.append(fault)
        return answered(body)

    server.answer = second_fails
    assert main(words) == (2 if ends == OWED else 0)
    run = load_run(Path("experiments/real"))
    assert list(run.units["outcome"]) == ["failed" if ends == OWED else ends]
    assert len(run.calls) == (0 if ends == OWED else PROBES + 3)
    assert main(words) == 0
    run = load_run(Path("experiments/real"))
    assert (run.coverage.planned, run.coverage.ran, run.coverage.failed) == (1, 1, 0)
    assert (run.calls["purpose"] == "probe").sum() == PROBES
    assert server.requests == PROBES + (ends == OWED)


def test_bad_arguments_of_a_tool_call_come_back_to_the_model(server: FaultyServer) -> None:
    wrong = {"id": "c1", "type": "function", "function": {"name": "get_products", "arguments": "{not json"}}
    server.answer = lambda _: completion("", tool_calls=[wrong]) if server.requests == 1 else completion()
    assert main(command(server)) == 0
    returned = server.bodies[1]["messages"][-1]
    assert (returned["role"], returned["tool_call_id"]) == ("tool", "c1")
    assert returned["content"] == "error: the arguments are not a JSON object"
    assert outcomes() == {"none": "ok"}


def test_a_context_that_does_not_fit_is_the_strategys_result(server: FaultyServer) -> None:
    def narrow(body: Body) -> Body:
        return TOO_LONG.body if len(body["messages"]) > 12 else completion()  # type: ignore[return-value]

    server.answer = narrow
    assert main(command(server, *MASKING)) == 0
    assert outcomes() == {"none": "overflow", "sliding_window keep_last=2": "ok"}
    run = load_run(Path("experiments/real"))
    calls = run.calls[run.calls["arm"] == "none"]
    assert len(calls) == 7
    assert "maximum context length" in calls["error"].iloc[-1]
    assert not calls["error"].iloc[:-1].any()
    assert run.coverage.overflowed == 1


def test_only_cache_makes_the_run_again_without_a_call(
    server: FaultyServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(server, *MASKING)) == 0
    tables, asked = exported(capsys), server.requests
    for file in Path("experiments/real").iterdir():
        if file.is_file():
            file.unlink()
    more = ("--arm", "strategy=sliding_window strategy.keep_last=3")
    assert main(command(server, *MASKING, *more, "--existing", "only-cache", "-j", "2")) == 2
    assert "replies for 1 unit are not in the cache" in capsys.readouterr().err
    assert server.requests == asked
    assert exported(capsys) == tables
    assert main(command(server, *MASKING, *more, "--existing", "only-cache", "-j", "2")) == 2
    assert main(command(server, *MASKING, *more)) == 0


def test_a_budget_stops_before_the_call_that_could_exceed_it(
    server: FaultyServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = lambda _: completion(usage={"prompt_tokens": 1000, "completion_tokens": 1000})
    words = command(server, *MASKING, "-j", "2")
    assert main([*words, "--max-cost", "0.03"]) == 2
    said = capsys.readouterr().err
    assert "--max-cost" in said
    assert "still owed" in said
    # An answer costs 0.00225 USD; before each, 0.002 to 0.004 more must be left.
    assert 11 <= server.requests <= 13
    assert load_run(Path("experiments/real")).coverage.failed == 0
    assert main(words) == 0
    assert not server.repeated
    assert main(["plan", *words[1:-2]]) == 0


def test_a_budget_for_a_model_without_a_price_is_refused(
    server: FaultyServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command(server, "model.model=our-own"), "--max-cost", "1"]) == 1
    assert "priced_as" in capsys.readouterr().err
    assert server.requests == 0
    assert main([*command(server, "model.model=our-own", "model.priced_as=gpt-5-mini"), "--max-cost", "1"]) == 0


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("model.dialect=klingon", "dialect='klingon'; expected one of openai_chat"),
        ("model.kind=oracle", "agent: kind='oracle'; expected one of recorded, stub_shop, openai_compatible"),
        ("judge.kind=jury", "judge: kind='jury'"),
        ("model.retries=-1", "retries=-1"),
        ("model.base_url=localhost", "base_url='localhost'"),
    ],
)
def test_models_that_cannot_be_are_refused_before_a_run_exists(
    server: FaultyServer, capsys: pytest.CaptureFixture[str], word: str, said: str
) -> None:
    for verb in ("run", "plan"):
        assert main([verb, *command(server, word)[1:]]) == 1
        assert said in capsys.readouterr().err
    assert not Path("experiments").exists()


def test_only_cache_without_a_cache_is_refused(server: FaultyServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(server, "model.cache=false", "--existing", "only-cache")) == 1
    assert "model.cache=false" in capsys.readouterr().err
    assert server.requests == 0


def test_a_budget_of_nothing_allows_what_costs_nothing(
    server: FaultyServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command(server), "--max-cost", "0"]) == 2
    assert "stopped: --max-cost 0 allows no call that costs anything" in capsys.readouterr().err
    assert server.requests == 0
    assert main(["run", "experiment=laptop_catalog", "--limit", "3", "--max-cost", "0", "--name", "stubs"]) == 0
    assert load_run(Path("experiments/stubs")).coverage.ran == 3


def test_what_cannot_change_results_is_in_no_key(server: FaultyServer) -> None:
    assert main(command(server)) == 0
    changed = ("model.retries=3", "model.timeout_s=9.0", "model.requests_per_minute=1000", "model.key_variable=OTHER")
    assert main(command(server, *changed, "model.cache=false", "model.stream=true")) == 0
    assert server.requests == TURNS
    run = load_run(Path("experiments/real"))
    assert list(run.cells["model"]) == ["gpt-5-mini"]
    assert main(command(server, "model.temperature=0.5")) == 0
    assert server.requests == 2 * TURNS


def test_an_interrupt_lets_the_unit_end_and_the_rest_is_resumed(server: FaultyServer, desk: Path) -> None:
    server.delay_s = 0.02
    words = command(server, *MASKING)
    process = spawned(words, desk)
    wait_for(lambda: server.requests >= 3)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert server.requests == TURNS
    assert outcomes() == {"none": "ok"}
    assert main(words) == 0
    assert set(outcomes().values()) == {"ok"}
    assert not server.repeated


def test_two_runs_with_cells_in_common_ask_each_request_once(server: FaultyServer, desk: Path) -> None:
    server.delay_s = 0.01
    other = ("--arm", "strategy=sliding_window strategy.keep_last=4")
    processes = [
        spawned(command(server, *MASKING, name="one"), desk),
        spawned(command(server, *MASKING, *other, "-j", "2", name="two"), desk),
    ]
    for process in processes:
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert not server.repeated
    assert set(outcomes("one").values()) == set(outcomes("two").values()) == {"ok"}


def test_the_key_is_in_nothing_that_a_run_writes(
    server: FaultyServer, desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    server.answer = lambda _: completion(f"You are {SECRET}.")
    assert main(command(server, "-v")) == 0
    for status in (401, 500, 404):
        server.always = Fault(status, error(f"Incorrect API key provided: {SECRET}"))
        assert main(command(server, *MASKING, "-v", f"seed={status}")) == 2
    server.always = Fault(body=f"<html>Bearer {SECRET}</html>")
    assert main(command(server, *MASKING, "--fail-fast", "seed=7")) == 2
    assert main(["cache", "stats"]) == 0
    assert main(["report", "real", "--out", "report"]) in (0, 1)
    out = capfd.readouterr()
    said += [out.out, out.err, exported(capfd)]  # type: ignore[arg-type]
    assert any(f"Bearer {SECRET}" in key for key in server.keys)
    files = [path for path in desk.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {
        "manifest.json",
        "calls.jsonl",
        "log.txt",
        "messages.jsonl",
        "cache.sqlite",
    }
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in "".join(said)
    assert "You are ***." in (desk / "experiments/real/messages.jsonl").read_text()


def test_a_plan_says_what_a_real_model_would_cost_and_asks_nothing(
    server: FaultyServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *command(server, *MASKING)[1:], "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert expected["real_calls"] >= 2 * TURNS
    assert expected["spent_usd"] > 0
    assert server.requests == 0


def test_probes_are_read_and_judged_by_real_models_and_their_calls_recorded(server: FaultyServer, desk: Path) -> None:
    session = {
        "messages": [{"role": "user", "content": "My code is 8471."}, {"role": "assistant", "content": "Noted."}],
    }
    (desk / "talk.jsonl").write_text(json.dumps(session) + "\n", encoding="utf-8")

    def answer(body: Body) -> Body:
        if "grade" in body["messages"][0]["content"]:
            return completion('Sure.\n```json\n{"reason": "same", "score": 1}\n```')
        return completion(f"It is as stated. {SECRET}")

    server.answer = answer
    parts = [
        word
        for part in ("reader", "judge")
        for word in (f"{part}.model=gpt-5-mini", f"{part}.base_url={server.url}", f"{part}.key_variable=LAB_KEY")
    ]
    words = ["run", "dataset.path=talk.jsonl", "dataset.planted=4", "reader=openai_compatible", "judge=llm"]
    assert main([*words, *parts, "judge.repeats=2", "--name", "judged"]) == 0
    run = load_run(Path("experiments/judged"))
    assert list(run.probes["score"]) == [1.0] * 4
    assert set(run.probes["judge"]) == {"llm:gpt-5-mini"}
    assert run.calls["purpose"].value_counts().to_dict() == {"judge": 8, "probe": 4, "agent": 1}
    assert run.calls[run.calls["purpose"] == "judge"]["cost_uncached_usd"].notna().all()
    stored = [json.loads(line) for line in (desk / "experiments/judged/probes.jsonl").read_text().splitlines()]
    assert all(row["verdicts"][1]["raw"].startswith("Sure.") for row in stored if row["kind"] != "reference")
