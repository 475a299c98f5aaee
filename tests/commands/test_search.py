"""The ``search`` verb on sixteen made sessions: what it prints and keeps, goes on with, and refuses."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from compaction_lab.cli import main
from tests.documents import write_sessions
from tests.processes import spawned, wait_for

KEEP = "strategy=observation_masking strategy.keep_last=1,3,5,8"
SEARCH = ("search", "dataset.path=sessions.jsonl", "--arm", KEEP, "--name", "s", "-q")
TOKENS = (*SEARCH, "--metric", "input_tokens")
AGAINST = ("--against", "observation_masking keep_last=8")
STORED = Path("experiments/s/units.jsonl")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_sessions(tmp_path / "sessions.jsonl", 16)
    return tmp_path


def units() -> list[tuple[str, str, int]]:
    if not STORED.exists():
        return []
    rows = [json.loads(line) for line in STORED.read_bytes().splitlines() if line.endswith(b"}")]
    return [(row["cell"], row["transcript"], row["trial"]) for row in rows]


def test_it_finds_a_parameter_confirms_it_and_repeats_no_unit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TOKENS, *AGAINST]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert re.search(r"8 sessions, 4 arms\narm +mean +from leader, 95 % +p", said)
    assert "Confirmed: lower on the sessions held out too. On 8 sessions held out:" in said
    assert said.endswith("Run: experiments/s\n")
    kept = json.loads(Path("experiments/s/search.json").read_text(encoding="utf-8"))
    assert kept["found"] == kept["confirmation"]["arm"] == "observation_masking keep_last=1"
    assert not set(kept["searched"]) & set(kept["held_out"])
    stored = units()
    assert len(stored) == len(set(stored)) == kept["units"]["used"] < kept["units"]["whole_grid"] == 80
    assert main([*TOKENS, *AGAINST]) == 0
    assert capsys.readouterr().out == said
    assert units() == stored


def test_json_is_all_that_is_printed_and_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TOKENS, *AGAINST, "--guard", "reference_recall>=0.5", "--json"]) == 0
    said = capsys.readouterr().out
    assert said == Path("experiments/s/search.json").read_text(encoding="utf-8")
    found = json.loads(said, parse_constant=pytest.fail)
    assert found["aim"]["guard"] == {"metric": "reference_recall", "least": 0.5}
    assert found["rungs"][0]["standings"][0]["p_holm"] is None  # the leader is compared with nothing


def test_an_interrupted_search_goes_on_and_decides_the_same(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = spawned([*TOKENS, *AGAINST], desk)
    wait_for(lambda: len(units()) >= 3 or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "the same command goes on" in said
    assert not Path("experiments/s/search.json").exists()
    assert main([*TOKENS, *AGAINST, "--json"]) == 0
    resumed = capsys.readouterr().out
    assert len(units()) == len(set(units()))
    assert main([*TOKENS, *AGAINST, "--json", "--name", "undisturbed"]) == 0
    assert capsys.readouterr().out == resumed


def test_a_run_that_has_all_units_is_searched_without_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *SEARCH[1:]]) == 0
    stored = units()
    assert main([*TOKENS, *AGAINST, "--json"]) == 0
    whole = capsys.readouterr().out.split("Run: experiments/s\n")[1]
    assert units() == stored
    assert main([*TOKENS, *AGAINST, "--json", "--name", "alone"]) == 0
    assert capsys.readouterr().out == whole


def test_units_under_another_label_are_found_under_the_present_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "dataset.path=sessions.jsonl", "--arm", KEEP.replace("1,3,5,8", "8"), "--name", "s"]) == 0
    stored = units()
    assert main([*TOKENS, *AGAINST]) == 0
    assert units()[: len(stored)] == stored
    assert len(units()) == len(set(units()))
    capsys.readouterr()


def test_what_is_in_use_already_and_what_keeps_no_guard_need_no_held_out_session(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*TOKENS, "--against", "observation_masking keep_last=1"]) == 0
    assert "Found nothing better than observation_masking keep_last=1, the arm in use." in capsys.readouterr().out
    used = len(units())
    assert used == len({unit[:2] for unit in units()}) == 4 * 8
    assert main([*TOKENS, *AGAINST, "--guard", "reference_recall >= 1.1"]) == 0
    assert "Found nothing: no arm left has a mean reference_recall>=1.1 and fits the window." in " ".join(
        capsys.readouterr().out.split()
    )
    assert len(units()) == used


def test_the_baseline_is_a_candidate_only_where_it_is_the_arm_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TOKENS]) == 0
    assert "in 5 arms on 8 sessions" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([*TOKENS, "--against", "hybrid"], "no arm 'hybrid' in this grid; --against names the arm in use, one of: "),
        ([*TOKENS, "--factor", "1"], "a factor of 1 would never drop an arm"),
        ([*TOKENS, "--held-out", "0.9"], "expected at least 6 on either side"),
        ([*SEARCH, "--metric", "speed"], "no metric 'speed'; metrics: agent_cost_usd, "),
        ([*SEARCH, "--metric", "reduction_vs_baseline"], "needs the baseline arm on every session"),
        ([*TOKENS, "--guard", "speed>=1"], "no metric 'speed'"),
        ([*TOKENS, "--guard", "score<=1"], "expected METRIC>=NUMBER"),
        ([*TOKENS, "--guard", "score>=1.2.3"], "expected METRIC>=NUMBER"),
        (["search", "dataset=coding_session", "--arm", KEEP, "--metric", "score"], "1 transcripts, "),
        (["search", "dataset.path=sessions.jsonl", "strategy=none", "--metric", "score"], "no arm but 'none'"),
        (["search", "dataset=coding_session,key_value", "--metric", "score"], "2 datasets; give one"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_searched_is_refused_before_anything_runs(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    said = capsys.readouterr()
    assert reason in said.err
    assert not said.out
    assert not Path("experiments").exists()


def test_failed_units_stop_it_with_their_reason(capsys: pytest.CaptureFixture[str]) -> None:
    dead = "summarizer=openai_compatible summarizer.model=m summarizer.base_url=http://127.0.0.1:9 summarizer.retries=0"
    arm = f"strategy=summarization strategy.every=2 {dead} summarizer.key_variable=null"
    assert main([*TOKENS, "--arm", arm, "--json"]) == 2
    said = capsys.readouterr()
    assert "not done (" in said.err
    assert not said.out
