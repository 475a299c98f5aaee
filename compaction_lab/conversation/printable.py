"""Untrusted text made safe to look at: whatever would act on a screen is written out instead."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return text with control characters, changes of direction and broken surrogates written as escapes.

    Line ends, tabs and the joiner inside emoji stay.

    >>> print(printable("red \x1b[31m, reversed \u202e, broken \ud800"))
    red \x1b[31m, reversed \u202e, broken \ud800
    """
    return "".join(char if char in "\n\t\u200d" or char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
