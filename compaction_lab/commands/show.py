"""``show``: one run's table, one unit's calls, or one call's context before and after as text."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from compaction_lab.commands.arguments import Parser, add_json, verb
from compaction_lab.commands.text import text_table, whole
from compaction_lab.conversation.printable import printable
from compaction_lab.errors import ConfigurationError

if TYPE_CHECKING:
    from compaction_lab.sweep.executors import Unit
    from compaction_lab.sweep.loading import Run

EXAMPLES = """\
  compaction-lab show laptop_catalog
  compaction-lab show laptop_catalog --unit semantic_kernel/hybrid/en
  compaction-lab show laptop_catalog --unit semantic_kernel/hybrid/en --call 14
"""
TEXT = """\
A unit is ARM/TRANSCRIPT or CELL/TRANSCRIPT, and /TRIAL when there are several; any part of it that fits one unit
alone will do."""


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "show", "one run's table, or one call's context before and after", TEXT, EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="name in experiments/, or a run folder")
    parser.add_argument("--unit", metavar="UNIT", help="the unit whose calls are listed")
    parser.add_argument("--call", type=int, metavar="N", help="with --unit: the call whose context is printed")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print what was asked for."""
    from compaction_lab.commands.results import results_json, results_text
    from compaction_lab.sweep.loading import load_run

    if args.call is not None and args.unit is None:
        raise ConfigurationError("--call: which unit's? Add --unit ARM/TRANSCRIPT")
    run = load_run(args.run)
    if args.unit is None:
        table = results_json(run) if args.json else results_text(run)
        print(json.dumps({"run": run.name, "table": table}, indent=2) if args.json else table)
        return 0
    unit = find_unit(run, args.unit)
    if args.call is None:
        _print_calls(run, unit, as_json=args.json)
        return 0
    from compaction_lab.sweep.inspection import context_text

    before, after = context_text(run, unit, args.call)
    if args.json:
        print(json.dumps({"before": before, "after": after}, indent=2, ensure_ascii=False))
    else:
        print(f"=== before (call {args.call}) ===\n{before}\n=== after (as sent) ===\n{after}")
    return 0


def find_unit(run: Run, text: str) -> Unit:
    """Return the one unit that a text names.

    Raises
    ------
    ConfigurationError
        When none or several do.
    """
    names = {unit: _names(run, unit) for unit in run.unit_rows}
    for fits in (str.__eq__, str.startswith, str.__contains__):
        found = [unit for unit, spellings in names.items() if any(fits(spelling, text) for spelling in spellings)]
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(names[unit][0] for unit in found[:8])
            raise ConfigurationError(
                f"--unit {text!r} fits {len(found)} units of {run.name}: {shown}; write more of it"
            )
    shown = ", ".join(spellings[0] for spellings in list(names.values())[:8])
    raise ConfigurationError(f"--unit {text!r}: {run.name} has no such unit; it has {shown or 'none yet'}")


def _names(run: Run, unit: Unit) -> list[str]:
    key, transcript, trial = unit
    cell = run.cell_by_key[key]
    places = [cell.arm, f"{cell.arm}/{cell.model}/{cell.dataset}/{cell.seed}", key]
    return [f"{place}/{transcript}/{trial}" for place in places] + [f"{place}/{transcript}" for place in places]


def _print_calls(run: Run, unit: Unit, *, as_json: bool) -> None:
    key, transcript, trial = unit
    calls = run.calls
    own = calls[(calls["cell"] == key) & (calls["transcript"] == transcript) & (calls["trial"] == trial)]
    if as_json:
        print(own.to_json(orient="records", indent=2))
        return
    print(printable(_names(run, unit)[0]))
    head = ["call", "turn", "purpose", "before", "sent", "output", "compacted"]
    rows = [
        [
            str(row["call"]),
            str(row["turn"]),
            str(row["purpose"]),
            whole(row["context_tokens_before"]),
            whole(row["input_tokens"]),
            whole(row["output_tokens"]),
            "yes" if row["compacted"] is True else "",
        ]
        for row in own.to_dict("records")
    ]
    print(text_table(head, rows))
