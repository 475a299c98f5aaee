"""``report``: figures, tables and a page for one run."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path

from compaction_lab.commands.arguments import Parser, verb
from compaction_lab.commands.text import WIDTH
from compaction_lab.errors import ConfigurationError

FORMATS = ("png", "svg", "pdf")
EXAMPLES = """\
  compaction-lab report laptop_catalog
  compaction-lab report laptop_catalog --out paper/figures --format pdf
"""
TEXT = "Each figure lies beside the data it shows (csv) and a note of where they came from (json)."


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "report", "figures, tables and a page of a run, as files", TEXT, EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="name in experiments/, or a run folder")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: reports/RUN)")
    parser.add_argument("--format", default="png,svg,pdf", metavar="LIST", help="figure formats (default: png,svg,pdf)")
    parser.add_argument(
        "--sessions",
        type=int,
        metavar="N",
        help="sessions in the page's context view, those with the most misses first (default: as many as have 30,000 "
        "calls in all arms)",
    )
    parser.add_argument("--force", action="store_true", help="write it again though nothing has changed")


def execute(args: argparse.Namespace) -> int:
    """Write the report and name its files."""
    formats = tuple(part.strip() for part in args.format.split(",") if part.strip())
    unknown = [part for part in formats if part not in FORMATS]
    if unknown or not formats:
        raise ConfigurationError(f"--format {args.format}: expected some of {', '.join(FORMATS)}")
    if args.sessions is not None and args.sessions < 0:
        raise ConfigurationError(f"--sessions {args.sessions}: expected a number of sessions, 0 or more")
    from compaction_lab.report.page import NAME, picture_files, write_page
    from compaction_lab.report.writing import current_files, left_out, terminal_table, write_report
    from compaction_lab.sweep.loading import load_run

    run = load_run(args.run)
    out = args.out or Path("reports") / run.name
    current = [] if args.force else current_files(run, out, formats)
    written = current or write_report(run, out, formats)
    page = out / NAME
    if not current or not page.is_file() or args.sessions is not None:
        write_page(run, out, picture_files(written), left_out(out), args.sessions)
    for folder, what in (("figures", f"{', '.join(formats)}; the data of each as csv"), ("tables", "md, csv, tex")):
        names = dict.fromkeys(path.stem for path in written if path.parent.name == folder)
        print(f"{folder.capitalize()} in {out / folder} ({what}):\n  " + "\n  ".join(names))
    print(_left_out(left_out(out), out), end="")
    print(f"Page, opens from disk: {page}")
    print()
    print(terminal_table(run), end="")
    if current:
        print(f"The report in {out} is up to date, nothing was written (--force writes it again)")
    return 0


def _left_out(reasons: dict[str, str], out: Path) -> str:
    """Name the figures that want data; say why where a user would miss one."""
    if not reasons:
        return ""
    lines = [f"Not drawn for want of data: {', '.join(reasons)} ({out / 'report.json'} says why)"]
    if "frontier" in reasons:
        lines.append(reasons["frontier"])
    return "".join(textwrap.fill(line, WIDTH, subsequent_indent="  ") + "\n" for line in lines)
