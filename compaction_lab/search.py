"""Search a grid for good parameters without running all of it: successive halving on part of the sessions.

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization" (2016, section 3):
all arms run on a few sessions, the worse half goes, those left run on twice as many. The paired test ends it early,
once it tells the leader from every arm still in. Since the leader was chosen by looking, and looked at more than once,
its own numbers flatter it; whether it is better than the arm in use is asked once, on sessions held out from the
search. Every decision follows from the units of the arms and sessions it is about, whatever else the run holds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from compaction_lab.errors import StatisticsError
from compaction_lab.statistics import estimators
from compaction_lab.statistics.comparison import MINIMUM_TRANSCRIPTS, SIGNIFICANT, inference, metric_values
from compaction_lab.sweep.frames import PAIR_KEY, cost_kind
from compaction_lab.sweep.loading import Run

Fate = Literal["leads", "stays", "dropped", "too low", "overflows"]
Better = Literal["lower", "higher"]
WorkOff = Callable[[Sequence[str], Sequence[str]], Run]
"""Runs arms (labels) on transcripts, whatever of it is missing, and returns the run."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A mean that an arm must reach to be considered at all, such as ``reference_recall`` of 0.9."""

    metric: str
    least: float

    def __str__(self) -> str:
        return f"{self.metric}>={self.least:g}"


@dataclass(frozen=True, slots=True)
class Aim:
    """What is looked for, settled before anything runs.

    Parameters
    ----------
    metric
        As in :func:`compaction_lab.compare`.
    against
        Label of the arm in use, which the found one must beat.
    better
        Which end of the metric is wanted.
    guard
        What the arm must keep, if anything.
    held_out
        Share of the transcripts kept for the confirmation.
    first
        Transcripts of the first rung.
    factor
        By how much each rung has more transcripts and fewer arms.
    seed
        Of the split, the order of transcripts, and the resampling.

    Raises
    ------
    StatisticsError
        With this metric or factor no search is possible.
    """

    metric: str
    against: str
    better: Better = "lower"
    guard: Guard | None = None
    held_out: float = 0.5
    first: int = 8
    factor: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be searched."""
        if self.factor < 2:  # noqa: PLR2004 - halves, or less
            raise StatisticsError(f"search: a factor of {self.factor} would never drop an arm; expected at least 2")
        if "reduction_vs_baseline" in (self.metric, self.guard.metric if self.guard else ""):
            raise StatisticsError(
                "search: reduction_vs_baseline needs the baseline arm on every session; look for low input_tokens"
            )


@dataclass(frozen=True, slots=True)
class Standing:
    """How one arm did in a rung; ``difference`` is to the rung's leader, with its 95 % interval.

    ``guard`` is the mean of the guard's metric, ``guard_low`` and ``guard_high`` its 95 % interval over transcripts. An
    arm is too low when the whole interval is; one whose mean alone is stands behind those that keep the guard. An arm
    that overflowed is out too: its totals stop early and would look good for it.
    """

    arm: str
    mean: float
    difference: float
    ci_low: float
    ci_high: float
    p_holm: float
    guard: float
    guard_low: float
    guard_high: float
    overflowed: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class Rung:
    """One look: the arms that were in it, best first, on the search's first ``transcripts`` transcripts.

    ``compared`` of them have the metric in every arm. ``settled`` says that the paired test told the leader from every
    arm still in.
    """

    transcripts: int
    compared: int
    standings: tuple[Standing, ...]
    settled: bool

    @property
    def leader(self) -> str | None:
        """The best arm, unless every one is too low or overflows."""
        first = self.standings[0]
        return first.arm if first.fate == "leads" else None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The found arm against the one in use, on transcripts that the search never saw."""

    arm: str
    against: str
    transcripts: int
    mean: float
    mean_against: float
    ci_low: float
    ci_high: float
    p_value: float
    guard: float
    overflowed: int
    overflowed_against: int
    verdict: str

    @property
    def difference(self) -> float:
        """Mean of the paired differences."""
        return self.mean - self.mean_against


def split(transcripts: Sequence[str], aim: Aim) -> tuple[list[str], list[str]]:
    """Return the transcripts to search on and those held out, in an order that only ``aim.seed`` and the ids decide.

    Raises
    ------
    StatisticsError
        Either part has fewer transcripts than a paired test needs.
    """
    ordered = sorted(transcripts, key=lambda name: hashlib.sha256(f"{aim.seed} {name}".encode()).digest())
    kept = round(len(ordered) * (1 - aim.held_out))
    if min(kept, len(ordered) - kept) < MINIMUM_TRANSCRIPTS:
        raise StatisticsError(
            f"search: {len(ordered)} transcripts, {len(ordered) - kept} of them held out; expected at least "
            f"{MINIMUM_TRANSCRIPTS} on either side, with fewer no paired test can tell arms apart"
        )
    return ordered[:kept], ordered[kept:]


def search(aim: Aim, arms: Sequence[str], transcripts: Sequence[str], work_off: WorkOff) -> Iterator[Rung]:
    """Yield rung after rung until one arm is left, the leader is told apart from all others, or no transcript is left.

    Parameters
    ----------
    aim
        What is looked for.
    arms
        Labels of the candidates; the arm in use may be one of them.
    transcripts
        Those to search on, in the order in which they join (:func:`split`).
    work_off
        Runs arms on transcripts.

    Raises
    ------
    StatisticsError
        As :func:`judged`.
    """
    alive, size = list(arms), min(aim.first, len(transcripts))
    while True:
        names = list(transcripts[:size])
        rung = judged(work_off(alive, names), aim, alive, names)
        exhausted = size == len(transcripts)
        survivors = [each.arm for each in rung.standings if each.fate in ("leads", "stays")]
        yield rung
        if exhausted or rung.settled or len(survivors) <= 1:
            return
        alive, size = survivors, min(size * aim.factor, len(transcripts))


def judged(run: Run, aim: Aim, arms: Sequence[str], transcripts: Sequence[str]) -> Rung:
    """Rank arms on the same units, and say who goes on.

    Raises
    ------
    StatisticsError
        No unit was finished by every arm, or the metric is missing.
    """
    values = _matched(run, aim.metric, arms, transcripts)
    kept = _guarded(run, aim, arms, transcripts)
    overflowed = _overflowed(run, aim, arms, transcripts)
    means = {arm: float(values[arm].mean()) for arm in arms}
    least, sign = aim.guard.least if aim.guard else -math.inf, 1.0 if aim.better == "lower" else -1.0
    out: dict[str, Fate] = {arm: "too low" for arm in arms if kept[arm].high < least}
    out |= dict.fromkeys((arm for arm in arms if overflowed[arm]), "overflows")
    order = sorted(arms, key=lambda arm: (arm in out, kept[arm].mean < least, sign * means[arm]))
    leader, others = order[0], order[1:]
    clusters = _clusters(values)
    found = {arm: inference(values[arm].to_numpy(), values[leader].to_numpy(), clusters, aim.seed) for arm in others}
    p_values = estimators.holm(np.array([_number(found[arm], "p_value") for arm in others], dtype=np.float64))
    adjusted = dict(zip(others, map(float, p_values), strict=True))
    going_on = math.ceil(sum(arm not in out for arm in arms) / aim.factor)

    def standing(place: int, arm: str) -> Standing:
        fate: Fate = "leads" if place == 0 else "stays" if place < going_on else "dropped"
        about = found.get(arm, {})
        return Standing(
            arm,
            means[arm],
            means[arm] - means[leader],
            _number(about, "ci_low"),
            _number(about, "ci_high"),
            adjusted.get(arm, math.nan),
            *kept[arm],
            overflowed[arm],
            out.get(arm, fate),
        )

    rivals = [arm for arm in others if arm not in out]
    worse = all(adjusted[arm] < SIGNIFICANT and sign * (means[arm] - means[leader]) > 0 for arm in rivals)
    sure = aim.guard is None or kept[leader].low >= least
    standings = tuple(standing(place, arm) for place, arm in enumerate(order))
    return Rung(len(transcripts), len(set(clusters)), standings, bool(rivals) and worse and sure)


def winner(rung: Rung, aim: Aim) -> str | None:
    """Return what a search found, given its last rung: the leader, if its mean keeps the guard."""
    kept = aim.guard is None or rung.standings[0].guard >= aim.guard.least
    return rung.leader if kept else None


def confirm(run: Run, aim: Aim, arm: str, transcripts: Sequence[str]) -> Confirmation:
    """Compare the found arm with the one in use, once, on held-out transcripts.

    Raises
    ------
    StatisticsError
        No held-out unit has the metric in both arms, or the guard's metric is unknown for all of them.
    """
    values = _matched(run, aim.metric, [arm, aim.against], transcripts)
    kept = _guarded(run, aim, [arm], transcripts)[arm].mean
    overflowed = _overflowed(run, aim, [arm, aim.against], transcripts)
    one, two = values[arm].to_numpy(), values[aim.against].to_numpy()
    clusters = _clusters(values)
    found = inference(one, two, clusters, aim.seed)
    low, high, p = (_number(found, name) for name in ("ci_low", "ci_high", "p_value"))
    wanted = one.mean() < two.mean() if aim.better == "lower" else one.mean() > two.mean()
    if overflowed[arm]:
        verdict = "not confirmed: it overflows on the sessions held out"
    elif aim.guard is not None and kept < aim.guard.least:
        verdict = f"not confirmed: {aim.guard} does not hold on the sessions held out"
    elif not wanted:
        verdict = f"not confirmed: on the sessions held out it is not {aim.better}"
    elif not p < SIGNIFICANT:
        verdict = "not confirmed: the sessions held out cannot tell the two apart"
    else:
        verdict = f"confirmed: {aim.better} on the sessions held out too"
    return Confirmation(
        arm,
        aim.against,
        len(set(clusters)),
        float(one.mean()),
        float(two.mean()),
        low,
        high,
        p,
        kept,
        overflowed[arm],
        overflowed[aim.against],
        verdict,
    )


def _values(run: Run, metric: str, arms: Sequence[str], transcripts: Sequence[str]) -> pd.DataFrame:
    """Return a metric of some arms on some transcripts; the kind of cost is the one that these units share."""
    units = run.units
    about = units[units["arm"].isin(arms) & units["transcript"].isin(transcripts)]
    values = metric_values(run, metric, cost_kind(about))
    return values[values["arm"].isin(arms) & values["transcript"].isin(transcripts)]


def _overflowed(run: Run, aim: Aim, arms: Sequence[str], transcripts: Sequence[str]) -> dict[str, int]:
    """Count each arm's units whose totals stop early; none where overflowing is itself what is compared."""
    if aim.metric == "overflow":
        return dict.fromkeys(arms, 0)
    counts = _values(run, "overflow", arms, transcripts).groupby("arm")["value"].sum()
    return {arm: int(counts.get(arm, 0)) for arm in arms}


def _matched(run: Run, metric: str, arms: Sequence[str], transcripts: Sequence[str]) -> pd.DataFrame:
    """Return a column an arm, a row a unit that all of them finished with a value."""
    values = _values(run, metric, arms, transcripts)
    table = values.pivot_table(index=PAIR_KEY, columns="arm", values="value").reindex(columns=list(arms)).dropna()
    if table.empty:
        raise StatisticsError(
            f"search: no unit has {metric} in every one of {len(arms)} arms; look at what failed with "
            f"`compaction-lab show {run.name}`, or name another metric"
        )
    return table


class _Kept(NamedTuple):
    """The guard's metric of an arm: its mean over transcripts that have it, and the interval."""

    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan


def _guarded(run: Run, aim: Aim, arms: Sequence[str], transcripts: Sequence[str]) -> dict[str, _Kept]:
    if aim.guard is None:
        return dict.fromkeys(arms, _Kept())
    values = _values(run, aim.guard.metric, arms, transcripts).dropna(subset=["value"])
    by_transcript = values.groupby(["arm", "dataset", "transcript"])["value"].mean()
    kept = {}
    for arm in arms:
        if arm not in by_transcript.index:
            raise StatisticsError(
                f"search: {aim.guard.metric} is unknown on all of the {len(transcripts)} sessions that {arm} ran on, "
                f"so {aim.guard} cannot be checked; begin with more sessions (--first), name a metric that they have, "
                "or leave the guard out"
            )
        means = by_transcript.loc[[arm]].to_numpy()
        kept[arm] = _Kept(float(means.mean()))
        if means.size >= MINIMUM_TRANSCRIPTS:
            interval = estimators.clustered_interval(means, seed=aim.seed)
            kept[arm] = _Kept(interval.estimate, interval.low, interval.high)
    return kept


def _clusters(values: pd.DataFrame) -> list[object]:
    places = values.index.to_frame()
    return list(zip(places["dataset"], places["transcript"], strict=True))


def _number(found: dict[str, object], name: str) -> float:
    value = found.get(name, math.nan)
    return float(value) if isinstance(value, int | float | np.floating) else math.nan
