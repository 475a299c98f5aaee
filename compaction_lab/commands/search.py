"""``search``: good parameters without running the whole grid."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from compaction_lab.commands.arguments import (
    Parser,
    add_grid_arguments,
    add_json,
    dollars,
    positive,
    share,
    verb,
)
from compaction_lab.commands.text import WIDTH, count, fraction, interval, significant, text_table
from compaction_lab.errors import CompactionLabError, ConfigurationError

if TYPE_CHECKING:
    from compaction_lab.search import Aim, Confirmation, Guard, Rung
    from compaction_lab.sweep.loading import Run
    from compaction_lab.sweep.runner import Plan

EXAMPLES = """\
  compaction-lab search dataset.path=sessions.jsonl strategy=truncation \\
      strategy.max_tokens=2000,4000,8000 --metric cost_usd
  compaction-lab search dataset.path=sessions.jsonl --first 12 \\
      --arm "strategy=observation_masking strategy.keep_last=2,5,10,20" \\
      --arm "strategy=truncation strategy.max_tokens=4000,8000,16000" \\
      --metric cost_usd --guard "reference_recall>=0.9" \\
      --against "observation_masking"
"""
TEXT = """\
Takes what run takes. All arms run on a few sessions, the better half on twice as many, and so on (successive
halving), until the paired test tells the leader from every arm still in. What was found then meets the arm in use
once, on sessions held out from the start. Units are an ordinary run's: `run` with the same words does the rest, `show`
and `compare` read it, and the same search again repeats no unit.

Exit codes: 0 finished, confirmed or not; 1 usage or configuration; 2 units failed; 130 interrupted."""
_DIGITS, _SMALLEST_P = 3, 0.001
_GUARD = re.compile(r"\s*(\w+)\s*>=\s*(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*")


class _Halted(CompactionLabError):
    """The units of a rung could not all be done."""

    def __init__(self, text: str, *, interrupted: bool) -> None:
        super().__init__(text)
        self.interrupted = interrupted


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "search", "find good parameters on some sessions, confirm them on the others", TEXT, EXAMPLES)
    add_grid_arguments(parser)
    parser.add_argument("--metric", required=True, metavar="NAME", help="what is wanted low (or --better high)")
    parser.add_argument("--better", choices=("lower", "higher"), default="lower", help="which end (default: lower)")
    parser.add_argument("--guard", type=_guard, metavar="NAME>=X", help="mean that an arm must reach to be considered")
    parser.add_argument("--against", metavar="ARM", help="the arm in use (default: the uncompacted baseline)")
    parser.add_argument("--held-out", type=share, default=0.5, metavar="SHARE", help="of the sessions (default: 0.5)")
    parser.add_argument(
        "--first", type=positive, default=8, metavar="N", help="sessions of the first rung (default: 8)"
    )
    parser.add_argument(
        "--factor", type=positive, default=2, metavar="N", help="sessions times N, arms by N (default: 2)"
    )
    parser.add_argument("--split-seed", type=int, default=0, metavar="N", help="of split and resampling (default: 0)")
    parser.add_argument("-j", "--jobs", type=positive, metavar="N", help="processes (default: the executor's, 1)")
    parser.add_argument("--max-cost", type=dollars, metavar="USD", help="as for run, for each rung")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Search, confirm, and keep what was found beside the run."""
    from compaction_lab.commands.plan import planned
    from compaction_lab.search import confirm, search, split, winner

    plan = planned(args)
    aim, arms, names = _aim(args, plan)
    searched, held_out = split(names, aim)
    work = _Work(args, plan)
    say = (lambda _: None) if args.json else print
    say(_before(aim, arms, searched, held_out))
    rungs: list[Rung] = []
    final: Confirmation | None = None
    try:
        for rung in search(aim, arms, searched, work):
            rungs.append(rung)
            say(f"\n{_rung_text(rung, aim)}")
        found = winner(rungs[-1], aim)
        if found not in (None, aim.against):
            final = confirm(work([found, aim.against], held_out), aim, found, held_out)
    except _Halted as halted:
        print(f"search: {halted}", file=sys.stderr)
        return 130 if halted.interrupted else 2
    conclusion = final.verdict if final else _nothing(found, aim)
    full = len(plan.units)
    say(f"\n{_end_text(conclusion, final, aim)}\n{_fill(f'Units: {len(work.units):,}; the whole grid has {full:,}.')}")
    kept = {
        "aim": asdict(aim),
        "searched": searched,
        "held_out": held_out,
        "rungs": [asdict(rung) for rung in rungs],
        "found": found,
        "conclusion": conclusion,
        "confirmation": asdict(final) | {"difference": final.difference} if final else None,
        "units": {"used": len(work.units), "whole_grid": full},
    }
    text = json.dumps(_known_only(kept), indent=2, allow_nan=False)
    (plan.folder / "search.json").write_text(text + "\n", encoding="utf-8")
    print(text if args.json else f"search.json holds every rung.\nRun: {plan.folder}")
    return 0


class _Work:
    """Does units of the grid in its run folder, whatever of a rung is missing."""

    def __init__(self, args: argparse.Namespace, plan: Plan) -> None:
        self.args = args
        self.full = plan
        self.units: set[tuple[str, str, int]] = set()

    def __call__(self, arms: Sequence[str], transcripts: Sequence[str]) -> Run:
        from compaction_lab.commands.manifest import manifest
        from compaction_lab.commands.plan import skipped_records
        from compaction_lab.sweep.loading import load_run
        from compaction_lab.sweep.progress import Progress
        from compaction_lab.sweep.runner import Policy, execute, plan, settled

        args, full = self.args, self.full
        grid = replace(full.grid, cells=tuple(cell for cell in full.grid.cells if cell.arm in arms))
        part = plan(grid, full.folder, lambda _: transcripts)
        self.units.update(part.units)
        if not settled(part):
            progress = Progress(len(part.owed), sys.stderr, quiet=args.quiet)
            odd = skipped_records(full)
            for line in odd if len(self.units) == len(part.units) else ():
                progress.say(line, always=True)
            description = manifest(full, args.argv, args.overrides, args.arm) | {"odd_records": [*odd]}
            try:
                tally = execute(part, Policy(jobs=args.jobs, max_cost_usd=args.max_cost), description, progress)
            finally:
                progress.close()
            if tally.owed:
                reasons = "; ".join([*tally.errors, *([tally.stopped] if tally.stopped else [])]) or "interrupted"
                owed = f"{count(tally.owed, 'unit')} of {len(part.units):,} not done"
                raise _Halted(
                    f"{owed} ({reasons}); the same command goes on",
                    interrupted=tally.interrupted,
                )
        return load_run(full.folder)


def _aim(args: argparse.Namespace, plan: Plan) -> tuple[Aim, list[str], list[str]]:
    """Return what is looked for, among which arms, on which transcripts."""
    from compaction_lab.records import UNIT_COLUMNS
    from compaction_lab.search import Aim
    from compaction_lab.statistics.comparison import OWN_METRICS

    if len(plan.transcripts) != 1:
        raise ConfigurationError(f"search: {len(plan.transcripts)} datasets; give one, whose sessions can be split")
    baseline = plan.grid.baseline
    labels = list(dict.fromkeys(cell.arm for cell in plan.grid.cells))
    against = args.against or baseline
    if against is None or against not in labels:
        missing = f"no arm {against!r} in this grid" if against else "this grid has no baseline arm"
        raise ConfigurationError(f"search: {missing}; --against names the arm in use, one of: {', '.join(labels)}")
    arms = [label for label in labels if label != baseline or label == against]
    if not set(arms) - {against}:
        raise ConfigurationError(
            f"search: no arm but {against!r}, the one in use; sweep a parameter (strategy.keep_last=2,4,8) or add --arm"
        )
    metrics = sorted({*UNIT_COLUMNS, *OWN_METRICS, "reduction_vs_baseline"} - {"outcome", "error", "cost_kind"})
    for metric in (args.metric, *([args.guard.metric] if args.guard else [])):
        if metric not in metrics:
            raise ConfigurationError(f"search: no metric {metric!r}; metrics: {', '.join(metrics)}")
    aim = Aim(args.metric, against, args.better, args.guard, args.held_out, args.first, args.factor, args.split_seed)
    (names,) = plan.transcripts.values()
    return aim, arms, names


def _guard(text: str) -> Guard:
    from compaction_lab.search import Guard

    if not (found := _GUARD.fullmatch(text)):
        raise argparse.ArgumentTypeError(f"expected METRIC>=NUMBER, such as reference_recall>=0.9, found {text!r}")
    return Guard(found[1], float(found[2]))


def _before(aim: Aim, arms: Sequence[str], searched: Sequence[str], held_out: Sequence[str]) -> str:
    guard = f", among arms with mean {aim.guard}" if aim.guard else ""
    return _fill(
        f"Looking for {aim.better} {aim.metric}{guard}, in {count(len(arms), 'arm')} on {len(searched)} sessions; "
        f"{len(held_out)} are held out to confirm the winner against {aim.against}."
    )


def _rung_text(rung: Rung, aim: Aim) -> str:
    head = ["arm", "mean", "from leader, 95 %", "p", *(["guard"] if aim.guard else []), ""]
    rows = [
        [
            each.arm,
            significant(each.mean, _DIGITS),
            interval(each.ci_low, each.ci_high, _DIGITS) if place else "",
            _p(each.p_holm) if place else "",
            *([fraction(each.guard, 2)] if aim.guard else []),
            each.fate,
        ]
        for place, each in enumerate(rung.standings)
    ]
    compared = f", {rung.compared:,} with {aim.metric} in every arm" if rung.compared < rung.transcripts else ""
    end = "\nThe leader is told apart from every arm still in." if rung.settled else ""
    title = _fill(f"{count(rung.transcripts, 'session')}{compared}, {count(len(rows), 'arm')}")
    return f"{title}\n{text_table(head, rows)}{end}"


def _nothing(found: str | None, aim: Aim) -> str:
    """Say why there is nothing to confirm."""
    if found is not None:
        return f"found nothing better than {found}, the arm in use"
    return "found nothing: no arm left " + (
        f"has a mean {aim.guard} and fits the window" if aim.guard else "fits the window"
    )


def _end_text(conclusion: str, final: Confirmation | None, aim: Aim) -> str:
    text = f"{conclusion[0].upper()}{conclusion[1:]}."
    if final is None:
        return _fill(text)
    text += (
        f" On {count(final.transcripts, 'session')} held out: {aim.metric} of {final.arm} "
        f"{significant(final.mean, _DIGITS)}, {final.against} {significant(final.mean_against, _DIGITS)}: "
        f"{significant(final.difference, _DIGITS)} (95 % interval "
        f"{interval(final.ci_low, final.ci_high, _DIGITS)}, p {_p(final.p_value)})"
    )
    text += f"; mean {aim.guard.metric} {fraction(final.guard, 2)}." if aim.guard else "."
    if final.overflowed_against:
        text += f" {final.against} overflowed in {count(final.overflowed_against, 'unit')}, whose totals stop early."
    return _fill(text)


def _fill(text: str) -> str:
    return textwrap.fill(text, WIDTH)


def _p(value: float) -> str:
    return f"< {_SMALLEST_P}" if value < _SMALLEST_P else fraction(value, 3)


def _known_only(value: object) -> object:
    """Return a value for JSON: numbers that are not known or have no bound as null."""
    if isinstance(value, dict):
        return {key: _known_only(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_known_only(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
