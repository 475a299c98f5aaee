"""How far a judge agrees with labels that people gave to the same answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from compaction_lab.errors import TranscriptError
from compaction_lab.statistics.agreement import Agreement, agreement

RIGHT_FROM = 0.5
"""A score from here on counts as right."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """An answer that a person found right or wrong."""

    question: str
    gold: tuple[str, ...]
    answer: str
    right: bool


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Agreement over the answers that the judge could judge, and how many it could not.

    ``agreement`` is ``None`` when it judged none.
    """

    agreement: Agreement | None
    missing: int
    false_right: int
    false_wrong: int


def judge_agreement(score: Callable[[Labelled], float | None], sample: Iterable[Labelled]) -> JudgeAgreement:
    """Compare a judge with labels.

    Parameters
    ----------
    score
        The judge: ``lambda item: subspan(item.answer, item.gold, item.question)``, or for a model
        ``lambda item: judge(item.question, item.gold, item.answer).score``.
    sample
        Labelled answers.
    """
    items = list(sample)
    scores = [(item.right, score(item)) for item in items]
    rated = [(label, found >= RIGHT_FROM) for label, found in scores if found is not None]
    found = None
    if rated:
        labels, judged = zip(*rated, strict=True)
        found = agreement(labels, judged, categories=[True, False])
    return JudgeAgreement(
        found,
        len(items) - len(rated),
        sum(judged and not label for label, judged in rated),
        sum(label and not judged for label, judged in rated),
    )


def read_labelled(path: Path) -> list[Labelled]:
    """Read labelled answers, one JSON object a line: ``question, gold`` (a list), ``answer, right`` (true or false).

    Raises
    ------
    TranscriptError
        A line is not such an object.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        known = isinstance(row, dict) and {"question", "gold", "answer", "right"} <= row.keys()
        if not known or not isinstance(row["right"], bool) or not isinstance(row["gold"], list):
            raise TranscriptError(
                f"{path}:{number}: found {line[:80]!r}; expected an object with question, gold (a list), answer and "
                "right (true or false)"
            )
        found.append(Labelled(str(row["question"]), tuple(map(str, row["gold"])), str(row["answer"]), row["right"]))
    return found
