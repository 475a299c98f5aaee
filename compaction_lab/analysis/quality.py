"""What an arm's answers were worth: rubric scores of its turns, and recall of facts asked for with tools off."""

from __future__ import annotations

import math
from statistics import NormalDist

import pandas as pd
from scipy.special import stdtrit

from compaction_lab.analysis.run_tables import CONVERSATION

CLUSTERED_FROM = 10
"""Fewest transcripts for which an interval between transcripts says anything."""


def rubric_per_turn(probes: pd.DataFrame) -> pd.DataFrame:
    """Return the rubric score (0 to 1) of each judged turn, mean over seeds and trials.

    Parameters
    ----------
    probes
        The *probes* table; only rows of ``kind=rubric`` are read.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, transcript, turn, score, judged``; a judgment that failed is missing, never zero.
    """
    rubric = probes[probes["kind"] == "rubric"].astype({"score": float})
    grouped = rubric.groupby(["arm", *CONVERSATION, "turn"], sort=True, as_index=False)
    return grouped.agg(score=("score", "mean"), judged=("score", "count"))


def wilson_interval(successes: float, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion; missing without trials.

    Examples
    --------
    >>> low, high = wilson_interval(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    if trials == 0:
        return math.nan, math.nan
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


def transcript_means(scores: pd.DataFrame) -> pd.Series[float]:
    """Return the mean score of each transcript: each counts the same, however many values were used or asked for in it.

    What :func:`compaction_lab.compare` compares, and what recall means throughout.
    """
    return scores.groupby("transcript", sort=True)["score"].mean()


def _clustered_interval(means: pd.Series[float], confidence: float) -> tuple[float, float]:
    mean, error = float(means.mean()), float(means.std()) / math.sqrt(len(means))
    half = float(stdtrit(len(means) - 1, 0.5 + confidence / 2)) * error
    return max(0.0, mean - half), min(1.0, mean + half)


def probe_recall(probes: pd.DataFrame, confidence: float = 0.95, *, references: bool = False) -> pd.DataFrame:
    """Return the share of facts each arm still answers with tools off, with an interval and what was in sight.

    Parameters
    ----------
    probes
        The *probes* table; rubric rows are left out.
    references
        Read the rows of ``kind=reference`` alone; otherwise they are left out too.
    confidence
        Of the interval. From ten transcripts on it is clustered by transcript (Student's t on their means); with fewer
        it is Wilson's, which takes probes as independent and is therefore too narrow: ``interval`` says.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, transcripts, probes`` (scored) ``, unscored, recall`` (mean over the
        transcripts that have any) ``, low, high, interval, evidence_visible`` (likewise: the share of the evidence
        found verbatim in what was sent) ``, recall_without_evidence`` (pooled, of the probes none of whose evidence was
        visible).
    """
    chosen = probes["kind"] == "reference" if references else ~probes["kind"].isin(["rubric", "reference"])
    asked = probes[chosen].astype({"score": float, "evidence_visible": float})
    rows = []
    for (arm, model, dataset), group in asked.groupby(["arm", "model", "dataset"], sort=True):
        scored = group.dropna(subset=["score"])
        means = transcript_means(scored)
        recall, count = float(means.mean()), len(scored)
        clustered = len(means) >= CLUSTERED_FROM
        low, high = (
            _clustered_interval(means, confidence) if clustered else wilson_interval(recall * count, count, confidence)
        )
        blind = scored.loc[scored["evidence_visible"] == 0, "score"]
        rows.append(
            {
                "arm": arm,
                "model": model,
                "dataset": dataset,
                "transcripts": len(means),
                "probes": count,
                "unscored": len(group) - count,
                "recall": recall,
                "low": low,
                "high": high,
                "interval": f"{'clustered by transcript' if clustered else 'Wilson'} {confidence:.0%}",
                "evidence_visible": float(group.groupby("transcript")["evidence_visible"].mean().mean()),
                "recall_without_evidence": float(blind.mean()) if len(blind) else math.nan,
            }
        )
    columns = ["arm", "model", "dataset", "transcripts", "probes", "unscored", "recall", "low", "high", "interval"]
    return pd.DataFrame(rows, columns=[*columns, "evidence_visible", "recall_without_evidence"])
