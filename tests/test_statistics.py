"""Estimators against scipy, brute force and published worked numbers; the comparison of arms against its rules."""

from __future__ import annotations

import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from compaction_lab.errors import StatisticsError
from compaction_lab.records import Cell, UnitResult
from compaction_lab.statistics import estimators as es
from compaction_lab.statistics.agreement import agreement
from compaction_lab.statistics.comparison import COLUMNS, compare
from compaction_lab.sweep.loading import Run

RANDOM = np.random.default_rng(7)
NUMBERS = st.floats(-100, 100).map(lambda value: round(value, 3))


def test_standard_errors_match_scipy_and_the_clustered_formula() -> None:
    values = RANDOM.normal(size=40)
    assert es.standard_error(values) == pytest.approx(stats.sem(values))
    assert es.clustered_standard_error(values, list(range(40))) == pytest.approx(stats.sem(values))
    means = values.reshape(10, 4).mean(axis=1)  # equal clusters: the standard error of their means
    assert es.clustered_standard_error(values, np.repeat(np.arange(10), 4)) == pytest.approx(stats.sem(means))
    assert math.isnan(es.clustered_standard_error([1.0, 2.0], ["one", "one"]))


def test_the_clustered_error_of_unequal_clusters_by_hand() -> None:
    """Mean 4; residuals sum to -5, -1 and 6 by cluster: sqrt(3 / 2 * (25 + 1 + 36)) / 5."""
    assert es.clustered_standard_error([1, 2, 3, 4, 10], list("aabbc")) == pytest.approx(math.sqrt(93) / 5)


def test_bootstrap_resamples_whole_clusters_and_is_seeded() -> None:
    values, clusters = RANDOM.normal(size=120), np.repeat(np.arange(30), 4)
    means = es.clustered_bootstrap(values, clusters, resamples=20_000, seed=3)
    assert means.std() == pytest.approx(es.clustered_standard_error(values, clusters) * np.sqrt(29 / 30), rel=0.03)
    assert (means == es.clustered_bootstrap(values, clusters, resamples=20_000, seed=3)).all()
    assert not (means == es.clustered_bootstrap(values, clusters, resamples=20_000, seed=4)).all()
    interval = es.bootstrap_interval(means, values.mean(), 30)
    t = stats.t.interval(0.95, 29, values.mean(), es.clustered_standard_error(values, clusters))
    assert (interval.low, interval.high) == pytest.approx(t, abs=0.02)


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_sign_flip_enumerates_all_signs(differences: list[float]) -> None:
    flips = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
             for signs in itertools.product((1, -1), repeat=len(differences))]  # fmt: skip
    expected = np.mean([flip >= abs(sum(differences)) - 1e-9 for flip in flips])
    assert es.sign_flip_p(differences) == pytest.approx(expected)


def test_sign_flip_matches_scipy() -> None:
    differences = RANDOM.normal(0.4, 1, size=10)
    found = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert es.sign_flip_p(differences) == pytest.approx(found.pvalue)
    many = RANDOM.normal(0.25, 1, size=60)
    assert es.sign_flip_p(many, seed=1) == pytest.approx(stats.ttest_1samp(many, 0).pvalue, abs=0.02)


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, st.integers(0, 7)), min_size=8, max_size=24), NUMBERS)
def test_sign_flip_interval_holds_what_the_test_does_not_reject(pairs: list[tuple[float, int]], shift: float) -> None:
    values, clusters = np.array([value for value, _ in pairs]), [cluster for _, cluster in pairs]
    if len(set(clusters)) < es.minimum_clusters():
        with pytest.raises(StatisticsError, match="needs 6 to 18"):
            es.sign_flip_interval(values, clusters)
        return
    interval = es.sign_flip_interval(values, clusters)
    assert interval.low - 1e-9 <= interval.estimate <= interval.high + 1e-9
    for null in (interval.low - 1e-3, interval.high + 1e-3, shift):
        if not interval.low - 1e-6 <= null <= interval.high + 1e-6:
            assert es.sign_flip_p(values - null, clusters) <= 0.05
    if interval.high - interval.low > 1e-3:
        assert es.sign_flip_p(values - (interval.low + interval.high) / 2, clusters) > 0.05


@pytest.mark.parametrize("clusters", [8, 30])
def test_intervals_cover_what_they_say(clusters: int) -> None:
    generator, hits, rounds = np.random.default_rng(11), 0, 400
    groups = np.repeat(np.arange(clusters), 3)
    for seed in range(rounds):
        values = np.repeat(generator.normal(size=clusters), 3) + generator.normal(size=3 * clusters)
        if clusters < 10:
            interval = es.sign_flip_interval(values, groups)
        else:
            interval = es.clustered_interval(values, groups, resamples=1000, seed=seed)
        hits += interval.low <= 0 <= interval.high
    assert 0.92 <= hits / rounds <= 0.985


def test_the_reported_interval_follows_a_tail_and_never_undercuts_t() -> None:
    tailed = np.exp(np.random.default_rng(5).normal(size=12))
    interval = es.clustered_interval(tailed)
    t = stats.t.interval(0.95, 11, tailed.mean(), stats.sem(tailed))
    assert interval.low == pytest.approx(t[0])
    assert t[1] < interval.high <= tailed.mean() + 2 * (t[1] - tailed.mean()) + 1e-9
    few = es.clustered_interval([0.0] * 29 + [1.0])
    assert few.high - few.estimate <= 2 * stats.t.ppf(0.975, 29) * es.standard_error([0.0] * 29 + [1.0]) + 1e-9
    assert es.clustered_interval([2.0] * 8) == es.Interval(2.0, 2.0, 2.0)
    with pytest.raises(StatisticsError, match="at least two"):
        es.clustered_interval([1.0, 2.0], ["one", "one"])


def test_studentised_bootstrap_divides_by_each_resamples_own_error() -> None:
    values, clusters = RANDOM.normal(size=40), np.repeat(np.arange(10), 4)
    found = es.studentised_bootstrap(values, clusters, resamples=50, seed=2)
    drawn = np.random.default_rng(2).integers(0, 10, (50, 10))
    expected = []
    for draw in drawn:
        taken = np.concatenate([values[clusters == at] for at in draw])
        error = es.clustered_standard_error(taken, np.repeat(np.arange(10), 4))
        expected.append((taken.mean() - values.mean()) / error)
    assert found == pytest.approx(np.sort(expected))


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 40))
def test_the_interval_of_matched_rates_holds_the_difference(only_first: int, only_second: int, both: int) -> None:
    pairs = only_first + only_second + both
    interval = es.matched_rates_interval(only_first, only_second, pairs)
    assert -1 <= interval.low <= interval.estimate <= interval.high <= 1
    mirrored = es.matched_rates_interval(only_second, only_first, pairs)
    assert (mirrored.low, mirrored.high) == pytest.approx((-interval.high, -interval.low))


@given(st.lists(NUMBERS, min_size=6, max_size=40))
def test_the_interval_of_a_median_matches_scipy(values: list[float]) -> None:
    found = es.median_interval(values)
    expected = stats.quantile_test(values, p=0.5).confidence_interval(0.95)
    assert (found.low, found.high) == (expected.low, expected.high)


def test_the_trimmed_mean_matches_scipy() -> None:
    values = np.exp(RANDOM.normal(size=25)) - 1
    interval, error, p = es.trimmed_interval(values, 0.2)
    assert interval.estimate == pytest.approx(stats.trim_mean(values, 0.2))
    found = stats.ttest_ind(values, np.zeros(25) + 1e-12 * np.arange(25), trim=0.2, equal_var=False)
    assert interval.estimate / error == pytest.approx(found.statistic, rel=1e-6)
    assert p == pytest.approx(2 * stats.t.sf(abs(found.statistic), 14), rel=1e-4)
    with pytest.raises(StatisticsError, match="at least two"):
        es.trimmed_interval([1.0, 2.0, 3.0], 0.45)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test_of_discordant_pairs(only_first: int, only_second: int) -> None:
    discordant = only_first + only_second
    expected = stats.binomtest(only_first, discordant).pvalue if discordant else 1.0
    assert es.mcnemar_exact(only_first, only_second) == pytest.approx(expected)


@given(st.integers(1, 300).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_wilson_matches_scipy(rate: tuple[int, int]) -> None:
    expected = stats.binomtest(*rate).proportion_ci(method="wilson")
    found = es.wilson_interval(*rate)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values(p_values: list[float]) -> None:
    assert es.benjamini_hochberg(p_values) == pytest.approx(stats.false_discovery_control(p_values))
    ordered = sorted(p_values)
    steps = [min(1.0, (len(p_values) - place) * p) for place, p in enumerate(ordered)]
    expected = {p: max(steps[: place + 1]) for place, p in enumerate(ordered)}
    assert es.holm(p_values) == pytest.approx([expected[p] for p in p_values])


def test_holm_by_hand() -> None:
    assert es.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_missing_p_values_stay_missing_and_do_not_count() -> None:
    assert es.holm([0.01, math.nan, 0.04])[[0, 2]] == pytest.approx([0.02, 0.04])
    assert math.isnan(es.holm([0.01, math.nan, 0.04])[1])


def test_power_matches_the_published_numbers() -> None:
    """Miller (2024): 969 questions; with one answer a question 3,876; with ten 1,260. JetBrains: 1.51 points, 4.2."""
    assert es.sample_size(0.03, 1 / 9) == 969
    assert es.sample_size(0.03, 1 / 9, noise=[(1 / 6, 1), (1 / 6, 1)]) == 3876
    assert es.sample_size(0.03, 1 / 9, noise=[(1 / 6, 10), (1 / 6, 10)]) == 1260
    assert es.smallest_detectable(1.51) == pytest.approx(4.2, abs=0.05)
    assert es.smallest_detectable(math.sqrt(1 / 9 / 969)) == pytest.approx(0.03, abs=1e-5)
    assert es.smallest_detectable(1, clusters=8) > es.smallest_detectable(1)


@pytest.mark.parametrize("clusters", [8, 30])
def test_the_smallest_detectable_difference_is_seen_with_its_power(clusters: int) -> None:
    difference = es.smallest_detectable(1, clusters=clusters)
    seen = stats.nct.sf(stats.t.ppf(0.975, clusters - 1), clusters - 1, difference)
    assert seen == pytest.approx(0.8, abs=0.02)


def test_location_and_correlation_match_scipy() -> None:
    one, two = RANDOM.normal(size=50), RANDOM.normal(size=50)
    assert es.correlation(one, two) == pytest.approx(stats.pearsonr(one, two).statistic)
    assert math.isnan(es.correlation([1, 1, 1], [1, 2, 3]))
    heavy = np.exp(3 * one)
    assert es.trimmed_mean(heavy, 0.1) == pytest.approx(stats.trim_mean(heavy, 0.1))
    assert es.median(heavy) == np.median(heavy)


def test_missing_numbers_are_refused() -> None:
    with pytest.raises(StatisticsError, match="leave such pairs out"):
        es.standard_error([1.0, math.nan])


def test_agreement_measures() -> None:
    """Gwet's (2008) first table: 118 of 125 items agree, kappa is near zero and AC1 is not."""
    first = [True] * 118 + [True] * 5 + [False] * 2
    second = [True] * 118 + [False] * 5 + [True] * 2
    found = agreement(first, second)
    assert found.raw == pytest.approx(118 / 125)
    assert found.kappa == pytest.approx(-0.0234, abs=1e-4)
    assert found.ac1 == pytest.approx(0.9408, abs=1e-3)
    assert found.pabak == pytest.approx(2 * 118 / 125 - 1)


def test_kappa_by_hand() -> None:
    """20 and 15 of 50 agree; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5 would."""
    first = [True] * 25 + [False] * 25
    second = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    assert agreement(first, second).kappa == pytest.approx(0.4)


def test_kappa_is_undefined_when_one_class_is_empty() -> None:
    found = agreement([False] * 50, [False] * 50, categories=[True, False])
    assert (found.raw, found.kappa, found.ac1, found.pabak) == (1.0, None, 1.0, 1.0)
    assert agreement(["a"], ["a"]).ac1 is None


def test_kappa_of_the_published_judges() -> None:
    data = os.environ.get("COMPACTION_LAB_DATA")
    path = Path(data or "", "published/lost_in_compaction/human_judge_positives.json")
    if data is None or not path.exists():
        pytest.skip("needs COMPACTION_LAB_DATA with the lost-in-compaction judgments")
    items = json.loads(path.read_text())["items"]
    for label, kappa in (("recalled", 0.831), ("accurate", 0.879)):
        human, judged = ([item[rater] for item in items] for rater in ("human", f"strict_{label}"))
        assert agreement([each[label] for each in human], judged).kappa == pytest.approx(kappa, abs=1e-3)


def run(name: str, arms: dict[str, dict[str, float | None]], baseline: str | None = "none", **more: object) -> Run:
    """Return a run whose units have one call of the given cost, by arm and transcript."""
    cells = [Cell(f"{arm}-{more}", arm, "m", "d", 0, {"baseline_arm": baseline, **more}) for arm in arms]  # type: ignore[dict-item]
    results = {}
    for cell in cells:
        for transcript, cost in arms[cell.arm].items():
            row = {"turn": 1, "call": 1, "purpose": "agent", "input_tokens": 10, "cost_uncached_usd": cost}
            results[cell.key, transcript, 0] = UnitResult(calls=[row])  # type: ignore[list-item]
    return Run.from_results(cells, results, name=name)


def costs(count: int, shift: float = 0.0, first: int = 0) -> dict[str, float | None]:
    return {f"t{n}": 10.0 + n + shift * (1 + n % 3) for n in range(first, first + count)}


def test_compare_pairs_by_transcript() -> None:
    found = compare(run("r", {"none": costs(12), "cut": costs(12, -1.0), "same": costs(12)}))
    assert tuple(found.columns) == COLUMNS
    cut, same = (found.iloc[place] for place in (0, 1))
    assert (cut["arm"], cut["baseline"], cut["n_pairs"], cut["n_transcripts"]) == ("cut", "none", 12, 12)
    assert cut["difference"] == pytest.approx(-2.0)
    assert cut["percent"] == pytest.approx(100 * -2.0 / 15.5)
    assert cut["ci_low"] < -2 < cut["ci_high"] < 0
    assert cut["p_value"] == pytest.approx(2 / 2**12)
    assert cut["p_holm"] == pytest.approx(2 * 2 / 2**12)
    assert cut["test"] == "sign-flip permutation, exact; interval: clustered bootstrap-t or t, the wider"
    assert cut["note"].startswith(
        "lower than none (p = 0.00098, Holm over 2 arms); 12 transcripts could show a difference"
    )
    assert "uncached cost, agent and summariser" in cut["note"]
    assert (same["difference"], same["p_value"], same["ci_low"], same["ci_high"]) == (0, 1, 0, 0)
    assert same["note"].startswith("not told apart from none")
    assert found.attrs["coverage"]["cut"] == "planned 12, ran 12, failed 0, missing 0"


def test_the_interval_is_bootstrapped_from_ten_transcripts_on() -> None:
    runs = [run("r", {"none": costs(20), "cut": costs(20, -1.0)})]
    one, again = compare(runs).iloc[0], compare(runs).iloc[0]
    assert one["test"] == "sign-flip permutation, 10000 draws; interval: clustered bootstrap-t or t, the wider"
    assert (one["ci_low"], one["ci_high"]) == (again["ci_low"], again["ci_high"])
    assert one["ci_low"] < one["difference"] < one["ci_high"] < 0


def test_a_cost_of_few_transcripts_is_remarked_even_where_the_sample_looks_even() -> None:
    notes = {n: str(compare(run("r", {"none": costs(n), "cut": costs(n, -1.0)}))["note"].iloc[0]) for n in (4, 20, 40)}
    assert {n: "long tail" in note for n, note in notes.items()} == {4: False, 20: True, 40: False}
    tokens = compare(run("r", {"none": costs(20), "cut": costs(20, -1.0)}), metric="input_tokens")
    assert "long tail" not in tokens["note"].iloc[0]


def test_few_transcripts_give_no_interval() -> None:
    found = compare(run("r", {"none": costs(2), "cut": costs(2, -1.0)})).iloc[0]
    assert found["difference"] == pytest.approx(-1.5)
    for name in ("ci_low", "ci_high", "p_value", "p_holm", "smallest_detectable"):
        assert math.isnan(found[name])
    assert found["note"].startswith("2 transcripts are too few for an interval")


def test_unpaired_comparisons_are_refused() -> None:
    with pytest.raises(StatisticsError, match="'cut' and 'none' share no unit: transcript t10, t11"):
        compare(run("r", {"none": costs(8), "cut": costs(8, first=10)}))


def test_a_refusal_offers_the_baseline_that_shares_transcripts_with_both() -> None:
    one, two = (
        run("one", {"none": costs(8), "cut": costs(8)}),
        run("two", {"none": costs(6, 0, 10), "mask": costs(6, 0, 10)}),
    )
    with pytest.raises(
        StatisticsError, match="of the arms here, 'none' shares 6 units with the one and 8 with the other"
    ):
        compare([one, two], baseline="cut")
    assert compare([one, two], baseline="none")["n_pairs"].tolist() == [8, 6]


def test_partial_overlap_uses_the_matched_subset() -> None:
    gap = costs(10, -1.0) | {"t3": None}
    found = compare(run("r", {"none": costs(8), "cut": gap}), metric="input_tokens").iloc[0]
    assert found["n_pairs"] == 8
    assert "2 units without a partner left out" in found["note"]
    found = compare(run("r", {"none": costs(8), "cut": costs(10)}), metric="score").iloc[0]
    assert found["n_pairs"] == 0
    assert "8 pairs left out where the metric is missing" in found["note"]


def test_an_arm_that_did_not_run_does_not_hide_the_others() -> None:
    found = compare(run("r", {"none": costs(8), "cut": costs(8, -1.0), "absent": {}})).set_index("arm")
    assert found.loc["absent", "note"].startswith("no unit of absent ran (planned 8, ran 0, failed 0, missing 8)")
    assert found.loc["cut", "p_holm"] == found.loc["cut", "p_value"]


def test_runs_are_pooled_and_differing_arms_told_apart() -> None:
    one = run("one", {"none": costs(8), "cut": costs(8, -1.0)})
    two = run("two", {"none": costs(8), "other": costs(8, -2.0)})
    assert compare([one, two])["arm"].tolist() == ["cut", "other"]
    newer = run("newer", {"cut": costs(8, -3.0)}, version=2)
    assert compare([one, newer])["arm"].tolist() == ["cut @ one", "cut @ newer"]
    assert compare([one, run("one", {"cut": costs(8)}, version=3)])["arm"].tolist() == ["cut @ one 1", "cut @ one 2"]
    assert compare([one, newer], baseline="cut @ one")["arm"].tolist() == ["none", "cut @ newer"]


def test_binary_metrics_use_mcnemar() -> None:
    cells = [Cell(arm, arm, "m", "d", 0, {"baseline_arm": "none"}) for arm in ("none", "cut")]
    results = {
        (arm, f"t{n}", 0): UnitResult("overflow" if n < (9 if arm == "none" else 2) else "ok")
        for arm in ("none", "cut")
        for n in range(20)
    }
    found = compare(Run.from_results(cells, results), metric="overflow").iloc[0]
    assert found["test"] == "McNemar, exact; interval: matched rates"
    assert found["p_value"] == pytest.approx(stats.binomtest(0, 7).pvalue)
    assert "overflowed units, whose totals stop early: cut 2, none 9" in found["note"]


def test_the_bill_includes_the_summariser() -> None:
    cells = [Cell(arm, arm, "m", "d", 0, {"baseline_arm": "none"}) for arm in ("none", "summary")]
    agent = {"turn": 1, "call": 1, "purpose": "agent", "input_tokens": 10, "cost_cached_usd": 1.0}
    summary = {
        "turn": 1,
        "call": 1,
        "purpose": "summarizer",
        "input_tokens": 7,
        "cost_cached_usd": 0.5,
        "simulated": True,
    }
    results = {("none", "t", 0): UnitResult(calls=[agent]), ("summary", "t", 0): UnitResult(calls=[agent, summary])}
    made = Run.from_results(cells, results)  # type: ignore[arg-type]
    assert compare(made).loc[0, "difference"] == 0.5
    assert compare(made, metric="agent_cost_usd").loc[0, "difference"] == 0
    assert compare(made, metric="total_input_tokens").loc[0, "difference"] == 7
    assert "simulated: a stub answered (summarizer)" in compare(made).loc[0, "note"]


def test_what_cannot_be_compared_is_said() -> None:
    made = run("r", {"none": costs(3), "cut": costs(3)})
    with pytest.raises(StatisticsError, match=r"no arm 'nine' .* arms: none, cut"):
        compare(made, baseline="nine")
    with pytest.raises(StatisticsError, match="metrics: agent_cost_usd"):
        compare(made, metric="arm")
    with pytest.raises(StatisticsError, match="no baseline arm in these runs; name one"):
        compare(run("r", {"a": costs(3), "b": costs(3)}, baseline=None))
    with pytest.raises(StatisticsError, match="only the baseline arm"):
        compare(run("r", {"none": costs(3)}))


def test_median_and_trimmed_mean_do_not_hang_on_one_transcript() -> None:
    wild = costs(12, -1.0) | {"t3": 4000.0}
    runs = run("r", {"none": costs(12), "cut": wild})
    mean, median, trimmed = (compare(runs, statistic=name).iloc[0] for name in ("mean", "median", "trimmed_mean"))
    assert "a few transcripts make the mean" in mean["note"]
    assert mean["difference"] > 0 > median["difference"]
    assert trimmed["difference"] < 0
    for row in (median, trimmed):
        assert row["ci_low"] <= row["difference"] <= row["ci_high"] < 0
        assert row["p_value"] < 0.05
        assert math.isnan(row["percent"])
    assert "median of the transcripts' differences" in median["note"]
    with pytest.raises(StatisticsError, match="no statistic 'mode'"):
        compare(runs, statistic="mode")


def test_an_interval_on_few_differing_transcripts_is_remarked() -> None:
    nearly = costs(12) | {"t3": 9.0}
    found = compare(run("r", {"none": costs(12), "cut": nearly})).iloc[0]
    assert "only 1 of 12 transcripts differ" in found["note"]
