"""The rubric rewards true facts in any wording and takes off for wrong values and inventions."""

from __future__ import annotations

import pytest

from compaction_lab.scenarios.base import RubricScore
from compaction_lab.scenarios.laptop_catalog import load_catalog
from compaction_lab.scenarios.laptop_catalog.rubric import invented, rubrics

LIST, DETAILS_OF_GAMING, LIGHTER, SMALL, BALANCEBOOK, NAMES, RECAP = 0, 7, 6, 8, 15, 16, 20


def score(turn: int, answer: str) -> RubricScore:
    return rubrics(load_catalog())[turn](answer)


@pytest.mark.parametrize(
    "answer",
    [
        "The Gaming Max 17 has a 14-core processor, 32 GB of RAM, a 17.3-inch 2560x1440 display and weighs 2.9 kg.",
        "**Gaming Max 17**\n- Procesor: 14-rdzeniowy\n- RAM: 32 GB\n- Ekran: 17,3 cala, 2560 x 1440\n- Waga: 2,9 kg",
        (
            "| Feature | Gaming Max 17 |\n|---|---|\n| CPU | 14-core |\n| RAM | 32 GB |\n"
            "| Display | 17.3-inch, 2560×1440 |\n| Weight | 2.9 kg |"
        ),
    ],
)
def test_the_same_facts_score_the_same_in_any_wording(answer: str) -> None:
    found = score(DETAILS_OF_GAMING, answer)
    assert (found.score, found.missing, found.wrong) == (1.0, (), ())


def test_what_is_missing_is_named_and_lowers_the_score_by_its_share() -> None:
    found = score(DETAILS_OF_GAMING, "The Gaming Max 17 has a 14-core processor and 32 GB of RAM.")
    assert found.score == pytest.approx(2 / 5)
    assert len(found.missing) == 3


def test_a_wrong_value_cancels_a_right_one() -> None:
    found = score(DETAILS_OF_GAMING, "The Gaming Max 17 has a 14-core processor, 32 GB of RAM and weighs 2.4 kg.")
    assert found.score == pytest.approx((2 - 1) / 5)
    assert found.wrong == ("Gaming Max 17: Weight 2.4, not 2.9",)


@pytest.mark.parametrize(
    ("claim", "figure"),
    [
        ("It costs 4999 zł.", "4999 zł"),
        ("The price is $1,299.99.", "$1,299.99"),
        ("Cena: 1 299 EUR", "1 299 EUR"),
        ("We have 7 units left.", "7 units"),
        ("It is in stock.", "in stock"),
        ("Jest na stanie.", "na stanie"),
    ],
)
def test_an_invented_price_or_stock_costs_a_quarter(claim: str, figure: str) -> None:
    true = "The Gaming Max 17 has a 14-core processor, 32 GB of RAM, a 17.3-inch 2560x1440 display and weighs 2.9 kg."
    found = score(DETAILS_OF_GAMING, f"{true} {claim}")
    assert found.invented == (figure,)
    assert found.score == pytest.approx(0.75)


def test_denying_a_price_or_stock_invents_nothing() -> None:
    assert not invented(
        "The catalog has no prices. It does not say whether it is in stock. Nie wiem, czy jest na stanie."
    )


def test_the_lighter_one_has_to_be_the_lighter_one() -> None:
    weights = " The UltraLite 13 weighs 1.0 kg and the Silent Lite 13 weighs 1.1 kg."
    assert score(LIGHTER, "The UltraLite 13 is lighter than the Silent Lite 13." + weights).score == 1.0
    wrong = score(LIGHTER, "Lżejszy jest Silent Lite 13." + weights)
    assert wrong.wrong == ("lighter: Silent Lite 13",)
    assert wrong.score < 0.5


def test_a_list_below_a_size_must_not_hold_a_larger_one() -> None:
    right = "- UltraLite 13: 13.3 inches\n- Silent Lite 13: 13.3 inches"
    assert score(SMALL, right).score == 1.0
    assert score(SMALL, f"{right}\n- Laptop Pro 14 does not match").score == 1.0
    assert score(SMALL, f"{right}\n- Laptop Pro 14").wrong == ("below 14 inches: Laptop Pro 14",)


def test_names_are_enough_where_names_are_asked() -> None:
    names = ", ".join(load_catalog().names)
    assert score(NAMES, names).score == 1.0
    assert score(NAMES, names.replace("DevBook 15, ", "")).missing == ("DevBook 15",)
    assert score(RECAP, names).missing == ("a recommendation",)
    assert score(RECAP, f"{names}. Ostatecznie polecam DevBook 15.").score == 1.0


def test_gold_comes_from_the_catalog() -> None:
    heavier = load_catalog().with_fact("BalanceBook 14", "weight_kg", "1.7")
    found = rubrics(heavier)[BALANCEBOOK]("The BalanceBook 14 weighs 1.5 kg.")
    assert found.wrong == ("BalanceBook 14: Weight 1.5, not 1.7",)


@pytest.mark.parametrize("turn", range(21))
def test_an_empty_answer_scores_nothing(turn: int) -> None:
    assert score(turn, "").score == 0.0
    assert score(turn, "I cannot help with that.").score == 0.0
