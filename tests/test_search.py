"""The decisions of a search, on runs made by formula: what it finds, drops and confirms, and how often by chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from compaction_lab.errors import StatisticsError
from compaction_lab.records import Cell, UnitResult
from compaction_lab.search import Aim, Guard, Rung, confirm, judged, search, split, winner
from compaction_lab.sweep.loading import Run
from tests.synthetic_runs import call

AIM = Aim(metric="input_tokens", against="use")
RECALL = Guard("reference_recall", 0.8)
NAMES = [f"session-{number:02}" for number in range(40)]
GRID = {"use": 1000, "two": 980, "best": 800, "three": 960, "four": 1200, "five": 1100}

Tokens = Callable[[str, str], float]


def run_of(arms: Sequence[str], names: Sequence[str], tokens: Tokens, **more: Mapping[str, object]) -> Run:
    """Make a run whose units send ``tokens(arm, transcript)``.

    ``more`` says by arm: ``recall``, the share of ten values still visible (``None``: the session has no such values);
    ``overflows``, the transcripts on which the window overflows; ``fails``, those that fail.
    """
    cells = [Cell(f"cell-{arm}", arm, "stub", "made", 0, {"baseline_arm": None, "strategy": {}}) for arm in arms]
    recall, overflows, fails = (more.get(name, {}) for name in ("recall", "overflows", "fails"))
    results = {}
    for cell in cells:
        for name in names:
            result = UnitResult()
            result.calls.append(call(1, "agent", round(tokens(cell.arm, name)), 10))
            seen = recall.get(cell.arm, 1.0)
            for number in range(10 if isinstance(seen, float) else 0):
                right = float(number < 10 * float(str(seen)))
                result.probes.append({"turn": 1, "probe": f"r{number}", "kind": "reference", "score": right})
            if name in overflows.get(cell.arm, ()):  # type: ignore[operator]
                result.outcome = "overflow"
            if name in fails.get(cell.arm, ()):  # type: ignore[operator]
                result = UnitResult(outcome="failed", error="no reply")
            results[cell.key, name, 0] = result
    return Run.from_results(cells, results, name="made")


def noisy(means: Mapping[str, float], seed: int = 0, spread: float = 40) -> Tokens:
    """Tokens of an arm: its mean, what the session makes of every arm, and noise of the pair's own."""

    def tokens(arm: str, name: str) -> float:
        session = np.random.default_rng([seed, int(name[-2:])]).normal(0, 200)
        own = np.random.default_rng([seed, int(name[-2:]), *arm.encode()]).normal(0, spread)
        return float(means[arm] + session + own + 1000)

    return tokens


def looked_up(
    tokens: Tokens, asked: list[tuple[int, int]] | None = None
) -> Callable[[Sequence[str], Sequence[str]], Run]:
    def work_off(arms: Sequence[str], names: Sequence[str]) -> Run:
        if asked is not None:
            asked.append((len(arms), len(names)))
        return run_of(arms, names, tokens)

    return work_off


def rung_of(run: Run, aim: Aim = AIM, names: Sequence[str] = NAMES) -> Rung:
    return judged(run, aim, [cell.arm for cell in run.cell_by_key.values()], names)


def fates(rung: Rung) -> dict[str, str]:
    return {each.arm: each.fate for each in rung.standings}


def test_the_best_arm_is_found_on_half_the_sessions_and_confirmed_on_the_other() -> None:
    tokens, asked = noisy(GRID), list[tuple[int, int]]()
    searched, held_out = split(NAMES, AIM)
    rungs = list(search(AIM, list(GRID), searched, looked_up(tokens, asked)))
    assert winner(rungs[-1], AIM) == "best"
    assert rungs[-1].settled
    assert sum(arms * names for arms, names in asked) < len(GRID) * len(searched)
    final = confirm(run_of(["best", "use"], held_out, tokens), AIM, "best", held_out)
    assert final.verdict == "confirmed: lower on the sessions held out too"
    assert final.ci_low < final.difference < final.ci_high < 0
    assert final.difference == pytest.approx(-200, abs=40)


def test_halving_doubles_the_sessions_until_they_are_all_used() -> None:
    asked = list[tuple[int, int]]()
    arms = [f"arm-{number}" for number in range(8)]
    rungs = list(search(AIM, arms, NAMES[:20], looked_up(noisy(dict.fromkeys(arms, 1000)), asked)))
    assert asked == [(8, 8), (4, 16), (2, 20)]
    assert not any(rung.settled for rung in rungs)


def test_clear_differences_end_the_search_before_the_sessions_do() -> None:
    asked = list[tuple[int, int]]()
    tokens = noisy({"a": 500, "b": 900, "c": 1300}, spread=10)
    *_, last = search(replace(AIM, first=10), ["c", "b", "a"], NAMES, looked_up(tokens, asked))
    assert asked == [(3, 10)]
    assert last.settled
    assert [each.arm for each in last.standings] == ["a", "b", "c"]
    assert all(each.ci_low > 0 and each.p_holm < 0.05 for each in last.standings[1:])


def test_higher_is_better_when_it_is_said() -> None:
    assert rung_of(run_of(list(GRID), NAMES, noisy(GRID)), replace(AIM, better="higher")).leader == "four"


def test_without_a_difference_hardly_anything_is_confirmed() -> None:
    """The arm is picked on other sessions, so the held-out test keeps its level; only one side of it confirms."""
    simulations, arms, confirmed = 200, ["use", "b", "c"], 0
    for seed in range(simulations):
        tokens = noisy(dict.fromkeys(arms, 1000), seed)
        searched, held_out = split(NAMES[:16], replace(AIM, seed=seed))
        found = rung_of(run_of(arms, searched, tokens), AIM, searched).leader
        if found not in (None, "use"):
            final = confirm(run_of([found, "use"], held_out, tokens), AIM, found, held_out)
            confirmed += final.verdict.startswith("confirmed")
            assert final.verdict.startswith("confirmed") == (final.p_value < 0.05 and final.difference < 0)
    assert confirmed <= 0.05 * simulations


def test_equal_arms_are_not_told_apart() -> None:
    tokens = noisy({"use": 1000, "other": 1000}, spread=0)
    final = confirm(run_of(["use", "other"], NAMES, tokens), AIM, "other", NAMES)
    assert final.verdict == "not confirmed: on the sessions held out it is not lower"
    noise = noisy({"use": 1000, "other": 995}, spread=100)
    final = confirm(run_of(["use", "other"], NAMES[:8], noise), AIM, "other", NAMES[:8])
    assert final.verdict.startswith("not confirmed")
    assert final.p_value > 0.05


def test_the_seed_and_the_ids_alone_decide_the_split() -> None:
    searched, held_out = split(NAMES, AIM)
    assert sorted(searched + held_out) == NAMES
    assert len(held_out) == 20
    assert split(NAMES[::-1], AIM) == (searched, held_out)
    assert split(NAMES, replace(AIM, seed=1)) != (searched, held_out)
    assert [len(part) for part in split(NAMES, replace(AIM, held_out=0.25))] == [30, 10]
    with pytest.raises(StatisticsError, match="10 transcripts, 5 of them held out; expected at least 6"):
        split(NAMES[:10], AIM)


def test_the_same_units_give_the_same_decisions_whatever_else_the_run_holds() -> None:
    tokens = noisy(GRID)
    part = rung_of(run_of(["best", "two", "use"], NAMES[:9], tokens), AIM, NAMES[:9])
    whole = judged(run_of(list(GRID), NAMES, tokens), AIM, ["best", "two", "use"], NAMES[:9])
    assert repr(whole) == repr(part)


def test_the_guard_rules_out_what_is_surely_too_low_and_puts_the_doubtful_behind() -> None:
    means = {"cheap": 500, "doubtful": 600, "good": 900, "use": 1000}
    aim = replace(AIM, guard=RECALL)
    run = run_of(list(means), NAMES, noisy(means), recall={"cheap": 0.5, "doubtful": 0.7})
    rung = rung_of(run, aim)
    assert fates(rung) == {"good": "leads", "use": "dropped", "doubtful": "too low", "cheap": "too low"}
    assert winner(rung, aim) == "good"
    few = NAMES[:5]  # too few for an interval: nothing is ruled out
    doubt = rung_of(run_of(list(means), few, noisy(means), recall={"cheap": 0.5, "doubtful": 0.7}), aim, few)
    assert fates(doubt) == {"good": "leads", "use": "stays", "cheap": "dropped", "doubtful": "dropped"}
    assert not doubt.settled


def test_nothing_is_found_when_no_arm_keeps_the_guard() -> None:
    aim = replace(AIM, guard=RECALL)
    (rung,) = search(
        aim,
        ["a", "b"],
        NAMES,
        lambda arms, names: run_of(arms, names, noisy(GRID | {"a": 1, "b": 2}), recall={"a": 0.1, "b": 0.2}),
    )
    assert set(fates(rung).values()) == {"too low"}
    assert rung.leader is None
    assert not rung.settled
    assert winner(rung, aim) is None


def test_a_guard_that_fails_on_the_held_out_sessions_is_not_confirmed() -> None:
    run = run_of(["best", "use"], NAMES, noisy(GRID), recall={"best": 0.7})
    final = confirm(run, replace(AIM, guard=RECALL), "best", NAMES)
    assert final.verdict == "not confirmed: reference_recall>=0.8 does not hold on the sessions held out"
    assert final.p_value < 0.05


def test_a_guard_that_is_unknown_is_an_error_and_not_a_pass() -> None:
    run = run_of(["best", "use"], NAMES, noisy(GRID), recall={"best": None})
    with pytest.raises(StatisticsError, match="reference_recall is unknown on all of the 40 sessions that best ran on"):
        rung_of(run, replace(AIM, guard=RECALL))


def test_an_arm_that_overflows_does_not_win_by_stopping_early() -> None:
    run = run_of(["best", "use", "two"], NAMES, noisy(GRID), overflows={"best": NAMES[:1]})
    assert fates(rung_of(run)) == {"two": "leads", "use": "dropped", "best": "overflows"}
    assert confirm(run, AIM, "best", NAMES).verdict == "not confirmed: it overflows on the sessions held out"
    assert fates(rung_of(run, replace(AIM, metric="overflow")))["best"] == "dropped"


def test_arms_are_compared_on_the_sessions_that_all_of_them_finished() -> None:
    run = run_of(["best", "use"], NAMES, noisy(GRID), fails={"use": NAMES[:10]})
    rung = rung_of(run)
    assert (rung.transcripts, rung.compared) == (40, 30)
    with pytest.raises(StatisticsError, match="no unit has input_tokens in every one of 2 arms"):
        rung_of(run_of(["best", "use"], NAMES, noisy(GRID), fails={"use": NAMES}))


def test_an_aim_that_no_search_can_reach_is_refused() -> None:
    with pytest.raises(StatisticsError, match="needs the baseline arm"):
        replace(AIM, metric="reduction_vs_baseline")
    with pytest.raises(StatisticsError, match="a factor of 1 would never drop an arm"):
        replace(AIM, factor=1)
