"""``report``: figures, tables and a page for one run."""

from __future__ import annotations

import argparse
from pathlib import Path

from compaction_lab.commands.arguments import Parser, verb
from compaction_lab.errors import ConfigurationError

FORMATS = ("png", "svg", "pdf")
EXAMPLES = """\
  compaction-lab report laptop_catalog
  compaction-lab report laptop_catalog --out paper/figures --format pdf
"""
TEXT = "Each figure lies beside the data it shows (csv) and a note of where they came from (json)."


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "report", "figures and tables of a run, as files", TEXT, EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="name in experiments/, or a run folder")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: reports/RUN)")
    parser.add_argument("--format", default="png,svg,pdf", metavar="LIST", help="figure formats (default: png,svg,pdf)")


def execute(args: argparse.Namespace) -> int:
    """Write the report and name its files."""
    formats = tuple(part.strip() for part in args.format.split(",") if part.strip())
    unknown = [part for part in formats if part not in FORMATS]
    if unknown or not formats:
        raise ConfigurationError(f"--format {args.format}: expected some of {', '.join(FORMATS)}")
    from compaction_lab.report import write_report
    from compaction_lab.sweep.loading import load_run

    run = load_run(args.run)
    for path in write_report(run, args.out or Path("reports") / run.name, formats):
        print(path)
    return 0
