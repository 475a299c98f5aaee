"""Every arm against the baseline arm on the same transcripts: difference, interval, test, and what could be seen.

Pairs share model, dataset, seed, transcript and trial (and turn); transcripts are what is resampled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from compaction_lab.errors import StatisticsError
from compaction_lab.statistics import estimators
from compaction_lab.sweep import frames
from compaction_lab.sweep.frames import PAIR_KEY, UNIT_KEY
from compaction_lab.sweep.loading import Coverage, Run
from compaction_lab.sweep.store import identity

COLUMNS = (
    "arm",
    "baseline",
    "metric",
    "n_pairs",
    "n_transcripts",
    "mean_arm",
    "mean_baseline",
    "difference",
    "percent",
    "ci_low",
    "ci_high",
    "p_value",
    "p_holm",
    "test",
    "smallest_detectable",
    "correlation",
    "note",
)
"""Of the table :func:`compare` returns. ``percent`` is the difference in percent of the baseline's mean; the interval
covers ``difference`` at 95 %; ``smallest_detectable`` is the true difference seen with 80 % power."""

MINIMUM_TRANSCRIPTS = estimators.minimum_clusters(0.95)
"""Six: with five, even differences that all point one way have an exact sign-flip p of 2 / 2^5 = 0.0625."""

SIGNIFICANT = 0.05
"""A difference is called one when its p, adjusted over the arms, is below this."""

BOOTSTRAP_TRANSCRIPTS = 10
"""From here on the interval of a mean is :func:`~compaction_lab.statistics.estimators.clustered_interval`; below, it is
the one that the exact sign-flip test gives. ``benchmarks/bench_coverage.py`` prints how often they cover the truth."""

SKEWED, UNSKEWED_TRANSCRIPTS = 1.5, 200
"""Under so many transcripts, a sample skewness beyond this is remarked: log-normal differences are covered in about
90 % of cases at 10 transcripts and in 92 % at 30, not in 95 %."""

HANGS_ON_FEW = "such an interval covers nearer 90 than 95 %; median and trimmed mean do not hang on them"

COSTS, LONG_TAILED_TRANSCRIPTS = frozenset({"cost_usd", "agent_cost_usd"}), 30
"""Costs under so many transcripts are remarked even where the sample looks even: of 600 log-normal samples the skewness
showed in 46 % at 10 transcripts and 75 % at 30, and the intervals of those where it did not covered 82 and 81 %
(``benchmarks/README.md``)."""

FEW_DIFFER = 5
"""With fewer transcripts than this that differ at all, no interval of a mean covers 95 %; that is remarked."""

TRIMMED = 0.2
"""What a trimmed mean cuts off at each end."""

Statistic = Literal["mean", "median", "trimmed_mean"]
STATISTICS: Mapping[Statistic, str] = {
    "mean": "mean of the differences",
    "median": "median of the transcripts' differences",
    "trimmed_mean": "20 % trimmed mean of the transcripts' differences",
}
"""What a comparison can estimate. Costs have heavy tails: median and trimmed mean say what happens to most transcripts,
the mean what happens to the bill."""

OWN_METRICS = {
    "whole_run_tokens": "all that was sent for the agent's and the summariser's calls, and the summaries themselves",
    "total_input_tokens": "the agent's and the summariser's input tokens",
    "total_output_tokens": "the agent's output and reasoning tokens and the summariser's output tokens",
    "agent_cost_usd": "the cost of the agent's calls alone, in USD",
    "probe_score": "mean score of a unit's probes, rubric judgments left out",
    "evidence_visible": "mean share of the probes' evidence still in what is sent",
    "reference_recall": "share of the values used again that were still visible when they were used",
    "compactions": "how often the strategy fired",
    "overflow": "1 if the window overflowed, else 0",
}

_SUMS = {
    "whole_run_tokens": ("input_tokens", "summarizer_input_tokens", "summarizer_output_tokens"),
    "total_input_tokens": ("input_tokens", "summarizer_input_tokens"),
    "total_output_tokens": ("output_tokens", "reasoning_tokens", "summarizer_output_tokens"),
}


@dataclass(frozen=True, slots=True)
class _Arms:
    """The units of several runs under one set of arm labels."""

    observed: pd.DataFrame
    """``arm``, the pairing key and ``value``, a row a unit (or a turn of one)."""
    coverage: Mapping[str, Coverage]
    baseline: str
    remark: str


def compare(
    runs: Run | Sequence[Run],
    metric: str = "cost_usd",
    baseline: str | None = None,
    *,
    statistic: Statistic = "mean",
    seed: int = 0,
) -> pd.DataFrame:
    """Compare every arm with the baseline arm on the transcripts both ran.

    Parameters
    ----------
    runs
        One run or several; a cell that several hold counts once. Arms of one label that differ between runs are told
        apart as ``label @ run``.
    metric
        ``cost_usd`` (the whole bill: agent and summariser), any numeric column of *units*, ``reduction_vs_baseline``
        (paired by turn), or one of :data:`OWN_METRICS`.
    baseline
        Label of the arm to compare with; by default the baseline arm the cells name.
    statistic
        What is estimated of the differences: ``mean``, ``median`` or ``trimmed_mean`` (:data:`STATISTICS`). The columns
        ``mean_arm`` and ``mean_baseline`` stay means; ``percent`` is known for the mean alone.
    seed
        Of the bootstrap.

    Returns
    -------
    DataFrame
        A row an arm with the columns :data:`COLUMNS`. Under six transcripts interval and p are missing and ``note``
        says so. ``attrs["coverage"]`` holds planned, ran, failed and missing units by arm.

    Raises
    ------
    StatisticsError
        If there is no baseline arm, the metric or statistic does not exist, or an arm shares no transcript with the
        baseline: an unpaired comparison would confuse the arms with the transcripts.
    """
    several = [runs] if isinstance(runs, Run) else list(runs)
    if not several:
        raise StatisticsError("compare: no run given; pass at least one")
    if statistic not in STATISTICS:
        raise StatisticsError(f"compare: no statistic {statistic!r}; expected one of {', '.join(STATISTICS)}")
    arms = _pooled(several, metric, baseline)
    whole = arms.observed[arms.observed["arm"] == arms.baseline]
    others = [arm for arm in arms.coverage if arm != arms.baseline]
    if not others:
        raise StatisticsError(
            f"compare: only the baseline arm {arms.baseline!r} is here; add an arm to compare with it"
        )
    rows = [_against(arms, arm, whole, metric, statistic, seed) for arm in others]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame["p_holm"] = estimators.holm(frame["p_value"].to_numpy(dtype=np.float64))
    verdicts = [
        _verdict(row | {"p_holm": adjusted}, len(others)) for row, adjusted in zip(rows, frame["p_holm"], strict=True)
    ]
    frame["note"] = [
        "; ".join(part for part in (verdict, str(note), arms.remark) if part)
        for verdict, note in zip(verdicts, frame["note"], strict=True)
    ]
    frame.attrs["coverage"] = {arm: str(coverage) for arm, coverage in arms.coverage.items()}
    return frame


def _pooled(runs: Sequence[Run], metric: str, baseline: str | None) -> _Arms:
    """Put the units of all runs under labels that tell arms apart, and find the baseline arm."""
    keys: dict[tuple[str, str, str, int], set[str]] = {}
    for run in runs:
        for cell in run.cell_by_key.values():
            keys.setdefault(identity(cell), set()).add(
                f"{cell.key} {json.dumps(cell.config.get('strategy'), sort_keys=True)}"
            )
    split = {arm for (arm, *_), found in keys.items() if len(found) > 1}
    kind = frames.cost_kind(pd.concat([run.units for run in runs], ignore_index=True))
    parts, counts, named = [], dict[str, dict[str, Coverage]](), dict[str, None]()
    names = [run.name for run in runs]
    for place, run in enumerate(runs):
        name = run.name if names.count(run.name) == 1 else f"{run.name} {place + 1}"
        values = metric_values(run, metric, kind)
        labels = {arm: f"{arm} @ {name}" if arm in split else arm for arm in run.coverage_by_arm}
        parts.append(values.assign(arm=values["arm"].map(labels)))
        for key, part in run.coverage_by_cell.items():
            counts.setdefault(labels[run.cell_by_key[key].arm], {})[key] = part
        for label in run.baselines.values():
            if label is not None:
                named[labels.get(label, label)] = None
    values = pd.concat(parts, ignore_index=True)
    values = values.drop_duplicates([str(name) for name in values if name != "value"], keep="last")
    coverage = {arm: sum(cells.values(), Coverage()) for arm, cells in counts.items()}
    return _Arms(values, coverage, _baseline(baseline, list(named), list(coverage)), _remark(runs, metric, kind))


def _baseline(asked: str | None, named: Sequence[str], arms: Sequence[str]) -> str:
    present = [label for label in named if label in arms]
    label = asked if asked is not None else present[0] if len(present) == 1 else None
    if label is None:
        found = f"several baseline arms ({', '.join(present)})" if present else "no baseline arm"
        raise StatisticsError(f"compare: {found} in these runs; name one with baseline=. Arms: {', '.join(arms)}")
    if label not in arms:
        raise StatisticsError(f"compare: no arm {label!r} to compare with; arms: {', '.join(arms)}")
    return label


def metric_values(run: Run, metric: str, kind: str | None) -> pd.DataFrame:
    """Return a metric as ``arm``, pairing key and ``value``, a row a finished unit; missing values stay.

    Parameters
    ----------
    run
        The run.
    metric
        As in :func:`compare`.
    kind
        Which cost ``cost_usd`` means: billed, cached, uncached, or ``None`` when no kind is known for all arms.

    Raises
    ------
    StatisticsError
        If the metric does not exist or is not a number.
    """
    units = run.units[run.units["outcome"] != "failed"]
    if metric == "reduction_vs_baseline":
        turns = run.turns.rename(columns={metric: "value"})
        return turns[["arm", *PAIR_KEY, "turn", "value"]]
    values = _unit_values(run, units, metric, kind)
    return units[["arm", *PAIR_KEY]].assign(value=values.astype("float64"))


def _unit_values(run: Run, units: pd.DataFrame, metric: str, kind: str | None) -> pd.Series:
    if metric in ("cost_usd", "agent_cost_usd"):
        if kind is None:
            return pd.Series(np.nan, index=units.index)
        summarizer = run.bills.loc[units.index, f"summarizer_cost_{kind}_usd"]
        return units[f"cost_{kind}_usd"] + (summarizer if metric == "cost_usd" else 0.0)
    if metric in _SUMS:
        return units[list(_SUMS[metric])].sum(axis=1, skipna=False)
    if metric == "overflow":
        return units["outcome"] == "overflow"
    if metric == "compactions":
        return _by_unit(run.compactions.groupby(UNIT_KEY).size(), units).fillna(0)
    if metric in ("probe_score", "evidence_visible", "reference_recall"):
        kinds = run.probes["kind"]
        probes = run.probes[kinds == "reference" if metric == "reference_recall" else kinds != "rubric"]
        column = "evidence_visible" if metric == "evidence_visible" else "score"
        return _by_unit(probes.groupby(UNIT_KEY)[column].mean(), units)
    numeric = {str(name) for name in units.select_dtypes("number").columns} - {"seed", "trial"}
    if metric not in numeric:
        known = ", ".join(sorted({*numeric, *OWN_METRICS, "reduction_vs_baseline"}))
        raise StatisticsError(f"metric {metric!r} does not exist or is no number; metrics: {known}")
    return units[metric]


def _by_unit(values: pd.Series, units: pd.DataFrame) -> pd.Series:
    return values.reindex(pd.MultiIndex.from_frame(units[UNIT_KEY])).set_axis(units.index)


def _against(
    arms: _Arms, arm: str, whole: pd.DataFrame, metric: str, statistic: Statistic, seed: int
) -> dict[str, object]:
    """Return one arm's row; the verdict and Holm's p are added when all rows are there."""
    mine = arms.observed[arms.observed["arm"] == arm]
    row: dict[str, object] = dict.fromkeys(COLUMNS, math.nan)
    row |= {
        "arm": arm,
        "baseline": arms.baseline,
        "metric": metric,
        "n_pairs": 0,
        "n_transcripts": 0,
        "test": "",
        "note": "",
    }
    for label, rows in ((arm, mine), (arms.baseline, whole)):
        if rows.empty:
            return row | {"note": f"no unit of {label} ran ({arms.coverage[label]})"}
    key = [name for name in mine if name not in ("arm", "value")]
    matched = mine.merge(whole, on=key, suffixes=("_arm", "_baseline"), validate="one_to_one")
    if matched.empty:
        raise StatisticsError(_disjoint(arm, arms, mine, whole))
    pairs = matched.dropna(subset=["value_arm", "value_baseline"])
    notes = _left_out(mine, whole, matched, pairs, arms, arm)
    clusters = list(zip(pairs["dataset"], pairs["transcript"], strict=True))
    row |= {"n_pairs": len(pairs), "n_transcripts": len(set(clusters)), "note": "; ".join(notes)}
    if pairs.empty:
        return row
    one, two = (pairs[name].to_numpy(dtype=np.float64) for name in ("value_arm", "value_baseline"))
    row |= {"mean_arm": one.mean(), "mean_baseline": two.mean(), "difference": (one - two).mean()}
    row["correlation"] = estimators.correlation(one, two)
    if statistic == "mean":
        row["percent"] = 100.0 * (one - two).mean() / abs(two.mean()) if two.mean() else math.nan
        found = inference(one, two, clusters, seed)
        notes += _shape(one, two, clusters) or _long_tailed(metric, found, row["n_transcripts"])
    else:
        found = _robust(one - two, clusters, statistic)
        notes.append(STATISTICS[statistic])
    return row | found | {"note": "; ".join(notes)}


def inference(one: np.ndarray, two: np.ndarray, clusters: Sequence[object], seed: int) -> dict[str, object]:
    """Return ``ci_low, ci_high, p_value, test, smallest_detectable`` of the mean of paired differences.

    Parameters
    ----------
    one, two
        Paired values; the difference is ``one - two``.
    clusters
        The transcript of each pair; transcripts are what is resampled. Nothing is returned under six of them.
    seed
        Of the bootstrap and of the permutations.
    """
    differences, number = one - two, len(set(clusters))
    if number < MINIMUM_TRANSCRIPTS:
        return {}
    error = estimators.clustered_standard_error(differences, clusters)
    found: dict[str, object] = {"smallest_detectable": estimators.smallest_detectable(error, clusters=number)}
    if _matched_rates(one, two, number):
        gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
        interval = estimators.matched_rates_interval(gained, lost, number)
        found |= {"p_value": estimators.mcnemar_exact(gained, lost), "test": "McNemar, exact; interval: matched rates"}
        return found | {"ci_low": interval.low, "ci_high": interval.high}
    found["p_value"] = estimators.sign_flip_p(differences, clusters, seed=seed)
    found["test"] = "sign-flip permutation, " + ("exact" if number <= estimators.EXACT_CLUSTERS else "10000 draws")
    if number < BOOTSTRAP_TRANSCRIPTS:
        interval = estimators.sign_flip_interval(differences, clusters)
    else:
        interval = estimators.clustered_interval(differences, clusters, seed=seed)
        found["test"] = f"{found['test']}; interval: clustered bootstrap-t or t, the wider"
    return found | {"ci_low": interval.low, "ci_high": interval.high}


def _matched_rates(one: np.ndarray, two: np.ndarray, clusters: int) -> bool:
    """Whether both sides are 0 or 1, one pair a transcript."""
    return clusters == one.size and bool(np.isin(one, (0, 1)).all() and np.isin(two, (0, 1)).all())


def _robust(differences: np.ndarray, clusters: Sequence[object], statistic: Statistic) -> dict[str, object]:
    """Return the estimate over transcripts, each with its mean difference; its interval and p from six on."""
    sums, sizes = estimators.cluster_sums(differences, clusters)
    values = sums / sizes
    median = statistic == "median"
    estimate = estimators.median(values) if median else estimators.trimmed_mean(values, TRIMMED)
    if values.size < MINIMUM_TRANSCRIPTS:
        return {"difference": estimate}
    found: dict[str, object] = {"difference": estimate}
    if median:
        interval = estimators.median_interval(values)
        p = estimators.mcnemar_exact(int((values > 0).sum()), int((values < 0).sum()))
        found["test"] = "sign test, exact; interval: order statistics"
    else:
        interval, error, p = estimators.trimmed_interval(values, TRIMMED)
        left = values.size - 2 * int(TRIMMED * values.size)
        found["test"] = "t of a trimmed mean (Yuen)"
        found["smallest_detectable"] = estimators.smallest_detectable(error, clusters=left)
    return found | {"p_value": p, "ci_low": interval.low, "ci_high": interval.high}


def _shape(one: np.ndarray, two: np.ndarray, clusters: Sequence[object]) -> list[str]:
    """Say when the differences are of a kind whose mean no interval covers as often as it says."""
    sums, sizes = estimators.cluster_sums(one - two, clusters)
    if sums.size < MINIMUM_TRANSCRIPTS or _matched_rates(one, two, sums.size):
        return []
    differ = int(np.count_nonzero(sums))
    if 0 < differ < FEW_DIFFER:
        return [f"only {differ} of {sums.size} transcripts differ: the interval of a mean rests on them alone"]
    skew = estimators.skewness(sums / sizes)
    if sums.size < UNSKEWED_TRANSCRIPTS and abs(skew) > SKEWED:
        return [f"a few transcripts make the mean (skewness {skew:.1f}): {HANGS_ON_FEW}"]
    return []


def _long_tailed(metric: str, found: Mapping[str, object], transcripts: object) -> list[str]:
    """Say of a cost's interval what a small sample cannot show of itself: the tail that it happens not to hold."""
    if "ci_low" not in found or metric not in COSTS or not int(str(transcripts)) < LONG_TAILED_TRANSCRIPTS:
        return []
    return [f"costs often have a long tail: under {LONG_TAILED_TRANSCRIPTS} transcripts {HANGS_ON_FEW}"]


def _disjoint(arm: str, arms: _Arms, mine: pd.DataFrame, whole: pd.DataFrame) -> str:
    """Say why two arms cannot be compared, and which baseline has a matched subset with each."""
    where = "transcript"
    for name in PAIR_KEY:
        if not set(mine[name]) & set(whole[name]):
            where = name
            break
    ours, theirs = (", ".join(sorted(set(rows[where].astype(str)))[:3]) for rows in (mine, whole))
    offers = []
    for label, rows in arms.observed.groupby("arm", sort=False):
        with_mine, with_whole = (
            len(rows[PAIR_KEY].merge(other[PAIR_KEY]).drop_duplicates()) for other in (mine, whole)
        )
        if with_mine and with_whole:
            offers.append(f"{label!r} shares {with_mine} units with the one and {with_whole} with the other")
    offer = f" (of the arms here, {'; '.join(offers)})" if offers else ""
    return (
        f"{arm!r} and {arms.baseline!r} share no unit: {where} {ours} against {theirs}. An unpaired comparison would "
        "confuse the arms with what they ran on; run both arms on the same transcripts, or name another "
        f"baseline{offer}"
    )


def _left_out(
    mine: pd.DataFrame, whole: pd.DataFrame, matched: pd.DataFrame, pairs: pd.DataFrame, arms: _Arms, arm: str
) -> list[str]:
    """Say what did not enter a comparison, and what makes its totals incomplete."""
    notes = []
    unit = "turns" if "turn" in mine else "units"
    unmatched = len(mine) + len(whole) - 2 * len(matched)
    if unmatched:
        notes.append(f"{unmatched} {unit} without a partner left out")
    if len(matched) > len(pairs):
        notes.append(f"{len(matched) - len(pairs)} pairs left out where the metric is missing")
    overflowed = [f"{label} {arms.coverage[label].overflowed}" for label in (arm, arms.baseline)
                  if arms.coverage[label].overflowed]  # fmt: skip
    if overflowed:
        notes.append(f"overflowed units, whose totals stop early: {', '.join(overflowed)}")
    return notes


def _verdict(row: Mapping[str, object], arms: int) -> str:
    """Say in plain words what a row shows and what this much data could have shown."""
    number, baseline = row["n_transcripts"], row["baseline"]
    if row["n_pairs"] == 0:
        return ""
    assert isinstance(number, int)  # noqa: S101 - counted above
    if number < MINIMUM_TRANSCRIPTS:
        plural = "transcript is" if number == 1 else "transcripts are"
        return (
            f"{number} {plural} too few for an interval: with fewer than {MINIMUM_TRANSCRIPTS}, "
            "no exact test can reach p < 0.05"
        )
    difference, adjusted, least = (float(str(row[name])) for name in ("difference", "p_holm", "smallest_detectable"))
    family = f", Holm over {arms} arms" if arms > 1 else ""
    could = f"{number} transcripts could show a difference of {least:.3g} (80 % power)"
    if math.isnan(least):
        could = f"{number} transcripts"
    if adjusted < SIGNIFICANT:
        side = "higher" if difference > 0 else "lower"
        return f"{side} than {baseline} (p = {adjusted:.2g}{family}); {could}"
    return f"not told apart from {baseline} (p = {adjusted:.2g}{family}); {could}"


def _remark(runs: Iterable[Run], metric: str, kind: str | None) -> str:
    """Say what the numbers of a metric are made of."""
    parts = []
    if metric in ("cost_usd", "agent_cost_usd"):
        who = "agent and summariser" if metric == "cost_usd" else "agent alone"
        parts.append(f"{kind} cost, {who}" if kind else "no kind of cost is known for every agent call of every arm")
    simulated = sorted(set().union(*(run.simulated for run in runs)))
    if simulated:
        parts.append(f"simulated: a stub answered ({', '.join(simulated)})")
    return "; ".join(parts)
