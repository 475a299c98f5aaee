"""What of a conversation's planted or annotated facts is left, by kind and age; superseded values; standing rules."""

from __future__ import annotations

import pandas as pd

from compaction_lab.analysis.misses import age_class, age_classes

KEYS = ["arm", "model", "dataset"]
CONSTRAINT = "constraint"


def retention(probes: pd.DataFrame) -> pd.DataFrame:
    """Return how much of each kind of fact is still in sight and answered, by age.

    Parameters
    ----------
    probes
        The *probes* table; references and rubric judgments are left out.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, kind, age`` (class, in tokens) ``, visible`` (mean share of evidence in what is sent)
        ``, recall`` (mean score of the reader's answers) ``, probes, transcripts``.
    """
    rows = probes[~probes["kind"].isin(["reference", "rubric"])]
    rows = rows.astype({"score": float, "evidence_visible": float, "age_tokens": "float64"})
    ages = [*age_classes(), "unknown"]
    rows = rows.assign(age=pd.Categorical(rows["age_tokens"].map(age_class), ages, ordered=True))
    grouped = rows.groupby([*KEYS, "kind", "age"], observed=True, sort=True, as_index=False)
    return grouped.agg(
        visible=("evidence_visible", "mean"),
        recall=("score", "mean"),
        probes=("score", "size"),
        transcripts=("transcript", "nunique"),
    )


def retention_by_kind(probes: pd.DataFrame) -> pd.DataFrame:
    """Return how much of each kind of fact is in sight and answered, all ages together.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, kind, visible, recall, probes, transcripts``.
    """
    rows = probes[~probes["kind"].isin(["reference", "rubric"])].astype({"score": float, "evidence_visible": float})
    grouped = rows.groupby([*KEYS, "kind"], sort=True, as_index=False)
    return grouped.agg(
        visible=("evidence_visible", "mean"),
        recall=("score", "mean"),
        probes=("score", "size"),
        transcripts=("transcript", "nunique"),
    )


def stale_answers(details: pd.DataFrame) -> pd.DataFrame:
    """Return what becomes of facts that were updated: answered right, with the superseded value, or not at all.

    Parameters
    ----------
    details
        A run's ``probe_details``; only probes that name superseded values are read. An answer that states both values
        counts as ``both``, whatever the judge said: a quotation of two statements settles nothing.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, updated`` (probes) ``, current, both, stale, neither`` (shares that sum to 1).
    """
    rows = details[details["stale"].notna()]
    right, old = rows["score"].fillna(0) > 0, rows["stale"].fillna(value=False).astype(bool)
    rows = rows.assign(
        current=(right & ~old).astype(float),
        both=(right & old).astype(float),
        stale_only=(~right & old).astype(float),
        neither=(~right & ~old).astype(float),
    )
    grouped = rows.groupby(KEYS, sort=True, as_index=False)
    return grouped.agg(
        updated=("score", "size"),
        current=("current", "mean"),
        both=("both", "mean"),
        stale=("stale_only", "mean"),
        neither=("neither", "mean"),
    )


def constraint_survival(probes: pd.DataFrame) -> pd.DataFrame:
    """Return how many standing rules (``kind=constraint``) are still in sight word for word.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, constraints, survived`` (share) ``, recall``.
    """
    rows = probes[probes["kind"] == CONSTRAINT].astype({"score": float, "evidence_visible": float})
    rows = rows.assign(survived=(rows["evidence_visible"] == 1).astype(float))
    grouped = rows.groupby(KEYS, sort=True, as_index=False)
    return grouped.agg(constraints=("survived", "size"), survived=("survived", "mean"), recall=("score", "mean"))
