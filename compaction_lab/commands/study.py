"""``study``: a published study recomputed from its public data."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from compaction_lab.commands.arguments import EXPERIMENTS, Parser, verb
from compaction_lab.errors import ConfigurationError

OUT = Path("reports/studies")
NEEDS_A_RUN = "semantic_kernel"
USUAL_RUN = "laptop_catalog"
EXAMPLES = """\
  compaction-lab study complexity_trap --data ~/data/published
  compaction-lab study semantic_kernel
  compaction-lab study all --data ~/data/published
"""
TEXT = """\
Published value, ours and a verdict stand side by side; what differs is explained.
The tables are written as Markdown and csv. The data does not come with the lab:
datasets/README.md says where to get it. Without --data, the folder published/ in
COMPACTION_LAB_DATA is used. semantic_kernel reads a run of experiment=laptop_catalog."""


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "study", "a published study recomputed from its public data", TEXT, EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="a study, or all; `compaction-lab study list` lists them")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder that holds the studies' folders")
    parser.add_argument(
        "--run", default=USUAL_RUN, metavar="RUN", help="the run semantic_kernel reads (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help=f"where to write (default: {OUT})")


def execute(args: argparse.Namespace) -> int:
    """Recompute one study or all, print the verdicts and name the files; 1 when data is absent."""
    from compaction_lab.analysis.studies.base import DataAbsent
    from compaction_lab.analysis.studies.registry import STUDIES, study

    if args.name == "list":
        width = max(map(len, STUDIES))
        print("\n".join(f"{name:{width}}  {about}" for name, about in STUDIES.items()))
        return 0
    names = list(STUDIES) if args.name == "all" else [args.name]
    absent = 0
    for name in names:
        recompute = study(name)
        try:
            _recomputed(recompute(_source(name, args)), args.out)
        except DataAbsent as error:
            if args.name != "all":
                raise
            absent += 1
            print(error)
    return 1 if absent else 0


def _source(name: str, args: argparse.Namespace) -> Path:
    """Return the folder a study reads."""
    if name == NEEDS_A_RUN:
        run = Path(args.run)
        return run if run.is_dir() else EXPERIMENTS / run
    if args.data is not None:
        return Path(args.data)
    root = os.environ.get("COMPACTION_LAB_DATA")
    if not root:
        msg = f"study {name}: no data named; give --data DIR, or set COMPACTION_LAB_DATA to the folder above published/"
        raise ConfigurationError(msg)
    return Path(root) / "published"


def _recomputed(done: object, out: Path) -> None:
    from compaction_lab.analysis.studies.base import DIFFERS, EXPLAINED, Study
    from compaction_lab.analysis.studies.tables import shown, verdict_counts, write_study

    assert isinstance(done, Study)  # noqa: S101 - every study returns one
    print(done.title)
    for line in done.lines:
        values = f"published {shown(line.published, line.digits)}, ours {shown(line.ours, line.digits)}"
        unit = f" {line.unit}" if line.unit else ""
        print(f"  {line.verdict:9}  {line.target:4} {line.quantity}: {values}{unit}")
        if line.verdict in (EXPLAINED, DIFFERS) and line.note:
            print(f"             {line.note}")
    for finding in done.findings:
        print(f"- {finding}")
    print(f"{verdict_counts(done)}.")
    print(f"Written: {', '.join(str(path) for path in write_study(done, out))}\n")
