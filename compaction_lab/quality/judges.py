"""Judges that need no model: how well an answer states what it should. A judgment that cannot be made is missing."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable

from compaction_lab.errors import ConfigurationError

Judge = Callable[[str, tuple[str, ...]], float | None]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))


def normalised(text: str) -> str:
    """Return ``text`` in lower case, without punctuation and English articles, white space folded.

    As the evaluation of Lost in the Middle does (Liu et al., TACL 2024), but punctuation becomes a space, so that
    ``1.3`` does not become ``13``.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _accepted(gold: tuple[str, ...]) -> list[str]:
    return [known for known in map(normalised, gold) if known]


def exact(answer: str, gold: tuple[str, ...]) -> float | None:
    """Return 1 when the answer is one of the accepted ones; ``None`` when there is nothing to compare with."""
    known = _accepted(gold)
    return float(normalised(answer) in known) if known else None


def subspan(answer: str, gold: tuple[str, ...]) -> float | None:
    """Return 1 when the answer contains an accepted one as whole words; ``None`` when there is none."""
    known = _accepted(gold)
    said = f" {normalised(answer)} "
    return float(any(f" {span} " in said for span in known)) if known else None


def f1(answer: str, gold: tuple[str, ...]) -> float | None:
    """Return the best overlap of words, as F1, with an accepted answer; ``None`` when there is none."""
    known = _accepted(gold)
    return max(_f1(normalised(answer).split(), span.split()) for span in known) if known else None


def _f1(said: list[str], span: list[str]) -> float:
    common = sum((Counter(said) & Counter(span)).values())
    return 2 * common / (len(said) + len(span)) if common else 0.0


JUDGES: dict[str, Judge] = {"exact": exact, "subspan": subspan, "f1": f1}
SEMANTICS = 1
"""Version of what the judges above score, part of every key."""


def judge(kind: str) -> Judge:
    """Return the judge of this kind.

    Raises
    ------
    ConfigurationError
        There is no such judge.
    """
    if kind not in JUDGES:
        msg = f"judge.kind={kind!r}; expected one of {', '.join(JUDGES)}"
        raise ConfigurationError(msg)
    return JUDGES[kind]
