"""A study as files: a Markdown table with numbered notes for readers, a csv with more digits for programs."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from compaction_lab.analysis.studies.base import VERDICTS, Line, Study

COLUMNS = (
    "target",
    "quantity",
    "unit",
    "published",
    "ours",
    "ci_low",
    "ci_high",
    "n",
    "clusters",
    "bar",
    "verdict",
    "note",
)
"""Of the csv file."""

_HEAD = ("", "quantity", "published", "ours", "95 % interval", "n", "verdict", "note")
_MISSING = "–"


def write_study(study: Study, out: Path) -> list[Path]:
    """Write ``<name>.md`` and ``<name>.csv`` into a folder and return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix, text in (("md", to_markdown(study)), ("csv", to_csv(study))):
        path = out / f"{study.name}.{suffix}"
        path.write_text(text, encoding="utf-8", newline="")
        written.append(path)
    return written


def to_csv(study: Study) -> str:
    """Return the lines as csv, numbers with six significant digits, unknown values empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in study.lines:
        numbers = [_significant(value) for value in (line.published, line.ours, line.low, line.high)]
        writer.writerow(
            [
                line.target,
                line.quantity,
                line.unit,
                *numbers,
                "" if line.n is None else line.n,
                "" if line.clusters is None else line.clusters,
                _significant(line.bar),
                line.verdict,
                line.note,
            ]
        )
    return text.getvalue()


def to_markdown(study: Study) -> str:
    """Return the study as a page: what was done, what was found, the table, the notes."""
    notes = list(dict.fromkeys(line.note for line in study.lines if line.note))
    rows = [_row(line, notes) for line in study.lines]
    lines = [
        f"# {study.title}",
        "",
        f"Published: {study.source}",
        "",
        f"Recomputed: {study.method}",
        "",
        f"{verdict_counts(study)}.",
        "",
        *(f"- {finding}" for finding in study.findings),
        *([""] if study.findings else []),
        f"| {' | '.join(_HEAD)} |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- | --- |",
        *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows),
        "",
    ]
    lines += [f"{number}. {note}" for number, note in enumerate(notes, start=1)]
    return "\n".join(lines).rstrip() + "\n"


def verdict_counts(study: Study) -> str:
    """Return how many lines have each verdict, in words.

    Examples
    --------
    >>> verdict_counts(Study("s", "S", "", "", [])).startswith("0 lines")
    True
    """
    counts = study.counts
    parts = [f"{counts[verdict]} {verdict} ({meaning})" for verdict, meaning in VERDICTS.items() if counts[verdict]]
    return f"{len(study.lines)} lines: {', '.join(parts)}" if parts else f"{len(study.lines)} lines"


def shown(value: float | None, digits: int) -> str:
    """Return a number as it is printed; unknown is a dash.

    Examples
    --------
    >>> shown(-10.312, 1), shown(8.1e-16, 3), shown(None, 1)
    ('-10.3', '8e-16', '–')
    """
    if value is None:
        return _MISSING
    small = 0 < abs(value) < 0.5 * 10**-digits
    if small and abs(value) < 1e-6:  # noqa: PLR2004 - a p-value
        return f"{value:.0e}"
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def _row(line: Line, notes: list[str]) -> list[str]:
    interval = (
        _MISSING
        if line.low is None or line.high is None
        else f"{shown(line.low, line.digits)} .. {shown(line.high, line.digits)}"
    )
    n = _MISSING if line.n is None else f"{line.n:,}"
    if line.clusters is not None and line.clusters != line.n:
        n += f" in {line.clusters:,}"
    return [
        line.target,
        f"{line.quantity}, {line.unit}" if line.unit else line.quantity,
        shown(line.published, line.digits),
        shown(line.ours, line.digits),
        interval,
        n,
        line.verdict,
        str(notes.index(line.note) + 1) if line.note else "",
    ]


def _significant(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
