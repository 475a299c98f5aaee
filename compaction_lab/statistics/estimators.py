"""Estimators as pure functions on arrays: means, intervals and tests for paired, clustered data; no tables here.

The unit of resampling is the cluster (a transcript): turns, trials and probes of one transcript are not independent.
Every randomised estimator takes a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from compaction_lab.errors import StatisticsError

Floats = NDArray[np.float64]

EXACT_CLUSTERS = 18
"""Up to this many clusters all 2^n sign flips are enumerated."""

FARTHEST = 2.0
"""How many times as far as Student's t a bootstrap-t bound may lie from the estimate."""

_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate between its two bounds."""

    estimate: float
    low: float
    high: float


def _floats(values: ArrayLike, what: str = "values") -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise StatisticsError(f"{what}: expected a non-empty list of numbers, found shape {array.shape}")
    if not np.isfinite(array).all():
        raise StatisticsError(f"{what}: found missing or infinite numbers; leave such pairs out and say how many")
    return array


def cluster_sums(values: ArrayLike, clusters: Sequence[object] | NDArray[np.generic] | None) -> tuple[Floats, Floats]:
    """Return the sum and the number of the values of each cluster; each value is its own without ``clusters``."""
    array = _floats(values)
    if clusters is None:
        return array, np.ones_like(array)
    if len(clusters) != array.size:
        raise StatisticsError(f"clusters: expected one per value ({array.size}), found {len(clusters)}")
    numbers: dict[object, int] = {}
    codes = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    sums: Floats = np.bincount(codes, weights=array).astype(np.float64)
    return sums, np.bincount(codes).astype(np.float64)


def standard_error(values: ArrayLike) -> float:
    """Return the standard error of a mean, sqrt(sum (s - mean)^2 / (n (n - 1))) (Miller 2024, arXiv:2411.00640)."""
    return clustered_standard_error(values, None)


def clustered_standard_error(values: ArrayLike, clusters: Sequence[object] | NDArray[np.generic] | None) -> float:
    """Return the cluster-robust standard error of a mean; NaN with fewer than two clusters.

    ``sqrt(G / (G - 1) * sum_c (sum_{i in c} (s_i - mean))^2) / n`` over G clusters: Miller (2024, arXiv:2411.00640,
    section 2.2) with the usual small-sample factor, so that clusters of one give the standard error of the mean.
    """
    sums, sizes = cluster_sums(values, clusters)
    groups, count = sums.size, sizes.sum()
    if groups <= 1:
        return float("nan")
    residuals = sums - sums.sum() / count * sizes
    return float(np.sqrt(groups / (groups - 1) * np.square(residuals).sum()) / count)


def clustered_bootstrap(
    values: ArrayLike,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> Floats:
    """Return the sorted means of resamples of whole clusters.

    Parameters
    ----------
    values
        One number per observation; for a paired comparison, the differences.
    clusters
        The cluster of each value.
    resamples, seed
        How many resamples, and the seed of their generator.
    """
    sums, sizes = cluster_sums(values, clusters)
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // sums.size)
    means = np.empty(resamples)
    for start in range(0, resamples, rows):
        drawn = generator.integers(0, sums.size, (min(rows, resamples - start), sums.size))
        means[start : start + len(drawn)] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    means.sort()
    return means


def bootstrap_interval(means: Floats, estimate: float, clusters: int, *, level: float = 0.95) -> Interval:
    """Return the expanded percentile interval of bootstrap means.

    The plain percentile interval is too narrow for few clusters; its tails are moved so that for normal data it agrees
    with the t interval: ``alpha' = Phi(-sqrt(G / (G - 1)) t_{G-1, alpha/2})`` (Hesterberg 2015, *The American
    Statistician* 69:4, section 4.1.1).

    Parameters
    ----------
    means
        Sorted resampled means (:func:`clustered_bootstrap`).
    estimate
        The mean of the data.
    clusters
        How many clusters were resampled.
    level
        Of confidence.
    """
    widened = np.sqrt(clusters / (clusters - 1)) * stats.t.ppf((1 + level) / 2, clusters - 1)
    tail = stats.norm.sf(widened)
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(estimate, float(low), float(high))


def studentised_bootstrap(
    values: ArrayLike,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> Floats:
    """Return the sorted ratios ``(mean* - mean) / error*`` of resamples of whole clusters.

    A resample whose values do not vary has no finite ratio: it is infinite, or 0 where its mean is that of the data.

    Parameters
    ----------
    values, clusters, resamples, seed
        As in :func:`clustered_bootstrap`.
    """
    sums, sizes = cluster_sums(values, clusters)
    residuals = sums - sums.sum() / sizes.sum() * sizes
    groups = sums.size
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // groups)
    ratios = np.empty(resamples)
    for start in range(0, resamples, rows):
        drawn = generator.integers(0, groups, (min(rows, resamples - start), groups))
        taken, counts = residuals[drawn], sizes[drawn]
        weight = counts.sum(axis=1)
        shift = taken.sum(axis=1) / weight
        taken -= shift[:, None] * counts
        error = np.sqrt(groups / (groups - 1) * np.square(taken).sum(axis=1)) / weight
        error[error <= 1e-12 * np.abs(shift)] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios[start : start + len(drawn)] = np.where(shift == 0, 0.0, shift / error)
    ratios.sort()
    return ratios


def clustered_interval(
    values: ArrayLike,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the interval of a mean that the lab reports: on each side the wider of bootstrap-t and Student's t.

    The bootstrap-t interval (Efron and Tibshirani 1993, section 12.5; clusters are resampled and every resample is
    divided by its own clustered standard error) follows skewed data, where t and percentile intervals are too short on
    the side of the tail; t holds where tails are long on both sides and bootstrap-t is short. Bootstrap-t may reach
    twice as far as t at most, beyond which it says only that few clusters differ from the rest; where too many
    resamples do not vary at all, t alone is left. ``benchmarks/bench_coverage.py`` prints how often it covers.

    Parameters
    ----------
    values, clusters, resamples, seed
        As in :func:`clustered_bootstrap`.
    level
        Of confidence.

    Raises
    ------
    StatisticsError
        There is one cluster only.
    """
    sums, sizes = cluster_sums(values, clusters)
    if sums.size <= 1:
        raise StatisticsError("one cluster: an interval needs at least two; pool more data")
    estimate, error = float(sums.sum() / sizes.sum()), clustered_standard_error(values, clusters)
    if error == 0:
        return Interval(estimate, estimate, estimate)
    ratios = studentised_bootstrap(values, clusters, resamples=resamples, seed=seed)
    tail = (1 - level) / 2
    student = float(stats.t.ppf(1 - tail, sums.size - 1))
    lower, upper = np.quantile(ratios, [tail, 1 - tail], method="higher")

    def reach(ratio: float) -> float:
        return min(max(student, ratio), FARTHEST * student) if np.isfinite(ratio) else student

    return Interval(estimate, estimate - reach(float(upper)) * error, estimate + reach(-float(lower)) * error)


def matched_rates_interval(only_first: int, only_second: int, pairs: int, *, level: float = 0.95) -> Interval:
    """Return the interval of the difference of two rates measured on the same items.

    Wald's with half an item added to each of the four cells (Agresti and Min 2005, *Statistics in Medicine* 24:729),
    which holds for few discordant pairs, where resampling would find no variation.

    Parameters
    ----------
    only_first, only_second
        Items on which only one of the two succeeded.
    pairs
        All items.

    Raises
    ------
    StatisticsError
        Unless the counts fit into ``pairs``.

    Examples
    --------
    >>> interval = matched_rates_interval(87, 11, 306)
    >>> f"{interval.estimate:.3f} {interval.low:.2f} {interval.high:.2f}"
    '0.248 0.19 0.30'
    """
    if min(only_first, only_second) < 0 or only_first + only_second > pairs or pairs == 0:
        raise StatisticsError(f"pairs {only_first} + {only_second} of {pairs}: expected counts that fit into the pairs")
    gained, total = only_first - only_second, pairs + 2
    centre = gained / total
    error = np.sqrt(only_first + only_second + 1 - gained**2 / total) / total
    half = float(stats.norm.ppf((1 + level) / 2) * error)
    return Interval(gained / pairs, max(-1.0, centre - half), min(1.0, centre + half))


def sign_flip_p(
    differences: ArrayLike,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> float:
    """Return the two-sided p of the sign-flip permutation test of a mean difference of zero.

    All differences of a cluster change sign together. With at most 18 clusters all 2^n assignments are enumerated and
    the test is exact if the differences are symmetric about their mean (Fisher's randomisation test); beyond,
    ``resamples`` random ones and the observed one are counted.
    """
    sums, _ = cluster_sums(differences, clusters)
    observed = abs(sums.sum())
    margin = 1e-12 * np.abs(sums).sum()
    if sums.size <= EXACT_CLUSTERS:
        # Twice the flipped part is taken off the whole: the flipped parts are the sums over all subsets.
        flipped = sums.sum() - 2 * _subset_sums(sums)
        return float(np.mean(np.abs(flipped) >= observed - margin))
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // sums.size)
    extreme = 1
    for start in range(0, resamples, rows):
        signs = generator.integers(0, 2, (min(rows, resamples - start), sums.size)) * 2 - 1
        extreme += int(np.count_nonzero(np.abs(signs @ sums) >= observed - margin))
    return float(extreme / (resamples + 1))


def sign_flip_interval(
    differences: ArrayLike, clusters: Sequence[object] | NDArray[np.generic] | None = None, *, level: float = 0.95
) -> Interval:
    """Return the interval of mean differences that the exact sign-flip test does not reject.

    Its bounds are order statistics of the means of all non-empty subsets of clusters (Hartigan 1969, *Journal of the
    American Statistical Association* 64:1303). Coverage is exact for differences symmetric about their mean and at
    least ``level``; with five clusters even the widest interval covers only 93.75 %.

    Raises
    ------
    StatisticsError
        With more than 18 clusters, or too few for the level.
    """
    sums, sizes = cluster_sums(differences, clusters)
    rank = int(np.floor((1 - level) / 2 * 2**sums.size + 1e-9))
    if rank == 0 or sums.size > EXACT_CLUSTERS:
        needed = f"{minimum_clusters(level)} to {EXACT_CLUSTERS}"
        raise StatisticsError(f"{sums.size} clusters: a {level:.0%} sign-flip interval needs {needed}; pool more data")
    means = np.sort(_subset_sums(sums)[1:] / _subset_sums(sizes)[1:])
    return Interval(float(sums.sum() / sizes.sum()), float(means[rank - 1]), float(means[-rank]))


def minimum_clusters(level: float = 0.95) -> int:
    """Return how many clusters a sign-flip test needs before any result could reach ``1 - level`` (2 / 2^n at best).

    Examples
    --------
    >>> minimum_clusters(0.95)
    6
    """
    return int(np.ceil(1 - np.log2(1 - level) - 1e-9))


def _subset_sums(values: Floats) -> Floats:
    """Return the sums of all 2^n subsets, the empty one first."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Return the two-sided exact p of McNemar's test from the two discordant counts, binomial(b + c, 1/2).

    Examples
    --------
    >>> f"{mcnemar_exact(87, 11):.0e}"
    '8e-16'
    """
    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    return float(min(1.0, 2 * stats.binom.cdf(min(only_first, only_second), discordant, 0.5)))


def wilson_interval(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Return Wilson's score interval of a rate, which unlike Wald's holds near 0 and 1 (Wilson 1927).

    Raises
    ------
    StatisticsError
        Unless ``0 <= successes <= trials`` and there is a trial.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise StatisticsError(f"rate {successes}/{trials}: expected 0 <= successes <= trials and at least one trial")
    rate, z = successes / trials, float(stats.norm.ppf((1 + level) / 2))
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * np.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    low = 0.0 if successes == 0 else float(centre - half)
    return Interval(rate, low, 1.0 if successes == trials else float(centre + half))


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted by Holm's step-down method (family-wise error); missing ones stay missing."""
    return _adjusted(p_values, lambda ordered: np.maximum.accumulate(ordered * np.arange(ordered.size, 0, -1)))


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Return p-values adjusted by Benjamini and Hochberg (false discovery rate); missing ones stay missing."""

    def step_up(ordered: Floats) -> Floats:
        scaled = ordered * ordered.size / np.arange(1, ordered.size + 1)
        return np.minimum.accumulate(scaled[::-1])[::-1]

    return _adjusted(p_values, step_up)


def smallest_detectable(error: float, *, clusters: int | None = None, level: float = 0.95, power: float = 0.8) -> float:
    """Return the smallest true difference that a study with this standard error would show with this power.

    ``(q_{1-a/2} + q_{power}) * error``, with quantiles of t with ``clusters - 1`` degrees of freedom, or of the normal
    distribution without ``clusters`` (Miller 2024, section 5).
    """
    law = stats.norm if clusters is None else stats.t(clusters - 1)
    return float((law.ppf((1 + level) / 2) + law.ppf(power)) * error)


def sample_size(
    difference: float,
    variance: float,
    *,
    noise: Sequence[tuple[float, int]] = (),
    level: float = 0.95,
    power: float = 0.8,
) -> int:
    """Return how many paired questions show a difference with this power (Miller 2024, section 5).

    ``n = (z_{1-a/2} + z_{power})^2 (w^2 + s_A^2/K_A + s_B^2/K_B) / d^2``.

    Parameters
    ----------
    difference
        The true difference to be seen.
    variance
        ``w^2``, the variance of the paired differences of question means.
    noise
        For each system the variance of its answers to one question and the number of answers drawn.

    Examples
    --------
    >>> sample_size(0.03, 1 / 9), sample_size(0.03, 1 / 9, noise=[(1 / 6, 1)] * 2)
    (969, 3876)
    >>> sample_size(0.03, 1 / 9, noise=[(1 / 6, 10)] * 2)
    1260
    """
    if difference == 0:
        raise StatisticsError("difference 0: no sample is large enough to see it; name the smallest that matters")
    reach = stats.norm.ppf((1 + level) / 2) + stats.norm.ppf(power)
    spread = variance + sum(answer / drawn for answer, drawn in noise)
    return int(np.ceil(reach**2 * spread / difference**2))


def correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Return Pearson's correlation of pairs, what pairing gains by; NaN when either side does not vary."""
    one, two = _floats(first), _floats(second)
    if one.size != two.size:
        raise StatisticsError(f"pairs: expected two lists of one length, found {one.size} and {two.size}")
    if one.size <= 1 or np.ptp(one) == 0 or np.ptp(two) == 0:
        return float("nan")
    return float(np.corrcoef(one, two)[0, 1])


def trimmed_mean(values: ArrayLike, share: float = 0.1) -> float:
    """Return the mean without the lowest and the highest ``share`` of the values, for costs with a heavy tail."""
    array = np.sort(_floats(values))
    cut = int(share * array.size)
    if not 0 <= 2 * share < 1:
        raise StatisticsError(f"share {share}: expected from 0 up to but not including 0.5")
    return float(array[cut : array.size - cut].mean())


def median(values: ArrayLike) -> float:
    """Return the median."""
    return float(np.median(_floats(values)))


def median_interval(values: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the interval of a median between order statistics, exact for any continuous distribution.

    The k-th smallest and the k-th largest value, k the largest with ``2 P(Bin(n, 1/2) < k) <= 1 - level``: what the
    sign test does not reject. Bounds are infinite with too few values.

    Examples
    --------
    >>> median_interval([1, 2, 3, 4, 5, 6, 7, 8])
    Interval(estimate=4.5, low=1.0, high=8.0)
    """
    array = np.sort(_floats(values))
    rank = int(stats.binom.ppf((1 - level) / 2, array.size, 0.5))
    if stats.binom.cdf(rank, array.size, 0.5) <= (1 - level) / 2:
        rank += 1
    if rank == 0:
        return Interval(float(np.median(array)), -np.inf, np.inf)
    return Interval(float(np.median(array)), float(array[rank - 1]), float(array[-rank]))


def trimmed_interval(values: ArrayLike, share: float = 0.2, *, level: float = 0.95) -> tuple[Interval, float, float]:
    """Return the interval of a trimmed mean, its standard error and the two-sided p of zero.

    From the winsorised variance, with t on the values left less one (Yuen 1974, *Biometrika* 61:165, one sample).

    Parameters
    ----------
    values
        Independent values, one a cluster.
    share
        What is cut off at each end.
    level
        Of confidence.

    Raises
    ------
    StatisticsError
        Fewer than two values are left.
    """
    array = np.sort(_floats(values))
    estimate, cut = trimmed_mean(array, share), int(share * array.size)
    left = array.size - 2 * cut
    if left <= 1:
        raise StatisticsError(f"{array.size} values less {cut} at each end: at least two must be left; trim less")
    winsorised = np.clip(array, array[cut], array[array.size - 1 - cut])
    error = float(winsorised.std(ddof=1) * np.sqrt((array.size - 1) / (left * (left - 1))))
    reach = float(stats.t.ppf((1 + level) / 2, left - 1)) * error
    p = 1.0 if estimate == 0 else 0.0
    if error > 0:
        p = float(2 * stats.t.sf(abs(estimate) / error, left - 1))
    return Interval(estimate, estimate - reach, estimate + reach), error, p


def skewness(values: ArrayLike) -> float:
    """Return the adjusted skewness of a sample; 0 when it does not vary, NaN below three values."""
    array = _floats(values)
    if array.size <= 2:  # noqa: PLR2004 - the adjustment divides by n - 2
        return float("nan")
    return 0.0 if np.ptp(array) == 0 else float(stats.skew(array, bias=False))


def _adjusted(p_values: ArrayLike, step: Callable[[Floats], Floats]) -> Floats:
    given = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full_like(given, np.nan)
    places = np.flatnonzero(~np.isnan(given))
    order = places[np.argsort(given[places], kind="stable")]
    adjusted[order] = np.minimum(step(given[order]), 1.0)
    return adjusted
