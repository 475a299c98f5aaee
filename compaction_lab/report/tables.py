"""Frames as tables people read: Markdown, LaTeX and terminal text are formatted, CSV keeps every digit."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from compaction_lab.accounting.amounts import usd
from compaction_lab.conversation.printable import printable
from compaction_lab.report.style import wrapped

MISSING = "–"
"""What stands for an unknown value in print; CSV leaves it empty."""

_SCORES = ("rubric score", "probe recall", "evidence visible")
_LARGE = 100
_ARM_MIN_WIDTH = 16
_MARKDOWN = str.maketrans({"|": "\\|", "<": "&lt;", "&": "&amp;"})
_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_\allowbreak{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    MISSING: "--",
}


def shown(column: str, value: object) -> str:
    """Return one value as it is printed, on one line, by the unit its column's name states.

    Examples
    --------
    >>> shown("mean reduction %", 38.0019), shown("input tokens", 134505.0), shown("probe recall", float("nan"))
    ('38.0', '134,505', '–')
    """
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, str) or not isinstance(value, int | float):
        return printable(" ".join(str(value).splitlines()))
    if "%" in column:
        return f"{value:.1f}"
    if "USD" in column:
        return usd(value)
    if column in _SCORES:
        return f"{value:.2f}"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= _LARGE else f"{value:,.2f}"


def to_csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV with every digit."""
    return str(frame.to_csv(index=False, lineterminator="\n"))


def to_markdown(frame: pd.DataFrame) -> str:
    """Return a frame as a Markdown table, numbers to the right; text that would be markup there shows as text."""
    rule = ["---:" if right else "---" for right in _right(frame)]
    rows = [[str(name) for name in frame], rule, *_cells(frame)]
    return "".join(f"| {' | '.join(cell.translate(_MARKDOWN) for cell in row)} |\n" for row in rows)


def to_tex(frame: pd.DataFrame) -> str:
    """Return a frame as a LaTeX ``tabular`` that needs the package booktabs."""
    spec = "".join("r" if right else "l" for right in _right(frame))
    lines = [f"\\begin{{tabular}}{{{spec}}}", r"\toprule"]
    rows = [[str(name) for name in frame], *_cells(frame)]
    body = [" & ".join("".join(_TEX.get(sign, sign) for sign in cell) for cell in row) + r" \\" for row in rows]
    return "\n".join([*lines, body[0], r"\midrule", *body[1:], r"\bottomrule", r"\end{tabular}", ""])


def to_text(frame: pd.DataFrame, width: int = 80) -> str:
    """Return a frame as plain text for a terminal: headers broken into words, the first column into lines.

    Parameters
    ----------
    frame
        A table whose first column names the arm.
    width
        Columns of the terminal; the first column gives way, down to 16 characters.
    """
    headers, cells = [str(name) for name in frame], _cells(frame)
    widths = []
    for place, header in enumerate(headers):
        longest_word = max(len(word) for word in header.split())
        widths.append(max([longest_word, *(len(row[place]) for row in cells)]))
    others = sum(widths[1:]) + 2 * (len(widths) - 1)
    widths[0] = max(min(widths[0], width - others), min(widths[0], _ARM_MIN_WIDTH))
    right = _right(frame)
    lines = _broken(headers, widths, right, bottom=True)
    lines.append("  ".join("-" * size for size in widths))
    for row in cells:
        lines += _broken(row, widths, right, bottom=False)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _broken(row: list[str], widths: list[int], right: list[bool], *, bottom: bool) -> list[str]:
    parts = [wrapped(cell, size).split("\n") for cell, size in zip(row, widths, strict=True)]
    height = max(len(part) for part in parts)
    padded = [[""] * (height - len(part)) + part if bottom else part + [""] * (height - len(part)) for part in parts]
    align: list[Callable[[str, int], str]] = [str.rjust if ends else str.ljust for ends in right]
    return [
        "  ".join(align[place](part[level], widths[place]) for place, part in enumerate(padded))
        for level in range(height)
    ]


def _cells(frame: pd.DataFrame) -> list[list[str]]:
    names = [str(name) for name in frame]
    return [[shown(name, value) for name, value in zip(names, row, strict=True)] for row in frame.to_numpy(object)]


def _right(frame: pd.DataFrame) -> list[bool]:
    return [pd.api.types.is_numeric_dtype(frame[name]) or name == "peak at turn" for name in frame]
