"""The shop stub is honest: every value it says stands in a message it was sent, and what it lost it says it lost."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from compaction_lab.conversation.messages import Message, Text, ToolCall, assistant, system, tool, user
from compaction_lab.conversation.tokens import tokenizer
from compaction_lab.models import stub_shop
from compaction_lab.models.base import ModelRequest
from compaction_lab.models.shop_knowledge import Attention
from compaction_lab.models.shop_phrases import PHRASES
from compaction_lab.models.shop_questions import language_of
from compaction_lab.models.stub_shop import ANSWER_TOKENS, ShopStub
from compaction_lab.quality.judges import subspan
from compaction_lab.scenarios.laptop_catalog import LANGUAGES, Catalog, load_catalog, scenario
from compaction_lab.scenarios.laptop_catalog.reading import product_names, read
from tests.scenarios.live import Answered, hold

count = tokenizer("o200k_base").count
in_both = pytest.mark.parametrize("language", LANGUAGES)


@cache
def uncompacted(language: str, answer_tokens: int = ANSWER_TOKENS) -> tuple[tuple[Message, ...], dict[int, Answered]]:
    messages, answers = hold(scenario(language), ShopStub(answer_tokens=answer_tokens))
    return tuple(messages), answers


def masked(messages: list[Message]) -> list[Message]:
    return [replace(m, parts=(Text("[tool result removed]"),)) if m.role == "tool" else m for m in messages]


def mean_score(answers: dict[int, Answered]) -> float:
    scores = [a.score.score for a in answers.values() if a.score]
    return sum(scores) / len(scores)


def probed(language: str, messages: tuple[Message, ...]) -> float:
    """Return the share of the last probes answered rightly with tools off."""
    probes = scenario(language).probes[21]
    stub = ShopStub()
    answers = [stub(ModelRequest((*messages, user(p.question)), purpose="probe")).text for p in probes]
    return sum(subspan(a, p.gold) or 0.0 for a, p in zip(answers, probes, strict=True)) / len(probes)


@in_both
def test_uncompacted_it_answers_every_turn_fully_in_the_users_language(language: str) -> None:
    _, answers = uncompacted(language)
    assert mean_score(answers) == 1.0, {i: a.score for i, a in answers.items() if a.score and a.score.score < 1}
    for turn, answer in answers.items():
        if turn != 16:  # names only: no language
            assert language_of(re.sub("Laptop Pro", "", answer.text)) == language, turn


@in_both
def test_a_changed_catalog_value_changes_the_answer(language: str) -> None:
    catalog = load_catalog()
    for name, attribute, shown in (
        ("Laptop Pro 14", "weight_kg", "1.7"),
        ("DevBook 15", "battery_h", "9"),
        ("Gaming Max 17", "cpu", "AMD Ryzen 9"),
        ("Silent Lite 13", "resolution", "2880x1800"),
        ("Creator Studio 16", "storage_gb", "4 TB"),
        ("Campus Note 14", "ram_gb", "12"),
        ("BalanceBook 14", "display_in", "14.5"),
    ):
        catalog = catalog.with_fact(name, attribute, shown)
    _, answers = hold(scenario(language, catalog), ShopStub())
    assert mean_score(answers) == 1.0, {i: a.score for i, a in answers.items() if a.score and a.score.score < 1}
    against_the_old = scenario(language).turns[4].judge
    assert against_the_old is not None
    assert against_the_old(answers[4].text).wrong


@in_both
def test_a_product_of_another_name_is_sold_just_as_well(language: str) -> None:
    products = load_catalog().products
    renamed = tuple(replace(p, name="Quiet Feather 12") if p.name == "Silent Lite 13" else p for p in products)
    shop = replace(scenario(language), tools=scenario(language, Catalog(renamed)).tools)
    _, answers = hold(shop, ShopStub(), order=(0, 16))
    assert "Quiet Feather 12" in answers[0].text
    assert "Silent Lite 13" not in answers[16].text


@in_both
def test_blanked_results_with_tools_off_leave_it_not_knowing(language: str) -> None:
    talk = [m for m in uncompacted(language)[0] if m.role != "assistant"]
    for probe in scenario(language).probes[21]:
        reply = ShopStub()(ModelRequest((*masked(talk), user(probe.question)), purpose="probe"))
        assert subspan(reply.text, probe.gold) == 0.0, probe.id
        assert reply.text.startswith("I do not know" if language == "en" else "Nie wiem")
        assert not reply.calls


@in_both
def test_with_everything_visible_it_answers_every_probe_and_with_nothing_none(language: str) -> None:
    assert probed(language, uncompacted(language)[0]) == 1.0
    assert probed(language, ()) == 0.0


def test_it_calls_tools_for_what_it_does_not_see_and_only_then() -> None:
    shop = scenario("en")
    offered = tuple(t.definition for t in shop.tools)
    question = user("Please compare the Laptop Pro 14 with the DevBook 15.")
    stub = ShopStub()
    first = stub(ModelRequest((question,), tools=offered))
    assert [(c.name, c.arguments) for c in first.calls] == [
        ("get_product_details", '{"name": "Laptop Pro 14"}'),
        ("get_product_details", '{"name": "DevBook 15"}'),
    ]
    assert len({c.id for c in first.calls}) == 2
    results = [
        tool(c.id, load_catalog().product(n).as_json())
        for c, n in zip(first.calls, ("Laptop Pro 14", "DevBook 15"), strict=True)
    ]
    answered = stub(ModelRequest((question, assistant("", *first.calls), *results), tools=offered))
    assert answered.text
    assert not answered.calls


def test_a_result_that_was_removed_is_fetched_again() -> None:
    _, kept = uncompacted("en")
    _, lost = hold(scenario("en"), ShopStub(), after_turn=masked)
    assert sum(a.tool_calls for a in lost.values()) > sum(a.tool_calls for a in kept.values())


@in_both
def test_half_a_summary_is_answered_from_by_half(language: str) -> None:
    """Four visible facts are enough by its rule, so a lossy summary lowers the score though tools are offered."""
    shop = scenario(language)
    summary = user(
        "Summary: BalanceBook 14 has 16 GB RAM, a 512 GB SSD and a 14-inch screen. The BalanceBook 14 weighs 1.5 kg."
    )
    request = ModelRequest(
        (*shop.opening, summary, user(shop.turns[15].user)), tools=tuple(t.definition for t in shop.tools)
    )
    reply = ShopStub()(request)
    judge = shop.turns[15].judge
    assert judge is not None
    assert not reply.calls
    assert judge(reply.text).score == pytest.approx(4 / 7)


def test_a_wrong_summary_is_believed() -> None:
    summary = user("Summary: the DevBook 15 weighs 1.4 kg.")
    reply = ShopStub()(ModelRequest((summary, user("How much does the DevBook 15 weigh?")), purpose="probe"))
    assert "1.4 kg" in reply.text


def test_an_unknown_product_is_looked_up_once_and_not_invented() -> None:
    shop = scenario("en")
    question = user("Show me the full product details of the Phantom Book 19.")
    messages, _ = hold(replace(shop, turns=(replace(shop.turns[0], user=question.text, judge=None),)), ShopStub())
    assert sum(len(m.calls) for m in messages) == 1
    assert "I do not know anything about the Phantom Book 19" in messages[-1].text


@in_both
@pytest.mark.parametrize("seed", range(3))
def test_shuffled_turns_are_still_answered(language: str, seed: int) -> None:
    order = list(range(21))
    random.Random(seed).shuffle(order)  # noqa: S311 - an order, not a secret
    _, answers = hold(scenario(language), ShopStub(), order=order)
    recap = answers.pop(20)
    assert mean_score(answers) > 0.97, {i: a.score for i, a in answers.items() if a.score and a.score.score < 1}
    assert recap.text


def test_equal_requests_get_equal_replies() -> None:
    first, _ = hold(scenario("pl"), ShopStub())
    again, _ = hold(scenario("pl"), ShopStub())
    assert [(m.text, m.calls) for m in first] == [(m.text, m.calls) for m in again]


@in_both
def test_call_ids_are_never_reused_in_a_conversation(language: str) -> None:
    messages, _ = hold(scenario(language), ShopStub(), after_turn=masked)
    ids = [c.id for m in messages for c in m.calls]
    assert len(ids) == len(set(ids))


@in_both
@pytest.mark.parametrize("wanted", [215, 300, 600])
def test_answers_are_about_as_long_as_asked(language: str, wanted: int) -> None:
    lengths = [count(a.text) for a in uncompacted(language, wanted)[1].values()]
    assert sum(lengths) / len(lengths) == pytest.approx(wanted, rel=0.15)


@in_both
def test_talk_to_fill_an_answer_states_no_fact_and_names_nothing(language: str) -> None:
    phrases = PHRASES[language]
    for line in (*phrases.talk, phrases.closing, phrases.money):
        assert not product_names(line)
        assert not re.search(r"\d", line)
        assert not [f for f in read(f"The DevBook 15.\n{line}") if f.attribute != "recommended"], line


def test_it_never_says_a_number_it_has_not_seen() -> None:
    messages, _ = uncompacted("en", 600)
    visible = ""
    for message in messages:
        if message.role == "assistant":
            for number in re.findall(r"\d+(?:\.\d+)?", message.text):
                assert number in visible, (number, message.text)
        visible += message.text + "".join(c.arguments for c in message.calls)


def test_gold_is_out_of_its_reach() -> None:
    folder = Path(stub_shop.__file__).parent
    for module in (folder / "stub_shop.py", *folder.glob("shop_*.py")):
        imported = re.findall(r"laptop_catalog\.(\w+)|laptop_catalog import (\w+)", module.read_text(encoding="utf-8"))
        assert {name for names in imported for name in names if name} <= {"reading", "vocabulary"}, module.name


def test_an_output_limit_is_kept() -> None:
    for limit in (8, 20, 60, 200):
        for purpose in ("agent", "probe"):
            messages = (*uncompacted("en")[0], user("Show me the full product details of the BalanceBook 14."))
            reply = ShopStub()(ModelRequest(messages, purpose=purpose, max_output_tokens=limit))
            assert 0 < count(reply.text) <= limit


def test_reading_by_position_misses_most_in_the_middle_and_is_seeded() -> None:
    filler = [assistant("Nothing of note here. " * 40) for _ in range(10)]
    fact = assistant("The DevBook 15 weighs 2.1 kg.")
    stub = ShopStub(attention=Attention(depth=0.9))

    def found(place: int) -> int:
        messages = (*filler[:place], fact, *filler[place:], user("How much does the DevBook 15 weigh?"))
        texts = [stub(ModelRequest(messages, purpose="probe", seed=seed)).text for seed in range(100)]
        assert texts == [stub(ModelRequest(messages, purpose="probe", seed=seed)).text for seed in range(100)]
        return sum("2.1 kg" in text for text in texts)

    assert found(0) > 90
    assert found(10) > 90
    assert found(5) < 30


def test_odd_requests_are_answered_not_raised() -> None:
    stub = ShopStub()
    odd = [
        (),
        (system("x"),),
        (user(""),),
        (user("\ud800 <|endoftext|> 😀 ile"),),
        (user("[1, {"),),
        (
            assistant("", ToolCall("c", "get_products", "not json")),
            tool("c", "{broken"),
            user("Which laptop for games?"),
        ),
    ]
    for messages in odd:
        assert isinstance(stub(ModelRequest(messages)).text, str)
