"""``list``: the stored runs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from compaction_lab.commands.arguments import EXPERIMENTS, Parser, add_json, verb
from compaction_lab.commands.text import text_table
from compaction_lab.errors import CompactionLabError


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(
        verbs, "list", "the runs stored in experiments/", "", "  compaction-lab list\n  compaction-lab list --json"
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print one line a run."""
    runs = [_summary(path.parent) for path in sorted(EXPERIMENTS.glob("**/cells.jsonl"))]
    if args.json:
        print(json.dumps(runs, indent=2))
    elif not runs:
        print(f"no runs in {EXPERIMENTS.resolve()}; `compaction-lab run experiment=laptop_catalog` makes one")
    else:
        head = ["run", "arms", "done", "planned", "failed", "started"]
        rows = [[str(run[name]) if run[name] is not None else "-" for name in head] for run in runs]
        print(text_table(head, rows, whole_labels=True))
    return 0


def _summary(folder: Path) -> dict[str, object]:
    from compaction_lab.sweep.loading import load_run

    name = folder.relative_to(EXPERIMENTS).as_posix()
    try:
        run = load_run(folder)
    except CompactionLabError as error:
        return {
            "run": f"{name} ({error})",
            "arms": None,
            "done": None,
            "planned": None,
            "failed": None,
            "started": None,
        }
    arms = {cell.arm for cell in run.cell_by_key.values()}
    started = run.manifest.get("started")
    return {
        "run": name,
        "arms": len(arms),
        "done": run.coverage.ran,
        "planned": run.coverage.planned,
        "failed": run.coverage.failed,
        "started": str(started)[:16].replace("T", " ") if started else None,
    }
