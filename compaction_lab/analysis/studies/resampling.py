"""How well scores go with outcomes; intervals resample whole clusters (tasks, facts) with all their rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from compaction_lab.analysis.studies.base import Measured
from compaction_lab.statistics.estimators import Interval

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Rows:
    """Scores beside outcomes.

    Parameters
    ----------
    scores, outcomes
        Both between 0 and 1, a pair a row.
    groups
        Numbers of what means are taken over (strategies, depths).
    clusters
        Numbers of what is resampled.
    """

    scores: Floats
    outcomes: Floats
    groups: Places
    clusters: Places

    @classmethod
    def of(cls, scores: ArrayLike, outcomes: ArrayLike, groups: Sequence[object], clusters: Sequence[object]) -> Rows:
        """Return rows with groups and clusters numbered in the order of their names."""
        return cls(
            np.asarray(scores, dtype=np.float64),
            np.asarray(outcomes, dtype=np.float64),
            _numbered(groups),
            _numbered(clusters),
        )

    def taken(self, places: Places) -> Rows:
        """Return the rows at some places."""
        return Rows(self.scores[places], self.outcomes[places], self.groups[places], self.clusters[places])


Measure = Callable[[Rows], float]


def measured(rows: Rows, measure: Measure, *, resamples: int = RESAMPLES, seed: int = 0) -> Measured:
    """Return a measure with the percentile interval of resampled clusters, less those where it is undefined.

    Parameters
    ----------
    rows
        The rows.
    measure
        What is measured.
    resamples, seed
        How many resamples, and their seed.
    """
    members = [np.flatnonzero(rows.clusters == cluster) for cluster in np.unique(rows.clusters)]
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(resamples):
        drawn = generator.integers(0, len(members), len(members))
        places = np.concatenate([members[at] for at in drawn])
        again = rows.taken(places)
        copies = np.repeat(np.arange(len(drawn)), [len(members[at]) for at in drawn])
        found.append(measure(replace(again, clusters=copies)))
    known = [value for value in found if math.isfinite(value)]
    estimate = measure(rows)
    interval = None
    if known:
        low, high = np.quantile(known, [0.025, 0.975])
        interval = Interval(estimate, float(low), float(high))
    return Measured(estimate, interval, len(rows.scores), len(members))


def over_groups(rows: Rows) -> float:
    """Return Spearman's correlation of the groups' mean scores and mean outcomes."""
    sizes = np.bincount(rows.groups)
    present = sizes > 0
    scores, outcomes = (_means(rows.groups, side, sizes)[present] for side in (rows.scores, rows.outcomes))
    return _spearman(scores, outcomes)


def over_groups_p(rows: Rows) -> float:
    """Return the exact two-sided p of no rank correlation over the groups: all orders of their outcomes."""
    sizes = np.bincount(rows.groups)
    scores, outcomes = (_means(rows.groups, side, sizes) for side in (rows.scores, rows.outcomes))
    observed = abs(_spearman(scores, outcomes))
    orders = [abs(_spearman(scores, np.array(order))) for order in permutations(outcomes)]
    return float(np.mean([found >= observed - 1e-12 for found in orders]))


def within_clusters(rows: Rows) -> float:
    """Return the mean Kendall tau-b of the clusters on which neither side is constant."""
    order = np.argsort(rows.clusters, kind="stable")
    bounds = np.flatnonzero(np.diff(rows.clusters[order])) + 1
    taus = []
    for places in np.split(order, bounds):
        tau = _tau_b(rows.scores[places], rows.outcomes[places])
        if math.isfinite(tau):
            taus.append(tau)
    return float(np.mean(taus)) if taus else math.nan


def area(rows: Rows) -> float:
    """Return the area under the ROC curve; an outcome of at least one half counts as success."""
    return auc(rows.scores, rows.outcomes)


def brier(rows: Rows) -> float:
    """Return the mean squared distance of score and outcome."""
    return float(np.square(rows.scores - rows.outcomes).mean())


def slope(rows: Rows) -> float:
    """Return the slope of outcome on score: 1 when scores are calibrated, less when they are too extreme."""
    spread = float(np.var(rows.scores))
    return float(np.cov(rows.scores, rows.outcomes, ddof=0)[0, 1] / spread) if spread else math.nan


def auc(scores: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the area under the ROC curve, ties counted half; NaN with one class only.

    Examples
    --------
    >>> auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(outcomes, dtype=np.float64) >= 0.5  # noqa: PLR2004
    right, wrong = int(truth.sum()), int((~truth).sum())
    if not right or not wrong:
        return math.nan
    ranks = stats.rankdata(values)
    return float((ranks[truth].sum() - right * (right + 1) / 2) / (right * wrong))


def _means(groups: Places, values: Floats, sizes: Places) -> Floats:
    """Return the mean of each group, rounded so that sums of one value in two orders tie; 0 for an empty group."""
    means: Floats = np.round(np.bincount(groups, weights=values) / np.maximum(sizes, 1), 12)
    return means


def _spearman(one: Floats, two: Floats) -> float:
    if np.ptp(one) == 0 or np.ptp(two) == 0:
        return math.nan
    return float(np.corrcoef(stats.rankdata(one), stats.rankdata(two))[0, 1])


def _tau_b(one: Floats, two: Floats) -> float:
    first, second = (np.sign(side[:, None] - side[None, :]) for side in (one, two))
    bound = float(np.sqrt(np.abs(first).sum() * np.abs(second).sum()))
    return float((first * second).sum()) / bound if bound else math.nan


def _numbered(names: Sequence[object]) -> Places:
    order = {name: place for place, name in enumerate(sorted(set(names), key=str))}
    return np.array([order[name] for name in names], dtype=np.intp)
