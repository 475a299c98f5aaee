"""What is left of a conversation's facts by how old they are, and by where they stand in what is sent."""

from __future__ import annotations

import math
from itertools import pairwise

import pandas as pd

from compaction_lab.analysis.misses import age_class, age_classes

KEYS = ["arm", "model", "dataset"]
POSITION_EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Bounds of the classes of relative token position; 0 is the beginning of what is sent."""

OUT_OF_SIGHT = "not sent"
"""The class of position of a fact of whose evidence nothing is sent any more, word for word."""


def position_class(position: float) -> str:
    """Return the class of a relative token position.

    Examples
    --------
    >>> position_class(0.05), position_class(1.0), position_class(float("nan"))
    ('0-0.2', '0.8-1', 'not sent')
    """
    if math.isnan(position):
        return OUT_OF_SIGHT
    bounds = list(pairwise(POSITION_EDGES))
    low, high = next((pair for pair in bounds if position < pair[1]), bounds[-1])
    return f"{low:g}-{high:g}"


def position_classes() -> list[str]:
    """Return the classes of position, the beginning first, then what is out of sight."""
    return [*(position_class(low) for low in POSITION_EDGES[:-1]), OUT_OF_SIGHT]


def retention_by_age_and_position(probes: pd.DataFrame, *, references: bool = False) -> pd.DataFrame:
    """Return the mean score of each arm's probes twice: by the age of the fact, and by its place in what is sent.

    Age is counted in the untouched history, so every arm has the same probes in an age class. The place is the arm's
    own: compaction moves facts towards the edges or out of sight, so the classes of place hold different probes.

    Parameters
    ----------
    probes
        The *probes* table.
    references
        References (values the agent used again) instead of all other probes; rubric judgments are left out.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, by`` (``age`` or ``position``) ``, class, score, probes, transcripts``.
    """
    kinds = probes["kind"] == "reference" if references else ~probes["kind"].isin(["reference", "rubric"])
    rows = probes[kinds].astype({"score": float, "age_tokens": "float64", "position": float}).dropna(subset=["score"])
    aged = rows.dropna(subset=["age_tokens"])
    by_age = pd.Categorical(aged["age_tokens"].map(age_class), age_classes(), ordered=True)
    by_position = pd.Categorical(rows["position"].map(position_class), position_classes(), ordered=True)
    parts = [_grouped(aged, by_age, "age"), _grouped(rows, by_position, "position")]
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def _grouped(rows: pd.DataFrame, classes: pd.Categorical, by: str) -> pd.DataFrame:
    grouped = rows.assign(**{"class": classes}).groupby([*KEYS, "class"], observed=True, sort=True, as_index=False)
    table = grouped.agg(score=("score", "mean"), probes=("score", "size"), transcripts=("transcript", "nunique"))
    table.insert(len(KEYS), "by", by)
    return table.astype({"class": str})
