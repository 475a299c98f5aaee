"""The ``probes`` verb: by rule offline, and against an endpoint on loopback, as a person would use it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction_lab.cli import main
from compaction_lab.importers import load_transcripts
from compaction_lab.quality.evidence import searchable
from compaction_lab.sweep.loading import load_run
from tests.models.faulty_server import Body, Fault, FaultyServer, completion, error, running
from tests.processes import spawned, wait_for

TALKS = (
    [
        ("user", "Please fix the retry limit. Never restart the queue on port 8471. Tell me what you changed."),
        ("assistant", "I changed src/retry.py and set the limit to 250 attempts there."),
        ("user", "And then?"),
        ("assistant", "We decided to use Postgres 16.2 instead of files for that. The next step is ticket LAB-2291."),
    ],
    [("user", "My customer number is 774411, please note it."), ("assistant", "I have noted that down for you.")],
)


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPACTION_LAB_CACHE", str(tmp_path / "cache.sqlite"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    for number, talk in enumerate(TALKS):
        session = {"messages": [{"role": role, "content": text} for role, text in talk]}
        (tmp_path / f"talk{number}.json").write_text(json.dumps(session), encoding="utf-8")
    return tmp_path


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with running(FaultyServer(answer=proposing)) as started:
        yield started


def proposing(body: Body) -> Body:
    """Propose of whatever is shown one probe that holds and one whose evidence lacks the answer."""
    shown = body["messages"][-1]["content"]
    at, evidence, answer = (
        (1, "I changed src/retry.py and set the limit to 250 attempts there.", "250")
        if "retry.py" in shown
        else (0, "My customer number is 774411, please note it.", "774411")
    )
    good = {"kind": "recall", "question": "Which number?", "answer": answer, "message": at, "evidence": evidence}
    bad = good | {"question": "Which other?", "answer": "999"}
    return completion(f"Here you are:\n```json\n{json.dumps({'probes': [good, bad]})}\n```")


def asking(server: FaultyServer, *words: str) -> list[str]:
    return [
        "probes",
        "talk0.json",
        "talk1.json",
        "--out",
        "probed.jsonl",
        "model=openai_compatible",
        "model.model=gpt-5-mini",
        f"model.base_url={server.url}",
        "model.key_variable=LAB_KEY",
        "model.retries=0",
        *words,
    ]


def test_the_rule_writes_probes_that_hold_and_a_run_asks_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probes", "talk0.json", "talk1.json", "--out", "probed.jsonl", "-v"]) == 0
    said = capsys.readouterr().out
    assert "2 sessions, 5 probes proposed by rule and kept" in said
    assert "(artifact, message 1)" in said
    assert "gold: src/retry.py" in said
    sessions = load_transcripts("probed.jsonl")
    kinds = {probe.kind for session in sessions for probe in session.probes}
    assert kinds == {"recall", "artifact", "constraint", "decision", "continuation"}
    for session in sessions:
        assert session.meta["probes_by"] == "rule"
        for probe in session.probes:
            assert probe.source_message is not None
            assert probe.evidence[0] in searchable(session.messages[probe.source_message])
            assert probe.gold[0] in probe.evidence[0]
            assert probe.gold[0] not in probe.question
    assert main(["run", "dataset.path=probed.jsonl", "-q", "--name", "asked"]) == 0
    probes = load_run(Path("experiments/asked")).probes.query("kind != 'reference'")
    assert (probes["score"] == 1).all()
    assert len(probes) == 5


def test_a_model_s_proposals_are_checked_counted_and_kept(
    server: FaultyServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asking(server)) == 0
    out = capsys.readouterr()
    assert "2 sessions, 2 probes proposed by gpt-5-mini and kept (2 recall)" in out.out
    assert "2 proposals rejected:\n  2 x the evidence does not contain the answer" in out.out
    assert [session.probes[0].gold for session in load_transcripts("probed.jsonl")] == [("250",), ("774411",)]
    assert main(asking(server, "--json")) == 0
    rows = json.loads(capsys.readouterr().out)["sessions"]
    assert "'answer': '999'" in rows[0]["rejected"][0]["proposal"]
    assert server.requests == 2


def test_a_failed_session_is_left_out_and_asked_again(server: FaultyServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.faults = [Fault(500, error("oops"))]
    assert main(asking(server)) == 2
    said = capsys.readouterr().err
    assert "HTTP 500" in said
    assert "1 session left out" in said
    assert len(load_transcripts("probed.jsonl")) == 1
    assert main(asking(server)) == 0
    assert (len(load_transcripts("probed.jsonl")), server.requests) == (2, 3)


def test_an_interrupted_command_says_how_to_go_on_and_asks_only_for_the_rest(server: FaultyServer, desk: Path) -> None:
    server.delay_s = 1.0
    process = spawned(asking(server), desk)
    wait_for(lambda: server.requests == 2)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "go on with\n  compaction-lab probes talk0.json" in said
    assert not Path("probed.jsonl").exists()
    assert main(asking(server)) == 0
    assert server.requests == 3


def test_a_budget_holds(server: FaultyServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asking(server, "--max-cost", "0")) == 2
    assert "--max-cost 0 allows no call" in capsys.readouterr().err
    assert server.requests == 0
    assert not Path("probed.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["talk0.json", "--kinds", "gossip"], "expected some of recall, artifact"),
        (["nowhere.json"], "no such file"),
        (["model=openai_compatible"], "which sessions?"),
        (["talk0.json", "model=openai_compatible"], "no value for model.model"),
        (["talk0.json", "model=stub_shop"], "over an endpoint"),
        (["talk0.json", "strategy=none"], "probes takes model="),
        (["probed.jsonl"], "would overwrite"),
    ],
)
def test_what_it_cannot_use_is_said(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probes", *words, "--out", "probed.jsonl"]) == 1
    assert said in capsys.readouterr().err
