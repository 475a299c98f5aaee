"""One line an arm: the table a run ends with, in plain words."""

from __future__ import annotations

import math

import pandas as pd

from compaction_lab.analysis.arms import arm_order, baseline_arm
from compaction_lab.analysis.cost import cost_per_unit
from compaction_lab.analysis.quality import probe_recall, rubric_per_turn
from compaction_lab.analysis.reduction import reduction_summary
from compaction_lab.analysis.run_tables import UNIT, RunTables, known_sum, measured
from compaction_lab.analysis.totals import whole_run_saving

KEYS = ["arm", "model", "dataset"]
HEADLINE = [
    "mean reduction %",
    "peak reduction %",
    "peak at turn",
    "whole-run saving incl. summaries %",
    "tool calls",
    "rubric score",
    "probe recall",
]
"""The columns that fit a terminal or a column of print."""


def _counts(run: RunTables) -> pd.DataFrame:
    """Units planned, ran, failed and missing; with several models or datasets, planned is what any arm tried there."""
    cells = run.cells[["cell", *KEYS, "seed"]]
    names = ["planned", "ran", "failed", "missing", "overflowed"]
    if len(cells[["model", "dataset"]].drop_duplicates()) == 1:
        table = cells[KEYS].drop_duplicates(ignore_index=True)
        for name in names:
            table[name] = [int(getattr(run.coverage_by_arm[arm], name)) for arm in table["arm"]]
        return table
    work = ["model", "dataset", "seed"]
    tried = run.units[UNIT].drop_duplicates().groupby(work, as_index=False).size().rename(columns={"size": "planned"})
    table = cells.merge(tried, on=work, how="left").fillna({"planned": 0}).astype({"planned": int})
    outcome = run.units["outcome"]
    for name, counted in (
        ("ran", outcome != "failed"),
        ("failed", outcome == "failed"),
        ("overflowed", outcome == "overflow"),
    ):
        table[name] = table["cell"].map(run.units[counted].groupby("cell").size()).fillna(0).astype(int)
    table["missing"] = table["planned"] - table["ran"] - table["failed"]
    return table.groupby(KEYS, as_index=False)[names].sum()


def _means(turns: pd.DataFrame) -> pd.DataFrame:
    """Tokens and calls a conversation, and how many transcripts they come from."""
    columns = ["input_tokens", "summarizer_input_tokens", "summarizer_output_tokens", "tool_calls", "model_calls"]
    sums = measured(turns, columns).groupby(["arm", *UNIT], as_index=False)[columns].agg(known_sum)
    sums["summariser tokens"] = sums["summarizer_input_tokens"] + sums["summarizer_output_tokens"]
    grouped = sums.groupby(KEYS, as_index=False)
    means = grouped[["input_tokens", "summariser tokens", "tool_calls", "model_calls"]].mean()
    means["transcripts"] = grouped["transcript"].nunique()["transcript"]
    return means.rename(
        columns={"input_tokens": "input tokens", "tool_calls": "tool calls", "model_calls": "model calls"}
    )


def summary_table(run: RunTables) -> pd.DataFrame:
    """Return one row an arm (and model and dataset, where a run has several), baseline first.

    Tokens, calls and cost are means a conversation over the units that finished. Reductions are of input tokens a turn
    over turns 2 to the last, per transcript and then averaged, and leave the summariser out, as the article does; the
    whole-run saving counts everything the summariser read and wrote. What is unknown is missing, never zero.

    Parameters
    ----------
    run
        A run's tables.

    Returns
    -------
    DataFrame
        ``arm, [model, dataset,] transcripts, input tokens, summariser tokens, mean reduction %, peak reduction %,
        peak at turn, whole-run saving incl. summaries %, tool calls, model calls, rubric score, probe recall,
        evidence visible, cost USD, planned, ran, failed, [overflowed,] missing``.
    """
    baseline = baseline_arm(run.cells)
    table = _counts(run).merge(_means(run.turns), on=KEYS, how="left")
    turns = run.turns
    if baseline is not None:
        reductions = reduction_summary(turns, baseline).rename(
            columns={
                "mean_reduction_percent": "mean reduction %",
                "peak_reduction_percent": "peak reduction %",
                "peak_turns": "peak at turn",
            }
        )
        table = table.merge(reductions.drop(columns="transcripts"), on=KEYS, how="left")
        saving = whole_run_saving(turns, baseline).rename(
            columns={"saving_percent": "whole-run saving incl. summaries %"}
        )
        table = table.merge(saving[[*KEYS, "whole-run saving incl. summaries %"]], on=KEYS, how="left")
        itself = table["arm"] == baseline
        table.loc[itself, ["mean reduction %", "peak reduction %", "whole-run saving incl. summaries %"]] = math.nan
        table.loc[itself, "peak at turn"] = None
    else:
        for column in HEADLINE[:4]:
            table[column] = math.nan
    probes = run.probes
    rubric = rubric_per_turn(probes).groupby(KEYS, as_index=False).agg(score=("score", "mean"))
    recall = probe_recall(probes)[[*KEYS, "recall", "evidence_visible"]]
    costs = cost_per_unit(run.calls).groupby(KEYS, as_index=False)
    cost = costs.agg(cost_usd=("cost_usd", lambda spent: spent.mean(skipna=False)))
    for extra in (rubric, recall, cost):
        table = table.merge(extra, on=KEYS, how="left")
    table = table.rename(
        columns={
            "score": "rubric score",
            "recall": "probe recall",
            "evidence_visible": "evidence visible",
            "cost_usd": "cost USD",
        }
    )
    table["transcripts"] = table["transcripts"].fillna(0).astype(int)
    order = {arm: place for place, arm in enumerate(arm_order(table["arm"], baseline))}
    table = table.sort_values(["model", "dataset", "arm"], key=lambda column: column.map(lambda v: order.get(v, v)))
    several = [key for key in ("model", "dataset") if len(table[key].unique()) > 1]
    columns = ["transcripts", "input tokens", "summariser tokens", *HEADLINE[:5], "model calls", *HEADLINE[5:]]
    counts = ["planned", "ran", "failed", *(["overflowed"] if table["overflowed"].any() else []), "missing"]
    return table[["arm", *several, *columns, "evidence visible", "cost USD", *counts]].reset_index(drop=True)


def headline_table(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the summary's columns that fit a terminal or a column of print, less those nothing is known of."""
    keys = [key for key in KEYS if key in summary]
    return summary[[*keys, *(column for column in HEADLINE if summary[column].notna().any())]]
