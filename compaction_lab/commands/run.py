"""``run``: the sweep."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import TYPE_CHECKING

from compaction_lab.commands.arguments import (
    EXPERIMENTS,
    Parser,
    add_grid_arguments,
    add_json,
    dollars,
    positive,
    share,
    verb,
)
from compaction_lab.commands.text import count

if TYPE_CHECKING:
    from compaction_lab.sweep.runner import Tally

EXAMPLES = """\
  compaction-lab run experiment=laptop_catalog
  compaction-lab run strategy=sliding_window strategy.keep_last=2,4,8 seed=0,1
  compaction-lab run dataset.path=session.jsonl \\
      --arm "strategy=observation_masking strategy.keep_last=2,5" \\
      --arm "strategy=truncation strategy.max_tokens=4000"
"""
TEXT = """\
Overrides follow Hydra's grammar; values separated by commas are swept. Overrides of strategy, after_strategy and
summarizer form one grid line that replaces the experiment's; all others apply to every line. The uncompacted
baseline arm is added by itself. The same command again does only what is missing.

Exit codes: 0 complete, 1 usage or configuration, 2 units failed and are still owed, 130 interrupted."""


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "run", "run a sweep into experiments/NAME, or go on with it", TEXT, EXAMPLES)
    add_grid_arguments(parser)
    parser.add_argument("-j", "--jobs", type=positive, metavar="N", help="processes (default: the executor's, 1)")
    parser.add_argument("--limit", type=positive, metavar="N", help="attempt at most N units")
    parser.add_argument(
        "--existing",
        choices=("only-missing", "always", "never", "only-cache"),
        default="only-missing",
        help="do what is missing; every unit again; refuse a run that exists; or do what needs no call to a real model",
    )
    parser.add_argument(
        "--max-cost",
        type=dollars,
        metavar="USD",
        help="stop before the real model call that could make this command cost more; 0: no call that costs anything",
    )
    parser.add_argument("--max-error-rate", type=share, metavar="SHARE", help="stop once this share of units failed")
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first failed unit")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, only failures and the table")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for every unit")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Run what is owed, print the table, and say how to go on when something is left."""
    from compaction_lab.commands.manifest import manifest
    from compaction_lab.commands.plan import planned, skipped_records
    from compaction_lab.sweep.progress import Progress
    from compaction_lab.sweep.runner import Policy, Tally, execute, settled

    plan = planned(args)
    policy = Policy(args.existing, args.limit, args.jobs, args.fail_fast, args.max_error_rate, args.max_cost)
    todo = plan.units if args.existing == "always" else plan.owed
    progress = Progress(min(len(todo), args.limit or len(todo)), sys.stderr, quiet=args.quiet, verbose=args.verbose)
    odd = skipped_records(plan)
    for line in odd:
        progress.say(line, always=True)
    tally = Tally(owed=len(plan.owed))
    if args.existing == "only-missing" and settled(plan):
        every = "its unit is" if len(plan.units) == 1 else f"all {len(plan.units)} units of {plan.grid.name} are"
        progress.say(f"nothing to do: {every} stored")
    else:
        description = manifest(plan, args.argv, args.overrides, args.arm) | {"odd_records": [*odd]}
        try:
            tally = execute(plan, policy, description, progress)
        finally:
            progress.close()
    _report(args, plan.grid.name, len(plan.units), len(plan.done), tally)
    return _exit_code(args, tally)


def _report(args: argparse.Namespace, name: str, units: int, done_before: int, tally: Tally) -> None:
    from compaction_lab.commands.results import results_json, results_text
    from compaction_lab.sweep.loading import load_run

    folder = EXPERIMENTS / name
    run = load_run(folder) if (folder / "cells.jsonl").exists() else None
    if args.json:
        counts = {"planned": units, "done_before": done_before, "ran": tally.ran, "failed": tally.failed}
        result = {
            "run": name,
            "folder": str(folder),
            "units": {**counts, "owed": tally.owed},
            "interrupted": tally.interrupted,
            "stopped": tally.stopped or None,
            "errors": tally.errors,
            "table": results_json(run) if run else [],
        }
        print(json.dumps(result, indent=2))
    elif run is not None:
        print(f"{results_text(run)}\nRun: {folder}")
    _say_what_is_left(args, tally)


def _say_what_is_left(args: argparse.Namespace, tally: Tally) -> None:
    for error, number in sorted(tally.errors.items(), key=lambda item: -item[1])[:5]:
        print(f"{number} x {error}", file=sys.stderr)
    if tally.uncached:
        print(f"replies for {count(tally.uncached, 'unit')} are not in the cache", file=sys.stderr)
    if tally.stopped:
        print(f"stopped: {tally.stopped}", file=sys.stderr)
    if tally.owed:
        owed = f"{count(tally.owed, 'unit')} {'is' if tally.owed == 1 else 'are'} still owed"
        print(f"{owed}; go on with\n  {resume_command(args.argv)}", file=sys.stderr)


def resume_command(argv: list[str]) -> str:
    """Return the command that does what is left: the same one, less what would start over or stop short."""
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word in {"--existing", "--limit"}:
            next(words, None)
        elif not word.startswith(("--existing=", "--limit=")):
            kept.append(word)
    return shlex.join(["compaction-lab", *kept])


def _exit_code(args: argparse.Namespace, tally: Tally) -> int:
    if tally.interrupted and tally.owed:
        return 130
    if tally.owed and (tally.failed or tally.stopped or args.existing == "only-cache"):
        return 2
    return 0
