"""``import``: recorded sessions of any known format into the lab's own."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from compaction_lab.commands.arguments import Parser, add_json, verb
from compaction_lab.commands.text import count
from compaction_lab.errors import StoreError

if TYPE_CHECKING:
    from compaction_lab.importers.load import ImportReport

EXAMPLES = """\
  compaction-lab import session.traj --out transcripts
  compaction-lab import logs/*.jsonl --out transcripts --on-error skip
"""
TEXT = "Prints what it found and what it could not read. Nothing is written unless every file was read."


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "import", "recorded sessions of any known format into the lab's own", TEXT, EXAMPLES)
    parser.add_argument("files", nargs="+", metavar="FILE", help="recorded sessions, or folders of them")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder for NAME.jsonl files")
    parser.add_argument("--format", metavar="NAME", help="the format (default: told from the content)")
    parser.add_argument("--on-error", choices=("stop", "skip"), default="stop", help="at a bad record (default: stop)")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Read everything, then write, then say what was found."""
    from compaction_lab.importers.lab import write_transcripts
    from compaction_lab.importers.load import read_transcripts
    from compaction_lab.sweep.cells import path_names

    names = path_names([str(Path(name).resolve()) for name in args.files])
    read = {
        args.out / f"{name.replace('/', '_')}.jsonl": read_transcripts(path, format=args.format, on_error=args.on_error)
        for path, name in names.items()
    }
    for target in read:
        if str(target.resolve()) in names:
            raise StoreError(f"--out {args.out}: {target} would overwrite what is being read; choose another folder")
    args.out.mkdir(parents=True, exist_ok=True)
    found = []
    for target, (transcripts, report) in read.items():
        if transcripts:
            write_transcripts(target, transcripts)
        found.append({"file": str(target) if transcripts else None, **asdict(report)})
        if not args.json:
            print(_text(target if transcripts else None, report))
    if args.json:
        print(json.dumps(found, indent=2))
    return 0


def _text(target: Path | None, report: ImportReport) -> str:
    formats = ", ".join(sorted(report.formats)) or "no known format"
    parts = [
        count(report.transcripts, "transcript"),
        count(report.turns, "turn"),
        count(report.messages, "message"),
        count(report.tool_calls, "tool call"),
        count(report.tool_results, "tool result"),
    ]
    lines = [f"{target or 'nothing written'}: {', '.join(parts)} ({formats})"]
    lines += [f"  accepted: {number} x {kind}" for kind, number in report.warnings.items()]
    lines += [f"  skipped {each.where}: {each.reason}" for each in report.skipped]
    return "\n".join(lines)
