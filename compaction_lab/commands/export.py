"""``export``: a run's tables for other tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from compaction_lab.commands.arguments import Parser, verb
from compaction_lab.errors import StoreError

EXAMPLES = """\
  compaction-lab export laptop_catalog --table turns > turns.csv
  compaction-lab export laptop_catalog --table calls --format parquet --out calls.parquet
"""
TEXT = "Equal cells export equal bytes; measured times, which differ from run to run, need --timings."
TABLES = ("calls", "turns", "compactions", "probes", "units", "cells")


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "export", "a table of a run as csv, parquet, md or tex", TEXT, EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="name in experiments/, or a run folder")
    parser.add_argument("--table", choices=TABLES, default="units", help="which table (default: units)")
    parser.add_argument("--format", choices=("csv", "parquet", "md", "tex"), default="csv", help="default: csv")
    parser.add_argument("--timings", action="store_true", help="with measured times")
    parser.add_argument("--out", type=Path, metavar="FILE", help="file to write (default: standard output)")


def execute(args: argparse.Namespace) -> int:
    """Write one table."""
    from compaction_lab.sweep.loading import load_run
    from compaction_lab.sweep.tables import export

    content = export(load_run(args.run), args.table, args.format, timings=args.timings)
    if args.out is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return 0
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_bytes(content)
    except OSError as error:
        raise StoreError(f"--out {args.out}: {error.strerror}; choose a file that can be written") from error
    return 0
