"""``compare``: paired differences to the baseline arm."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import TYPE_CHECKING

from compaction_lab.commands.arguments import Parser, add_json, verb
from compaction_lab.commands.text import WIDTH, fraction, interval, significant, text_table, whole

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("whole_run_tokens", "cost_usd", "score")
MEANINGS = {
    "input_tokens": "the agent's calls alone; whole_run_tokens adds the summaries",
    "cost_usd": "the agent's and the summariser's calls",
    "score": "the rubric's, or the probes' where there is no rubric",
}
_DIGITS = 4

EXAMPLES = """\
  compaction-lab compare laptop_catalog
  compaction-lab compare laptop_catalog --metric cost_usd --metric score
  compaction-lab compare laptop_catalog --metric cost_usd --statistic median
  compaction-lab compare monday friday --baseline "sliding_window keep_last=8"
"""
TEXT = "Every difference is paired: only transcripts that both arms finished count, and the table says how many did."


def register(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add the verb."""
    parser = verb(verbs, "compare", "paired differences with intervals, on matched transcripts only", TEXT, EXAMPLES)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="names in experiments/, or run folders")
    parser.add_argument("--baseline", metavar="ARM", help="the arm to compare with (default: the run's baseline)")
    parser.add_argument(
        "--metric",
        action="append",
        metavar="NAME",
        help=f"a column of units, or one that is made of them (repeatable; default: {', '.join(METRICS)})",
    )
    parser.add_argument(
        "--statistic",
        choices=("mean", "median", "trimmed_mean"),
        default="mean",
        help="what is estimated of the differences; costs have heavy tails, a mean hangs on few (default: mean)",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print a table for each metric."""
    import compaction_lab as lab

    runs = [lab.load_run(name) for name in args.runs]
    tables = {
        metric: lab.compare(runs, metric=metric, baseline=args.baseline, statistic=args.statistic)
        for metric in args.metric or METRICS
    }
    if args.json:
        print(
            json.dumps(
                {metric: json.loads(table.to_json(orient="records")) for metric, table in tables.items()}, indent=2
            )
        )
        return 0
    print("\n\n".join(_text(metric, table) for metric, table in tables.items()))
    print(_coverage(next(iter(tables.values())).attrs["coverage"]))
    return 0


def _coverage(by_arm: dict[str, str]) -> str:
    """Say how much of what was planned the arms ran: once where it is the same, by arm where it is not."""
    arms_by_coverage: dict[str, list[str]] = {}
    for arm, coverage in by_arm.items():
        arms_by_coverage.setdefault(coverage, []).append(arm)
    most = max(arms_by_coverage, key=lambda coverage: len(arms_by_coverage[coverage]), default="")
    lines = [f"Units of each{' other' if len(arms_by_coverage) > 1 else ''} arm: {most}"]
    lines += [f"{', '.join(arms)}: {coverage}" for coverage, arms in arms_by_coverage.items() if coverage != most]
    return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in reversed(lines))


def _text(metric: str, table: pd.DataFrame) -> str:
    """Return one metric's table, and beneath it what is to be said about its arms."""
    rows = table.to_dict("records")
    bases = {significant(row["mean_baseline"], _DIGITS) for row in rows}
    shared = len(bases) == 1  # one number for all: said once, above the table
    means = ("mean_arm", "difference") if shared else ("mean_arm", "mean_baseline", "difference")
    head = ["arm", "n", "mean", *([] if shared else ["baseline"]), "difference", "%", "95 % interval", "p"]
    body = [
        [
            str(row["arm"]),
            whole(row["n_transcripts"]),
            *(significant(row[name], _DIGITS) for name in means),
            fraction(row["percent"], 1),
            interval(row["ci_low"], row["ci_high"], _DIGITS),
            fraction(row["p_holm"], 3),
        ]
        for row in rows
    ]
    arms_by_note: dict[str, list[str]] = {}
    for row in rows:
        if isinstance(note := row["note"], str) and note:
            arms_by_note.setdefault(note, []).append(str(row["arm"]))
    notes = [
        textwrap.fill(note if len(arms) == len(rows) else f"{', '.join(arms)}: {note}", WIDTH)
        for note, arms in arms_by_note.items()
    ]
    from compaction_lab.statistics.comparison import OWN_METRICS

    meaning = MEANINGS.get(metric) or OWN_METRICS.get(metric)
    what = textwrap.fill(f"{metric}: {meaning}", WIDTH) if meaning else metric
    mean = f", mean {bases.pop()}" if shared else ""
    baseline = f"against {rows[0]['baseline']}{mean} (n: transcripts both ran; p adjusted over arms)"
    baseline = textwrap.fill(baseline, WIDTH)
    return "\n".join([what, baseline, text_table(head, body), *notes])
