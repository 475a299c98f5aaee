"""Paired differences as the studies state them: published-style percentiles, and the lab's own interval and test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from compaction_lab.analysis.studies.base import Measured
from compaction_lab.statistics import estimators
from compaction_lab.statistics.estimators import Interval


@dataclass(frozen=True, slots=True)
class Paired:
    """A paired comparison.

    Parameters
    ----------
    difference
        The mean difference with the lab's 95 % interval, pairs and clusters.
    error
        Its (clustered) standard error.
    p
        McNemar exact for 0/1 outcomes one a cluster, else the sign-flip permutation test.
    percentile, percentile_p
        The plain percentile bootstrap interval, and ``2 min(P(d* >= 0), P(d* <= 0))``, as published studies state them.
    correlation
        Of the pairs.
    unpaired_error
        The standard error that two independent samples of this size would have.
    detectable
        The smallest true difference seen with 80 % power.
    """

    difference: Measured
    error: float
    p: float
    percentile: Interval
    percentile_p: float
    correlation: float
    unpaired_error: float
    detectable: float


def paired(first: ArrayLike, second: ArrayLike, clusters: Sequence[object] | None = None, *, seed: int = 0) -> Paired:
    """Compare two lists of values of the same items, first less second.

    Parameters
    ----------
    first, second
        The values, in the same order.
    clusters
        What each pair belongs to; each is its own without.
    seed
        Of every resampling.
    """
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    differences = one - two
    number = differences.size if clusters is None else len(set(clusters))
    error = estimators.clustered_standard_error(differences, clusters)
    means = estimators.clustered_bootstrap(differences, clusters, seed=seed)
    low, high = np.quantile(means, [0.025, 0.975])
    binary = bool(np.isin(one, (0, 1)).all() and np.isin(two, (0, 1)).all()) and number == differences.size
    if binary:
        gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
        p = estimators.mcnemar_exact(gained, lost)
        interval = estimators.matched_rates_interval(gained, lost, number)
    else:
        p = estimators.sign_flip_p(differences, clusters, seed=seed)
        interval = estimators.clustered_interval(differences, clusters, seed=seed)
    errors = [estimators.clustered_standard_error(side, clusters) for side in (one, two)]
    return Paired(
        Measured(float(differences.mean()), interval, differences.size, number),
        error,
        p,
        Interval(float(differences.mean()), float(low), float(high)),
        float(min(1.0, 2 * min((means >= 0).mean(), (means <= 0).mean()))),
        estimators.correlation(one, two),
        float(np.hypot(errors[0], errors[1])),
        estimators.smallest_detectable(error, clusters=number),
    )


def scaled(measured: Measured, factor: float) -> Measured:
    """Return a value in another unit.

    Examples
    --------
    >>> scaled(Measured(0.25, Interval(0.25, 0.2, 0.3)), 100).interval.high
    30.0
    """
    interval = measured.interval
    if interval is not None:
        interval = Interval(interval.estimate * factor, interval.low * factor, interval.high * factor)
    return Measured(measured.value * factor, interval, measured.n, measured.clusters)
