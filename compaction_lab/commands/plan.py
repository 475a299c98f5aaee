"""``plan``: what ``run`` would do, without doing it."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import TYPE_CHECKING

from compaction_lab.commands.arguments import EXPERIMENTS, Parser, add_grid_arguments, add_json, verb
from compaction_lab.commands.text import WIDTH, count, money, text_table, whole

if TYPE_CHECKING:
    from compaction_lab.sweep.estimate import Estimate
    from compaction_lab.sweep.runner import Plan

EXAMPLES = """\
  compaction-lab plan experiment=laptop_catalog seed=0,1
  compaction-lab plan dataset.path=session.jsonl strategy=sliding_window strategy.keep_last=2,4,8
"""
TEXT = """\
Takes what run takes and writes nothing. Calls, tokens and dollars are those of the uncompacted baseline for every
unit: an upper bound on the agent's calls, to which the calls of summarizers come. Real models are not asked: their
calls, in every part they play, are those that stubs make in their place."""


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "plan", "what run would do: units done and owed, calls, tokens, dollars", TEXT, EXAMPLES)
    add_grid_arguments(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the plan."""
    from compaction_lab.sweep.estimate import estimate

    plan = planned(args)
    expected = estimate(plan)
    if args.json:
        print(json.dumps(_as_json(plan, expected), indent=2))
        return 0
    transcripts = sum(map(len, plan.transcripts.values()))
    owed = len(plan.owed)
    print(
        f"{plan.grid.name}: {count(len(plan.grid.cells), 'cell')}, {count(transcripts, 'transcript')}, "
        f"{count(plan.grid.trials, 'trial')}: {count(len(plan.units), 'unit')}, "
        f"{len(plan.done):,} done, {owed:,} owed"
    )
    rows = [[cell.arm, cell.model, cell.dataset, str(cell.seed)] for cell in plan.grid.cells[:_SHOWN]]
    print(text_table(["arm", "model", "dataset", "seed"], rows))
    if len(plan.grid.cells) > _SHOWN:
        print(f"... and {len(plan.grid.cells) - _SHOWN:,} more cells (--json lists all)")
    print(_expected(expected, owed))
    for line in skipped_records(plan):
        print(line)
    return 0


def planned(args: argparse.Namespace) -> Plan:
    """Expand a command line and compare it with what is stored."""
    from compaction_lab.sweep.grid import expand
    from compaction_lab.sweep.runner import plan

    grid = expand(
        args.overrides,
        args.arm,
        name=args.name,
        config_directories=args.config_dir,
        on_error=args.on_error,
    )
    return plan(grid, EXPERIMENTS / grid.name)


def skipped_records(plan: Plan) -> list[str]:
    """Say what of the recorded datasets was odd but accepted, and what was skipped (``--on-error skip``)."""
    from compaction_lab.sweep.unit import import_report

    said: dict[str, list[str]] = {}
    for cell in plan.grid.cells:
        if cell.dataset in said:
            continue
        said[cell.dataset] = []
        if (report := import_report(cell)) is not None:
            said[cell.dataset] += [f"{cell.dataset}: accepted {n:,} x {odd}" for odd, n in report.warnings.items()]
            if report.skipped:
                said[cell.dataset].append(f"{cell.dataset}: skipped {count(len(report.skipped), 'record')}")
                said[cell.dataset] += [f"  {each.reason}" for each in report.skipped]
    return [line for lines in said.values() for line in lines]


_SHOWN = 40


def _expected(expected: Estimate, owed: int) -> str:
    if not owed:
        return "nothing to do"
    if expected.calls is None:
        return f"calls, tokens and dollars unknown: {expected.basis}"
    dollars = f"{money(expected.cost_usd)} USD" if expected.cost_usd is not None else "unknown dollars"
    sums = (
        f"at most {whole(expected.calls)} agent calls, {whole(expected.input_tokens)} input and "
        f"{whole(expected.output_tokens)} output tokens, {dollars}"
    )
    if expected.real is not None:
        real = expected.real
        spent = "at an unknown price" if real.cost_usd is None else f"about {money(real.cost_usd)} USD to spend"
        sums += (
            f"\nreal models: about {whole(real.calls)} calls, {whole(real.input_tokens)} input and "
            f"{whole(real.output_tokens)} output tokens, {spent}"
        )
    return f"{sums}\n{textwrap.fill(f'({expected.basis})', WIDTH)}"


def _as_json(plan: Plan, expected: Estimate) -> dict[str, object]:
    cells = [
        {"cell": cell.key, "arm": cell.arm, "model": cell.model, "dataset": cell.dataset, "seed": cell.seed}
        for cell in plan.grid.cells
    ]
    return {
        "run": plan.grid.name,
        "baseline": plan.grid.baseline,
        "cells": cells,
        "transcripts": plan.transcripts,
        "trials": plan.grid.trials,
        "units": {"planned": len(plan.units), "done": len(plan.done), "owed": len(plan.owed)},
        "calls": expected.calls,
        "input_tokens": expected.input_tokens,
        "output_tokens": expected.output_tokens,
        "cost_usd": expected.cost_usd,
        "spent_usd": expected.spent_usd,
        "real_calls": expected.real.calls if expected.real else 0,
        "real_input_tokens": expected.real.input_tokens if expected.real else 0,
        "real_output_tokens": expected.real.output_tokens if expected.real else 0,
        "basis": expected.basis,
    }
