"""Tables and numbers as text that fits a terminal."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import SupportsFloat, TypeGuard

from compaction_lab.accounting.amounts import usd
from compaction_lab.conversation.printable import printable

WIDTH = 80
_GAP = "  "
_INDENT = "  "
_NARROWEST = 16
_HANGING = 8
_WHOLE_FROM = 1000


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int = WIDTH, *, whole_labels: bool = False
) -> str:
    """Return a table: the first column to the left and wrapped, the others to the right and whole.

    ``whole_labels`` never breaks a label, for names that are to be copied: one too long has a line to itself.

    >>> print(text_table(["arm", "tokens"], [["none", "1,200"], ["truncation", "800"]]))
    arm         tokens
    none         1,200
    truncation     800
    """
    rows = [[printable(text) for text in row] for row in rows]
    others = [max(len(row[i]) for row in [head, *rows]) for i in range(1, len(head))]
    room = max(_NARROWEST, width - sum(others) - len(_GAP) * len(others))
    first = min(room, max(len(row[0]) for row in [head, *rows]))
    lines = []
    for row in [head, *rows]:
        wrapped = wrap_label(row[0], first) if not whole_labels or len(row[0]) <= first else [""]
        lines += [row[0]] if wrapped == [""] else []
        numbers = "".join(_GAP + text.rjust(size) for text, size in zip(row[1:], others, strict=True))
        lines.append(wrapped[0].ljust(first) + numbers)
        lines += wrapped[1:]
    return "\n".join(line.rstrip() for line in lines)


def definitions(meanings: Mapping[str, str], width: int = WIDTH, indent: str = _INDENT) -> str:
    """Return names with what they mean beside or, where a name is long, beneath them.

    >>> print(definitions({"none": "the baseline", "agent_framework/token_budget_composed": "over a budget"}, 40))
      none    the baseline
      agent_framework/token_budget_composed
              over a budget
    """
    if not meanings:
        return ""
    most = width // 3
    column = max((len(name) for name in meanings if len(name) <= most), default=_HANGING) + len(_GAP)
    column = max(column, _HANGING)
    lines = []
    for name, meaning in meanings.items():
        text = textwrap.wrap(printable(meaning), width - len(indent) - column)
        beside = len(name) + len(_GAP) <= column
        lines += [indent + (name.ljust(column) + (text[0] if text else "") if beside else name)]
        lines += [indent + " " * column + line for line in text[1 if beside else 0 :]]
    return "\n".join(line.rstrip() for line in lines)


def wrap_label(label: str, width: int) -> list[str]:
    """Break a label after spaces and slashes, and inside a word only when nothing else helps.

    >>> wrap_label("semantic_kernel/observation_masking keep_last=2", 24)
    ['semantic_kernel/', '  observation_masking', '  keep_last=2']
    """
    lines = [""]
    for piece in re.findall(r"[^ /]*[ /]*", label):
        if len(lines[-1] + piece.rstrip()) <= width:
            lines[-1] += piece
            continue
        lines += [_INDENT + chunk for chunk in _chunks(piece, width - len(_INDENT))]
    return [line.rstrip() for line in lines if line.strip()] or [""]


def _chunks(word: str, width: int) -> list[str]:
    """Cut a word that may be too long for a line, after an underscore or equals sign where there is one."""
    chunks = [""]
    for part in re.findall(r"[^_=]*[_=]*\s*", word):
        if len(chunks[-1] + part.rstrip()) <= width:
            chunks[-1] += part
        else:
            chunks += [part[at : at + width] for at in range(0, len(part), width)]
    return [chunk for chunk in chunks if chunk]


def whole(value: object) -> str:
    """Write a count with thousands separators; missing is a dash."""
    return f"{value:,.0f}" if known(value) else "-"


def fraction(value: object, digits: int = 2) -> str:
    """Write a number with few decimals; missing is a dash."""
    return f"{value:.{digits}f}" if known(value) else "-"


def significant(value: object, digits: int) -> str:
    """Write a number with so many significant digits, from a thousand on whole; missing is a dash.

    >>> significant(0.012345, 3), significant(40928.4, 3), significant(None, 3)
    ('0.0123', '40,928', '-')
    """
    return f"{value:,.{digits}g}" if known(value) and abs(float(value)) < _WHOLE_FROM else whole(value)


def interval(low: object, high: object, digits: int) -> str:
    """Write both ends of an interval; missing is a dash."""
    return f"{significant(low, digits)}..{significant(high, digits)}" if known(low) else "-"


def money(value: object) -> str:
    """Write dollars with as many decimals as a small amount needs; missing is a dash."""
    return usd(float(value)) if known(value) else "-"


def known(value: object) -> TypeGuard[SupportsFloat]:
    """Whether a value of a table is a number rather than missing."""
    return isinstance(value, SupportsFloat) and not isinstance(value, bool) and not math.isnan(value)


def count(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun.

    >>> count(1, "unit"), count(1200, "unit")
    ('1 unit', '1,200 units')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
