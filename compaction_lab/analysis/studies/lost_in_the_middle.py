"""Lost in the Middle (Liu et al., TACL 2024): its metric and its data, and what its printed rates can carry (R10)."""

from __future__ import annotations

import gzip
import json
import re
import string
from pathlib import Path
from typing import cast

import numpy as np

from compaction_lab.analysis.studies.base import Line, Measured, Study, files, line
from compaction_lab.conversation.messages import JSON
from compaction_lab.quality.judges import subspan
from compaction_lab.statistics import estimators
from compaction_lab.statistics.estimators import Interval

SOURCE = (
    "Liu et al., Lost in the Middle (TACL 2024, arXiv 2307.03172), repository nelson-liu/lost-in-the-middle, commit "
    "29b8a6d, MIT; passages from Wikipedia and Natural Questions."
)
METHOD = (
    "the paper's normaliser and substring metric, written again, on the 2,655 questions with their gold passage and "
    "the 500 key-value records; Wilson intervals of printed rates from their n. Model answers are not public: no "
    "rate of a model can be recomputed."
)
ORACLE, RECORDS = "nq-open-oracle.jsonl.gz", "kv-retrieval-75_keys.jsonl.gz"
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)
_SHORT = 2
_QUESTIONS = 2_655
_CLOSED_BOOK, _CURVE = 56.1, {0: 75.8, 4: 57.2, 9: 53.8, 14: 55.4, 19: 63.2}


def recompute(data: Path) -> Study:
    """Return the metric's behaviour on the public data."""
    oracle, records = files(data, "lost_in_the_middle", "lost_in_the_middle", (ORACLE, RECORDS))
    return Study(
        "lost_in_the_middle",
        "Lost in the Middle: metric and data",
        SOURCE,
        METHOD,
        [*_metric(_read(oracle)), *_key_values(_read(records)), *_printed()],
        (
            (
                "The gold passage satisfies the metric on every question, so a failure is the reader's. Echoing the "
                "question already scores 2 %."
            ),
            (
                "The dip below the closed-book rate (53.8 against 56.1) is not told apart from chance by unpaired "
                "rates; the fall from the first place to the middle is far beyond it."
            ),
        ),
    )


def normalised(text: str) -> str:
    """Return text as the paper's evaluation normalises it: lower case, no punctuation, no articles, single spaces.

    Examples
    --------
    >>> normalised("The  U.S. Navy!")
    'us navy'
    """
    kept = "".join(sign for sign in text.lower() if sign not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split())


def best_subspan(prediction: str, answers: list[str]) -> float:
    """Return 1 when any normalised answer is a substring of the normalised prediction (the paper's metric).

    Examples
    --------
    >>> best_subspan("It was Paris.", ["paris"]), best_subspan("It was Rome.", ["paris"])
    (1.0, 0.0)
    """
    said = normalised(prediction)
    return float(any(normalised(answer) in said for answer in answers))


def _read(path: Path) -> list[dict[str, JSON]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(text) for text in file]


def _metric(rows: list[dict[str, JSON]]) -> list[Line]:
    gold, ours, empty, short, echoed = 0.0, 0.0, 0, 0, 0
    for row in rows:
        answers = cast("list[str]", row["answers"])
        question = str(row["question"])
        passage = " ".join(str(part["text"]) for part in cast("list[dict[str, str]]", row["ctxs"]))
        gold += best_subspan(passage, answers)
        ours += subspan(passage, tuple(answers)) or 0.0
        forms = [normalised(answer) for answer in answers]
        empty += "" in forms
        short += any(0 < len(form) <= _SHORT for form in forms) or "" in forms
        echoed += any(form and form in normalised(question) for form in forms)
    stricter = (
        "The lab's `subspan` judge asks for whole words and turns punctuation into spaces; the questions it misses "
        "have an answer inside a longer word, or lose it to punctuation."
    )
    n = len(rows)
    return [
        line("R10", "questions", "", _QUESTIONS, n, bar=0, digits=0),
        line("R10", "gold passage satisfies the metric", "questions", _QUESTIONS, Measured(gold, n=n), bar=0, digits=0),
        line(
            "R10",
            "gold passage satisfies the lab's own judge",
            "questions",
            None,
            Measured(ours, n=n),
            note=stricter,
            digits=0,
        ),
        line(
            "R10",
            "an accepted answer normalises to nothing",
            "questions",
            1,
            Measured(empty, n=n),
            bar=0,
            note="Any prediction scores 1 there.",
            digits=0,
        ),
        line(
            "R10",
            "an accepted answer has at most two characters",
            "questions",
            64,
            Measured(short, n=n),
            bar=0,
            digits=0,
        ),
        line(
            "R10",
            "an accepted answer stands in the question",
            "questions",
            53,
            Measured(echoed, n=n),
            bar=0,
            note="Echoing the question scores there.",
            digits=0,
        ),
    ]


def _key_values(rows: list[dict[str, JSON]]) -> list[Line]:
    pairs = [cast("list[list[str]]", row["ordered_kv_records"]) for row in rows]
    held = sum([row["key"], row["value"]] in known for row, known in zip(rows, pairs, strict=True))
    distinct = sum(len({key for key, _ in known}) == len(known) for known in pairs)
    return [
        line("R10", "key-value examples", "", 500, len(rows), bar=0, digits=0),
        line("R10", "pairs an example", "", 75, float(np.mean([len(known) for known in pairs])), bar=0, digits=0),
        line("R10", "examples whose pair asked for is among them", "", 500, held, bar=0, digits=0),
        line("R10", "examples with distinct keys", "", None, distinct, digits=0),
    ]


def _printed() -> list[Line]:
    """Return what the printed rates of GPT-3.5-Turbo at 20 documents can carry."""
    lines = []
    for place, rate in _CURVE.items():
        right = round(rate / 100 * _QUESTIONS)
        wilson = estimators.wilson_interval(right, _QUESTIONS)
        interval = Interval(100 * wilson.estimate, 100 * wilson.low, 100 * wilson.high)
        lines.append(
            line(
                "R10",
                f"GPT-3.5-Turbo, gold at {place} of 20: printed rate",
                "%",
                rate,
                Measured(100 * right / _QUESTIONS, interval, _QUESTIONS, _QUESTIONS),
                bar=0.05,
                note="Printed, not recomputed; the interval follows from n.",
                digits=1,
            )
        )
    for name, first, second in (
        ("middle - closed book", _CURVE[9], _CLOSED_BOOK),
        ("first - middle", _CURVE[0], _CURVE[9]),
    ):
        one, two = first / 100, second / 100
        error = 100 * float(np.sqrt((one * (1 - one) + two * (1 - two)) / _QUESTIONS))
        gap = first - second
        interval = Interval(gap, gap - 1.96 * error, gap + 1.96 * error)
        lines.append(
            line(
                "R10",
                f"GPT-3.5-Turbo, {name}, unpaired",
                "points",
                None,
                Measured(gap, interval, _QUESTIONS),
                note="From printed rates; pairing by question would narrow it, but the answers are not public.",
                digits=1,
            )
        )
    return lines
