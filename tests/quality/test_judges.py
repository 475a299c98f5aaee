"""What the judges score, and what they leave unscored."""

from __future__ import annotations

import pytest

from compaction_lab.errors import ConfigurationError
from compaction_lab.quality.judges import exact, f1, facts, judge, normalised, numeric, subspan


def test_numbers_keep_their_parts_and_articles_go() -> None:
    assert normalised("The laptop weighs 1.3 kg!") == "laptop weighs 1 3 kg"


@pytest.mark.parametrize(
    ("answer", "gold", "scores"),
    [
        ("Zoë", ("Zoë",), (1.0, 1.0, 1.0)),
        ("It was Zoë.", ("zoë",), (0.0, 1.0, 0.5)),
        ("It weighs 1.35 kg", ("1.3",), (0.0, 0.0, 2 / 7)),
        ("src/parser.py", ("parser.py", "src parser py"), (1.0, 1.0, 1.0)),
        ("no idea", ("Zoë",), (0.0, 0.0, 0.0)),
        ("", ("Zoë",), (0.0, 0.0, 0.0)),
        ("anything", (), (None, None, None)),
        ("anything", ("the", "!"), (None, None, None)),
    ],
)
def test_scores(answer: str, gold: tuple[str, ...], scores: tuple[float | None, ...]) -> None:
    """Exact, subspan and F1; a gold answer that says nothing leaves the answer unscored, which is not zero."""
    found = (exact(answer, gold), subspan(answer, gold), f1(answer, gold))
    assert found == pytest.approx(scores) if None not in scores else found == scores


def test_a_judge_is_known_by_name() -> None:
    assert judge("f1") is f1
    with pytest.raises(ConfigurationError, match=r"judge\.kind=.bleu.; expected one of exact, subspan, f1"):
        judge("bleu")


def test_what_the_question_says_proves_nothing() -> None:
    question = "Is it the Pro or the Air?"
    assert subspan(question, ("the Pro",), question) is None
    assert subspan("The Air, of 2024.", ("Pro", "of 2024"), question) == 1.0
    assert facts("32 GB and 1 TB", ("32 GB", "1 TB", "OLED", "")) == pytest.approx(2 / 3)
    assert facts("anything", ("",)) is None


def test_numbers_are_compared_as_numbers() -> None:
    assert numeric("It holds 1,024 entries.", ("1024",)) == 1.0
    assert numeric("0.50", ("0.5 s",)) == 1.0
    assert numeric("10240", ("1024",)) == 0.0
    assert numeric("1024 or 2048", ("1024",)) == 0.0
    assert numeric("In 2024 it was 7.", ("7",), "What was it in 2024?") == 1.0
    assert numeric("7", ("seven",)) is None
