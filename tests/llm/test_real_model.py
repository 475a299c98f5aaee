"""A real model through the lab's command line: an endpoint named in the environment, else a small one on loopback.

So small a model is a floor: what is asserted is that nothing is lost and everything it did is recorded, never that it
did well. Deselected unless asked for (``make test-llm``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.local_model import Endpoint, endpoint
from compaction_lab.analysis.lost_in_middle import accuracy_by_place, placed_answers
from compaction_lab.sweep.loading import Run, load_run

pytestmark = pytest.mark.llm
ROOT = Path(__file__).resolve().parents[2]
TURNS, FACTS, PAIRS, EXAMPLES, PLACES = 21, 10, 8, 4, 3
SUMMARISED = "strategy=summarization strategy.every=5 strategy.max_summary_tokens=120 arm=summarised"


@pytest.fixture(scope="module")
def model() -> Iterator[Endpoint]:
    with endpoint() as found:
        yield found


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder, and in it a short session to plant facts in."""
    folder = tmp_path_factory.mktemp("real")
    turns = [f"Please look at item {number} of the list." for number in range(1, 13)]
    messages = [
        {"role": role, "content": text} for turn in turns for role, text in (("user", turn), ("assistant", "Done."))
    ]
    (folder / "session.jsonl").write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    return folder


def asks(part: str, model: Endpoint, output_tokens: int) -> list[str]:
    """The overrides that give a part to the model."""
    kind = f"{part}={'llm' if part == 'judge' else 'openai_compatible'}"
    return [
        kind,
        f"{part}.model={model.model}",
        f"{part}.base_url={model.base_url}",
        f"{part}.max_output_tokens={output_tokens}",
        f"{part}.timeout_s=600",
    ]


def lab(desk: Path, *words: str) -> str:
    """Run a command in a process of its own, with a cache of its own; it has to succeed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "COMPACTION_LAB_CACHE": str(desk / "cache.sqlite"),
        "XDG_CACHE_HOME": str(desk / "user"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "compaction_lab", *words],
        cwd=desk,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def complete(desk: Path, name: str, *asked: str) -> Run:
    """Load a run that lost no unit (a context that did not fit is a result), whose calls for ``asked`` are real."""
    run = load_run(desk / "experiments" / name)
    assert (run.coverage.failed, run.coverage.missing) == (0, 0)
    assert run.coverage.ran == run.coverage.planned
    assert set(run.units["outcome"]) <= {"ok", "overflow"}
    assert_usage_is_recorded(run.calls[run.calls["purpose"].isin(asked)])
    return run


def assert_usage_is_recorded(calls: pd.DataFrame) -> None:
    buckets = calls[["fresh_input_tokens", "cache_read_tokens", "cache_write_tokens"]]
    answered = calls["error"].fillna("") == ""
    assert buckets[answered].notna().all(axis=None)
    assert (buckets.min() >= 0).all()
    assert (buckets.sum(axis=1) == calls["input_tokens"]).all()
    assert set(calls.loc[answered, "latency_source"]) == {"measured"}
    assert (calls.loc[answered, "latency_s"] > 0).all()


def laptop(model: Endpoint) -> list[str]:
    """The overrides of the laptop conversation: uncompacted, and summarised by the model itself."""
    summarised = " ".join([SUMMARISED, *asks("summarizer", model, 120)])
    return ["dataset.languages=[en]", "reader=null", *asks("model", model, 80), "--arm", summarised]


def test_the_laptop_conversation_is_lived_and_summarised_by_the_model(model: Endpoint, desk: Path) -> None:
    lab(desk, "run", *laptop(model), "--name", "laptop")
    run = complete(desk, "laptop", "agent", "summarizer")

    assert set(run.units["arm"]) == {"none", "summarised"}
    ends = run.units.set_index("arm")["outcome"]
    for arm, calls in run.calls[run.calls["purpose"] == "agent"].groupby("arm"):
        assert list(calls["call"]) == list(range(1, len(calls) + 1))
        turns = sorted(calls["turn"].unique())
        assert turns == list(range(1, len(turns) + 1))
        assert len(turns) == TURNS or ends[arm] == "overflow"
        answers = run.probes[(run.probes["arm"] == arm) & (run.probes["kind"] == "rubric")]
        assert len(answers) == TURNS - (ends[arm] == "overflow") * (TURNS - len(turns) + 1)
        assert answers["score"].between(0, 1).all()
        assert answers["answer"].notna().all()  # an empty answer is data, a missing one is not
    summaries = run.calls[run.calls["purpose"] == "summarizer"]
    assert len(summaries) >= 1
    assert set(summaries["arm"]) == {"summarised"}
    assert set(run.compactions["outcome"]) <= {"ok", "empty", "not_shorter", "truncated"}
    # Models like the small one here call no tools by themselves; how many were called is in the table either way.
    assert run.turns["tool_calls"].notna().all()


def test_a_second_run_asks_nothing_and_exports_the_same(model: Endpoint, desk: Path) -> None:
    served = model.processed_tokens() if model.ours else 0
    lab(desk, "run", *laptop(model), "--name", "again", "--existing", "only-cache")
    if model.ours:
        assert model.processed_tokens() == served
    for table in ("calls", "turns", "compactions", "units"):
        assert lab(desk, "export", "again", "--table", table) == lab(desk, "export", "laptop", "--table", table)


def test_ten_probes_are_read_and_judged_by_the_model(model: Endpoint, desk: Path) -> None:
    words = ["dataset.path=session.jsonl", f"dataset.planted={FACTS}", "baseline=null"]
    lab(desk, "run", *words, *asks("reader", model, 40), *asks("judge", model, 120), "--name", "probes")
    run = complete(desk, "probes", "probe", "judge")

    probes = run.probes[run.probes["kind"] != "reference"]
    assert len(probes) == FACTS
    assert (probes["evidence_visible"] == 1).all()
    assert probes["answer"].notna().all()
    assert probes["score"].dropna().between(0, 1).all()  # a judgment that could not be read is missing
    assert set(probes["judge"]) == {f"llm:{model.model}"}
    assert run.calls["purpose"].value_counts()[["probe", "judge"]].to_dict() == {"probe": FACTS, "judge": FACTS}
    stored = (desk / "experiments/probes/probes.jsonl").read_text(encoding="utf-8").splitlines()
    verdicts = [row["verdicts"] for row in map(json.loads, stored) if row.get("verdicts")]
    assert len(verdicts) == FACTS
    assert all("raw" in verdict for row in verdicts for verdict in row)


def test_key_value_pairs_are_looked_up_at_several_places(model: Endpoint, desk: Path) -> None:
    words = ["dataset=key_value", f"dataset.items={PAIRS}", f"dataset.examples={EXAMPLES}", f"dataset.places={PLACES}"]
    lab(desk, "run", *words, *asks("reader", model, 60), "--name", "pairs")
    curve = accuracy_by_place(placed_answers(complete(desk, "pairs", "probe")))
    assert list(curve["place"]) == pytest.approx([0, 3 / 7, 1])
    assert list(curve["answers"]) == [EXAMPLES] * PLACES
    assert (curve["low"] <= curve["accuracy"]).all()
    assert (curve["accuracy"] <= curve["high"]).all()
