"""The table a run ends with: its numbers, what is unknown in it, and what it stands on."""

from __future__ import annotations

import pandas as pd
import pytest

from compaction_lab.analysis import (
    arm_order,
    baseline_arm,
    beside_article,
    cumulative_cost,
    headline_table,
    hybrid_orders,
    order_effect,
    short_labels,
    simulated_note,
    summary_table,
)
from compaction_lab.records import Cell, UnitResult
from compaction_lab.sweep.loading import Run
from tests.synthetic_runs import (
    ARMS,
    BASIC,
    HYBRID,
    HYBRID_SUMMARY_FIRST,
    MASKING,
    RECALLED,
    SUMMARY,
    synthetic_run,
    unit,
)


def test_summary_of_the_synthetic_run() -> None:
    table = summary_table(synthetic_run()).set_index("arm")
    assert list(table.index) == list(ARMS)
    assert pd.isna(table.loc[BASIC, "mean reduction %"])
    assert table.loc[HYBRID, "peak reduction %"] == pytest.approx(93, abs=0.1)
    assert table.loc[SUMMARY, "summariser tokens"] == 8600
    assert table.loc[MASKING, "tool calls"] == 42
    assert {arm: 10 * score for arm, score in table["probe recall"].items()} == pytest.approx(RECALLED)
    assert (table[["planned", "ran", "failed", "missing"]].to_numpy() == [2, 2, 0, 0]).all()


def test_a_peak_is_not_a_whole_run_saving() -> None:
    row = summary_table(synthetic_run()).set_index("arm").loc[SUMMARY]
    assert row["whole-run saving incl. summaries %"] < row["peak reduction %"] / 2


def test_failed_units_are_counted_and_leave_the_pairs() -> None:
    cells = [Cell(f"c{n}", arm, "stub", "d", 0, {"baseline_arm": BASIC}) for n, arm in enumerate((BASIC, MASKING))]
    results = {(cell.key, name, 0): unit(cell.arm, 1.0) for cell in cells for name in ("a", "b")}
    results["c1", "b", 0] = UnitResult("failed", "ModelError: no answer")
    table = summary_table(Run.from_results(cells, results)).set_index("arm")
    assert list(table.loc[MASKING, ["planned", "ran", "failed", "missing", "transcripts"]]) == [2, 1, 1, 0, 1]
    assert table.loc[MASKING, "mean reduction %"] == pytest.approx(38, abs=0.1)


def test_several_models_get_a_line_each() -> None:
    arms, models = (BASIC, MASKING), ("one", "two")
    cells = [Cell(f"{arm}-{m}", arm, m, "d", 0, {"baseline_arm": BASIC}) for arm in arms for m in models]
    run = Run.from_results(cells, {(cell.key, "a", 0): unit(cell.arm, 1.0) for cell in cells})
    table = summary_table(run)
    assert list(zip(table["model"], table["arm"], strict=True)) == [(m, arm) for m in models for arm in arms]
    assert list(table["planned"]) == [1, 1, 1, 1]
    assert list(headline_table(table))[:2] == ["arm", "model"]


def test_without_a_baseline_reductions_are_unknown() -> None:
    run = synthetic_run(arms=(MASKING, SUMMARY))
    assert baseline_arm(run.cells) is None
    table = summary_table(run)
    assert table["whole-run saving incl. summaries %"].isna().all()
    assert table["input tokens"].notna().all()


def test_an_unknown_price_makes_the_cost_unknown() -> None:
    run = synthetic_run()
    calls = run.calls.copy()
    calls.loc[(calls["arm"] == MASKING) & (calls["turn"] == 4) & (calls["transcript"] == "en"), "cost_usd"] = float(
        "nan"
    )
    costs = cumulative_cost(calls)
    masking = costs[costs["arm"] == MASKING].set_index(["transcript", "turn"])["cumulative_cost_usd"]
    assert masking["en"].isna().tolist() == [turn >= 4 for turn in range(1, 22)]
    assert masking["pl"].notna().all()


def test_cumulative_cost_contains_the_summaries() -> None:
    run = synthetic_run(arms=(BASIC, SUMMARY), transcripts=("en",))
    last = cumulative_cost(run.calls).groupby("arm")["cumulative_cost_usd"].last()
    assert last[SUMMARY] == pytest.approx(run.calls.loc[run.calls["arm"] == SUMMARY, "cost_usd"].sum())


def test_order_effect_shows_what_the_summariser_reads() -> None:
    run = synthetic_run()
    assert hybrid_orders(run.cells) == [(HYBRID, HYBRID_SUMMARY_FIRST)]
    effect = order_effect(run, HYBRID, HYBRID_SUMMARY_FIRST).set_index("measure")
    assert list(effect.loc["summariser input tokens", ["mask_first", "summarize_first", "difference"]]) == [
        2000,
        8000,
        6000,
    ]
    assert effect.loc["probe recall", "difference"] == pytest.approx(0.1)
    assert (effect["units"] == 2).all()


def test_published_numbers_stand_beside_ours() -> None:
    table = beside_article(summary_table(synthetic_run())).set_index("arm")
    assert BASIC not in table.index
    assert "35-40 %" in table.loc[MASKING, "published"]
    assert "93 %" in table.loc[SUMMARY, "published"]


def test_arms_are_named_briefly_but_never_alike() -> None:
    arms = [BASIC, HYBRID, "summarization", SUMMARY, "truncation max_tokens=4000"]
    labels = short_labels(arms)
    assert labels[HYBRID] == "hybrid"
    assert labels[SUMMARY] == SUMMARY
    assert labels[BASIC] == "Basic (none)"
    assert len(set(labels.values())) == len(arms)
    assert arm_order(arms)[0] == BASIC


def test_what_a_stub_made_is_said() -> None:
    assert simulated_note(synthetic_run().simulated) == "simulated (a stub model answered)"
    assert simulated_note(frozenset()) == ""
