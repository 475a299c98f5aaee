"""Cost against recall: which arms no other arm beats on both, with intervals, and what that says in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from compaction_lab.analysis.arms import arm_order
from compaction_lab.analysis.quality import transcript_means
from compaction_lab.analysis.run_tables import UNIT, RunTables, known_sum, measured
from compaction_lab.errors import StatisticsError
from compaction_lab.statistics.estimators import bootstrap_interval, clustered_bootstrap

KEYS = ["arm", "model", "dataset"]
SMALLEST = 6
"""Fewest transcripts for an interval over them."""


def frontier(run: RunTables, baseline: str | None, *, kind: str = "reference", seed: int = 0) -> pd.DataFrame:
    """Return each arm's cost a session against its recall.

    Costs are relative to the baseline arm on the same sessions (ratio of sums), summaries included. Recall is the mean
    over the sessions that have anything to recall, each counting the same.

    Parameters
    ----------
    run
        A run's tables.
    baseline
        The uncompacted arm; without one the costs are absolute.
    kind
        What recall is of: ``reference``, or ``probe`` for every other probe.
    seed
        Of the bootstrap over transcripts.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, transcripts, cost_usd`` (a session) ``, cost_percent`` (of the baseline's), its interval
        ``cost_low, cost_high, recall, recall_low, recall_high, references`` (how many) ``, recall_transcripts`` (that
        have any) ``, on_frontier, beaten_by``. Intervals are 95 %, clustered by transcript, and missing under six
        transcripts. An arm is beaten when another costs no more and recalls no less, one of the two strictly.
    """
    costs = _costs(run)
    recall = _recall(run, kind)
    rows = []
    for keys, group in costs.groupby(KEYS, sort=True):
        arm, model, dataset = keys
        place = (costs["model"] == model) & (costs["dataset"] == dataset)
        paired = group
        whole = costs[place & (costs["arm"] == baseline)]
        if baseline is not None and len(whole):
            paired = group.merge(whole[[*UNIT, "cost"]], on=UNIT, suffixes=("", "_baseline"))
        scores = recall[(recall["arm"] == arm) & (recall["model"] == model) & (recall["dataset"] == dataset)]
        rows.append({**dict(zip(KEYS, keys, strict=True)), **_row(paired, scores, seed)})
    return _marked(pd.DataFrame(rows))


def printed_frontier(table: pd.DataFrame) -> pd.DataFrame:
    """Return a frontier with the headings a report prints."""
    yes = table["on_frontier"].map({True: "yes", False: ""})
    return table.assign(on_frontier=yes).rename(
        columns={
            "cost_usd": "cost USD",
            "cost_percent": "cost % of baseline",
            "cost_low": "cost low %",
            "cost_high": "cost high %",
            "recall_low": "recall low",
            "recall_high": "recall high",
            "recall_transcripts": "transcripts with references",
            "on_frontier": "on frontier",
            "beaten_by": "beaten by",
            "recall_of": "recall of",
        }
    )


def joined_frontiers(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the frontiers of several runs on the same sessions as one; an arm that several have counts once.

    Raises
    ------
    StatisticsError
        If an arm has other numbers in another table: its label does not say what makes the difference.
    """
    table = pd.concat(tables, ignore_index=True)
    table = table.drop_duplicates([name for name in table if name not in ("on_frontier", "beaten_by")])
    twice = table.loc[table.duplicated(KEYS), "arm"]
    if len(twice):
        raise StatisticsError(
            f"frontier: {', '.join(sorted(set(twice)))} differ between the runs; name arms apart with arm=NAME"
        )
    return _marked(table.reset_index(drop=True))


def _marked(table: pd.DataFrame) -> pd.DataFrame:
    """Say of each arm whether another one beats it, and which: the baseline, or else the first as tables list them."""
    places = {arm: place for place, arm in enumerate(arm_order(table["arm"]))} if len(table) else {}
    listed = table.iloc[sorted(range(len(table)), key=lambda row: places[str(table["arm"].iloc[row])])]
    beaten = [beaten_by(listed, table.iloc[place]) for place in range(len(table))]
    known = table["recall"].notna() & table["cost_usd"].notna()
    return table.assign(on_frontier=known & (pd.Series(beaten, index=table.index) == ""), beaten_by=beaten)


def _costs(run: RunTables) -> pd.DataFrame:
    calls = run.calls
    paid = calls[calls["purpose"].isin(["agent", "summarizer"])]
    return paid.groupby(["arm", *UNIT], as_index=False).agg(cost=("cost_usd", known_sum))


def _recall(run: RunTables, kind: str) -> pd.DataFrame:
    probes = run.probes
    chosen = probes["kind"] == "reference" if kind == "reference" else ~probes["kind"].isin(["reference", "rubric"])
    return measured(probes[chosen], ["score"]).dropna(subset=["score"])


def _row(paired: pd.DataFrame, scores: pd.DataFrame, seed: int) -> dict[str, object]:
    transcripts = int(paired["transcript"].nunique())
    row: dict[str, object] = {"transcripts": transcripts, "cost_usd": float(paired["cost"].mean(skipna=False))}
    low = high = percent = math.nan
    if "cost_baseline" in paired and bool(paired[["cost", "cost_baseline"]].notna().all(axis=None)):
        percent = 100.0 * float(paired["cost"].sum() / paired["cost_baseline"].sum())
        if transcripts >= SMALLEST:
            low, high = _ratio_interval(paired, percent, seed)
    row |= {"cost_percent": percent, "cost_low": low, "cost_high": high}
    means = transcript_means(scores)
    mean = float(means.mean())
    least = most = math.nan
    if len(means) >= SMALLEST:
        interval = bootstrap_interval(clustered_bootstrap(means.to_numpy(float), seed=seed), mean, len(means))
        least, most = max(0.0, interval.low), min(1.0, interval.high)
    row |= {"recall": mean, "recall_low": least, "recall_high": most}
    return row | {"references": len(scores), "recall_transcripts": len(means)}


def _ratio_interval(paired: pd.DataFrame, percent: float, seed: int, resamples: int = 10_000) -> tuple[float, float]:
    """Return the interval of a ratio of sums, whole transcripts resampled."""
    sums = paired.groupby("transcript")[["cost", "cost_baseline"]].sum().to_numpy(float)
    generator = np.random.default_rng(seed)
    drawn = sums[generator.integers(0, len(sums), (resamples, len(sums)))].sum(axis=1)
    interval = bootstrap_interval(np.sort(100.0 * drawn[:, 0] / drawn[:, 1]), percent, len(sums))
    return interval.low, interval.high


def beaten_by(table: pd.DataFrame, mine: pd.Series) -> str:
    """Return the first arm of a frontier's table that beats another, empty when none does."""
    for other in table.to_dict("records"):
        if (other["model"], other["dataset"]) != (mine["model"], mine["dataset"]):
            continue
        cheaper, better = other["cost_usd"] - mine["cost_usd"], other["recall"] - mine["recall"]
        if math.isnan(cheaper) or math.isnan(better):
            continue
        if cheaper <= 0 and better >= 0 and (cheaper < 0 or better > 0):
            return str(other["arm"])
    return ""
