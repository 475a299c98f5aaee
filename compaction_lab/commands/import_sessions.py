"""``import``: recorded sessions of any known format into the lab's own."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

from compaction_lab.commands.arguments import Parser, add_json, verb
from compaction_lab.commands.text import count
from compaction_lab.errors import StoreError

if TYPE_CHECKING:
    from compaction_lab.importers.load import ImportReport
    from compaction_lab.importers.redaction import Redactor

EXAMPLES = """\
  compaction-lab import session.traj --out transcripts
  compaction-lab import logs/*.jsonl --out transcripts --on-error skip
  compaction-lab import ~/.claude/projects --out transcripts --redact
"""
TEXT = """\
Prints what it found and what it could not read, and keeps both in import_report.json beside the sessions. Nothing is
written unless every file was read.
"""
MEANINGS = {
    "abandoned_message": "left behind by a rewind",
    "call_without_content": "model calls whose messages were not captured",
    "elided_observation": "tool results that the agent had already shortened",
    "missing_input": "model calls without what was sent",
    "missing_parent": "lines whose parent is not in the file",
    "orphan_result": "tool results without a call",
    "recorded_compaction": "earlier messages were hidden from later calls: not an append-only session",
    "reconstructed_system_prompt": "put first from elsewhere in the log",
    "synthetic_message": "written by the program, not by the model",
    "unanswered_call": "tool calls without a result",
    "unread_choice": "further choices of a response",
    "unread_line": "lines of no kind the format has",
    "usage_cache_beside_input": "cached tokens counted beside the input, against the format",
}
"""What some warnings mean, in words."""


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "import", "recorded sessions of any known format into the lab's own", TEXT, EXAMPLES)
    parser.add_argument("files", nargs="+", metavar="FILE", help="recorded sessions, or folders of them")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder for NAME.jsonl files")
    parser.add_argument("--format", metavar="NAME", help="the format (default: told from the content)")
    parser.add_argument("--on-error", choices=("stop", "skip"), default="stop", help="at a bad record (default: stop)")
    parser.add_argument(
        "--redact", action="store_true", help="replace API keys, e-mail addresses and home folders; says how many"
    )
    parser.add_argument("--keep-media", action="store_true", help="keep images and files, not only their type and size")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Read everything, then write, then say what was found."""
    from compaction_lab.importers.lab import write_transcripts
    from compaction_lab.importers.load import read_transcripts
    from compaction_lab.importers.redaction import Redactor
    from compaction_lab.sweep.cells import path_names

    names = path_names([str(Path(name).resolve()) for name in args.files])
    read = {
        args.out / f"{name.replace('/', '_')}.jsonl": read_transcripts(
            path, format=args.format, on_error=args.on_error, keep_media=args.keep_media
        )
        for path, name in names.items()
    }
    for target in read:
        if str(target.resolve()) in names:
            raise StoreError(f"--out {args.out}: {target} would overwrite what is being read; choose another folder")
    redactor = Redactor() if args.redact else None
    args.out.mkdir(parents=True, exist_ok=True)
    found = []
    for target, (transcripts, report) in read.items():
        written = [redactor.transcript(each) for each in transcripts] if redactor else transcripts
        if written:
            write_transcripts(target, written)
        file = str(target) if written else None
        found.append({"file": file, **asdict(report), "usage_coverage": report.usage_coverage})
        if not args.json:
            print(_text(target if written else None, report))
    replaced = None if redactor is None else {"places": dict(redactor.replaced), "values": redactor.distinct}
    if args.json:
        print(json.dumps([{**each, "redacted": replaced} for each in found] if redactor else found, indent=2))
    elif redactor is not None:
        print(_redacted(redactor))
    _keep(args.out, [{**each, "redacted": replaced} for each in found], redactor)
    return 0


def _keep(folder: Path, found: list[dict[str, object]], redactor: Redactor | None) -> None:
    """Write what was found and left out beside the sessions, with what earlier imports into the folder found."""
    from compaction_lab.importers.lab import write_through
    from compaction_lab.importers.load import REPORT

    def redacted(value: object) -> object:
        return redactor.text(value) if redactor and isinstance(value, str) else value

    for each in found:
        each["file"] = Path(str(each["file"])).name if each["file"] else None
        skipped = cast("list[dict[str, object]]", each["skipped"])
        each["skipped"] = [{name: redacted(value) for name, value in one.items()} for one in skipped]
    try:
        stored = json.loads((folder / REPORT).read_text("utf-8"))
    except (OSError, ValueError):
        stored = []
    new = {each["file"] for each in found}
    earlier = [each for each in stored if isinstance(each, dict) and each.get("file") not in new]
    text = json.dumps([*earlier, *found], indent=2) + "\n"
    write_through(folder / REPORT, [text.encode("utf-8", "backslashreplace")])


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
    if report.model_calls:
        share = f"{100 * report.calls_with_usage / report.model_calls:.0f}%"
        lines.append(
            f"  {count(report.unanswered_calls, 'unanswered call')}, "
            f"usage recorded for {share} of {count(report.model_calls, 'model call')}, "
            f"{count(report.compactions, 'compaction')} in the log"
        )
    for kind, number in report.warnings.items():
        meaning = f" ({MEANINGS[kind]})" if kind in MEANINGS else ""
        lines.append(f"  accepted: {number} x {kind}{meaning}")
    lines += [f"  skipped {each.where}: {each.reason}" for each in report.skipped]
    return "\n".join(lines)


def _redacted(redactor: Redactor) -> str:
    kinds = {"key": "key", "email": "e-mail", "home": "home folder"}
    found = [
        f"{count(redactor.distinct[kind], name)} in {count(redactor.replaced[kind], 'place')}"
        for kind, name in kinds.items()
        if kind in redactor.distinct
    ]
    return f"redacted: {', '.join(found)}" if found else "redacted: nothing that looked like a key, address or home"
