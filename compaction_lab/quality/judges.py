"""Judges that need no model: how well an answer states what it should. A judgment that cannot be made is missing."""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import Protocol

from compaction_lab.errors import ConfigurationError


class Judge(Protocol):
    """Scores an answer between 0 and 1, or returns ``None`` when there is nothing to compare with."""

    def __call__(self, answer: str, gold: tuple[str, ...], question: str = "") -> float | None:
        """Score one answer; what the question itself says proves nothing in an answer."""
        ...


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)


def normalised(text: str) -> str:
    """Return ``text`` in lower case, without punctuation and English articles, white space folded.

    As the evaluation of Lost in the Middle does (Liu et al., TACL 2024), but punctuation becomes a space, so that
    ``1.3`` does not become ``13``.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _accepted(gold: tuple[str, ...]) -> list[str]:
    return [known for known in map(normalised, gold) if known]


def _telling(gold: tuple[str, ...], question: str) -> list[str]:
    """Return the accepted answers that an echo of the question would not contain."""
    asked = f" {normalised(question)} "
    return [span for span in _accepted(gold) if f" {span} " not in asked]


def exact(answer: str, gold: tuple[str, ...], question: str = "") -> float | None:  # noqa: ARG001 - one shape for all
    """Return 1 when the answer is one of the accepted ones; ``None`` when there is nothing to compare with."""
    known = _accepted(gold)
    return float(normalised(answer) in known) if known else None


def subspan(answer: str, gold: tuple[str, ...], question: str = "") -> float | None:
    """Return 1 when the answer contains an accepted one as whole words; ``None`` when there is none.

    Accepted answers that normalise to nothing, or stand in the question, do not count: any answer, or an echo of the
    question, would contain them. When none is left there is no judgment.

    Examples
    --------
    >>> subspan("It is the 32 GB model.", ("32 GB",)), subspan("Which is it?", ("which",), "Which is it?")
    (1.0, None)
    """
    known = _telling(gold, question)
    said = f" {normalised(answer)} "
    return float(any(f" {span} " in said for span in known)) if known else None


def facts(answer: str, gold: tuple[str, ...], question: str = "") -> float | None:
    """Return the share of the accepted answers that are stated: here each is a fact that has to be there."""
    known = _telling(gold, question)
    said = f" {normalised(answer)} "
    return sum(f" {span} " in said for span in known) / len(known) if known else None


def f1(answer: str, gold: tuple[str, ...], question: str = "") -> float | None:  # noqa: ARG001
    """Return the best overlap of words, as F1, with an accepted answer; ``None`` when there is none."""
    known = _accepted(gold)
    return max(_f1(normalised(answer).split(), span.split()) for span in known) if known else None


def numeric(answer: str, gold: tuple[str, ...], question: str = "") -> float | None:
    """Return 1 when the answer states the number of an accepted one and no other, but for numbers of the question.

    Thousands separators and trailing zeros do not matter; units are not looked at. ``None`` when no accepted answer
    holds exactly one number.

    Examples
    --------
    >>> numeric("About 1,250.50 in all.", ("1250.5",)), numeric("12 or 13", ("12",)), numeric("twelve", ("12",))
    (1.0, 0.0, 0.0)
    """
    known = {found.pop() for each in gold if len(found := _numbers(each)) == 1}
    asked = _numbers(question)
    said = _numbers(answer)
    said = said - asked or said
    return float(len(said) == 1 and bool(said & known)) if known else None


def _numbers(text: str) -> set[float]:
    return {float(found.replace(",", "")) for found in _NUMBER.findall(text)}


def _f1(said: list[str], span: list[str]) -> float:
    common = sum((Counter(said) & Counter(span)).values())
    return 2 * common / (len(said) + len(span)) if common else 0.0


JUDGES: dict[str, Judge] = {"exact": exact, "subspan": subspan, "f1": f1, "numeric": numeric, "facts": facts}
SEMANTICS = 2
"""Version of what the judges above score, part of every key."""


def judge(kind: str) -> Judge:
    """Return the judge of this kind.

    Raises
    ------
    ConfigurationError
        There is no such judge.
    """
    if kind not in JUDGES:
        msg = f"judge.kind={kind!r}; expected one of {', '.join(JUDGES)} or llm"
        raise ConfigurationError(msg)
    return JUDGES[kind]
