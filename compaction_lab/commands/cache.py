"""``cache``: what the response cache holds, and forgetting some of it."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from typing import cast

from compaction_lab.commands.arguments import Parser, add_json, verb
from compaction_lab.commands.text import count, text_table

EXAMPLES = """\
  compaction-lab cache stats
  compaction-lab cache prune --unused-days 30
  compaction-lab cache prune --model gpt-5-mini --unused-days 0
"""
TEXT = """\
Replies of real models are kept in one file, $COMPACTION_LAB_CACHE or compaction_lab/replies.sqlite in the user's cache
folder, so that an equal request of any run is asked once. prune forgets what was not used for a number of days."""
DAY_S = 86_400.0


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "cache", "what the response cache holds; forget some of it", TEXT, EXAMPLES)
    parser.add_argument("action", choices=("stats", "prune"), help="say what it holds, or forget some of it")
    parser.add_argument("--unused-days", type=_days, default=90.0, metavar="DAYS", help="prune: default 90; 0 is all")
    parser.add_argument("--model", help="prune: replies of this model only")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show or prune."""
    from compaction_lab.models.response_cache import ResponseCache, default_path

    path = default_path()
    if not path.exists():
        print(json.dumps({"file": str(path), "replies": []}) if args.json else f"{path}: no reply was kept yet")
        return 0
    cache = ResponseCache(path)
    if args.action == "prune":
        gone = cache.prune(unused_for_s=args.unused_days * DAY_S, model=args.model)
        print(json.dumps({"file": str(path), "forgotten": gone}) if args.json else f"{path}: forgot {gone:,} replies")
        return 0
    rows = cache.stats()
    if args.json:
        print(json.dumps({"file": str(path), "replies": rows}, indent=2))
        return 0
    shown = [
        [str(row["model"]), str(row["endpoint"]), str(row["role"]), f"{row['replies']:,}", f"{row['bytes']:,}"]
        + [_day(cast("float", row[name])) for name in ("oldest_s", "last_used_s")]
        for row in rows
    ]
    print(f"{path}: {count(sum(cast('int', row['replies']) for row in rows), 'reply', 'replies')}")
    print(text_table(["model", "endpoint", "role", "replies", "bytes", "oldest", "last used"], shown))
    return 0


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()


def _days(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"expected a number of days, found {text!r}")
    return value
