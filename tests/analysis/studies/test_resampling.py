"""Measures of agreement against scipy, and that whole clusters are resampled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from compaction_lab.analysis.studies import resampling
from compaction_lab.analysis.studies.resampling import Rows, measured

RANDOM = np.random.default_rng(3)
SCORES = RANDOM.integers(0, 4, 60) / 3
OUTCOMES = (RANDOM.random(60) < 0.2 + 0.6 * SCORES).astype(float)
ROWS = Rows.of(SCORES, OUTCOMES, list(range(5)) * 12, [str(place // 5) for place in range(60)])


def test_measures_match_scipy() -> None:
    right, wrong = SCORES[OUTCOMES == 1], SCORES[OUTCOMES == 0]
    expected = stats.mannwhitneyu(right, wrong).statistic / (len(right) * len(wrong))
    assert resampling.area(ROWS) == pytest.approx(expected)
    assert resampling.slope(ROWS) == pytest.approx(stats.linregress(SCORES, OUTCOMES).slope)
    means = [[round(side[ROWS.groups == group].mean(), 12) for group in range(5)] for side in (SCORES, OUTCOMES)]
    assert resampling.over_groups(ROWS) == pytest.approx(stats.spearmanr(*means).statistic)
    taus = [stats.kendalltau(SCORES[at : at + 5], OUTCOMES[at : at + 5]).statistic for at in range(0, 60, 5)]
    assert resampling.within_clusters(ROWS) == pytest.approx(np.nanmean(taus))


def test_five_groups_in_order_are_just_short_of_proof() -> None:
    rows = Rows.of([0.1, 0.2, 0.3, 0.4, 0.5], [0, 0.2, 0.4, 0.6, 1], list("abcde"), list("abcde"))
    assert resampling.over_groups(rows) == pytest.approx(1)
    assert resampling.over_groups_p(rows) == pytest.approx(2 / 120)


def test_clusters_are_resampled_whole_and_seeded() -> None:
    one = measured(ROWS, resampling.area, resamples=200)
    assert one == measured(ROWS, resampling.area, resamples=200)
    assert (one.n, one.clusters) == (60, 12)
    assert one.interval is not None
    assert one.interval.low < one.value < one.interval.high
    sole = Rows(ROWS.scores, ROWS.outcomes, ROWS.groups, np.zeros(60, dtype=np.intp))
    interval = measured(sole, resampling.area, resamples=20).interval
    assert interval is not None
    assert interval.low == interval.high


def test_what_is_undefined_is_nan() -> None:
    same = Rows.of([1, 1], [1, 1], ["a", "b"], ["t", "t"])
    assert all(
        math.isnan(measure(same))
        for measure in (resampling.area, resampling.over_groups, resampling.within_clusters, resampling.slope)
    )
    assert measured(same, resampling.area, resamples=5).interval is None
