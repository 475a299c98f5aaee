"""The catalog's texts state its facts, each where its evidence says, and nothing about prices or stock."""

from __future__ import annotations

import json

import pytest

from compaction_lab.conversation.tokens import tokenizer
from compaction_lab.errors import ConfigurationError
from compaction_lab.scenarios.laptop_catalog import load_catalog, scenario
from compaction_lab.scenarios.laptop_catalog.catalog import PROBED, Product
from compaction_lab.scenarios.laptop_catalog.reading import LIMITS, SUITS, SUMMARY, read
from compaction_lab.scenarios.laptop_catalog.rubric import invented
from compaction_lab.scenarios.laptop_catalog.tools import tools

PRODUCTS = load_catalog().products
by_name = pytest.mark.parametrize("product", PRODUCTS, ids=lambda p: p.name)


@by_name
def test_every_fact_stands_in_the_description(product: Product) -> None:
    for attribute, shown in product.facts.items():
        assert shown in product.long_description, attribute


@by_name
def test_a_product_is_three_strings_of_indented_json_of_the_published_size(product: Product) -> None:
    shown = json.loads(product.as_json())
    assert list(shown) == ["name", "shortSummary", "longDescription"]
    assert all(isinstance(value, str) for value in shown.values())
    assert 1167 <= len(product.as_json().encode()) <= 1577
    assert "\n\nSpecifications:\n- " in shown["longDescription"]


@by_name
def test_reading_a_product_gives_its_facts_and_topics_and_no_others(product: Product) -> None:
    facts = read(product.as_json())
    values = {(f.attribute, f.value) for f in facts if f.attribute not in {SUITS, LIMITS, SUMMARY}}
    assert values == {(attribute, product.value(attribute)) for attribute in product.facts}
    assert {f.value for f in facts if f.attribute == SUITS} == set(product.suits)
    assert {f.value for f in facts if f.attribute == LIMITS} == set(product.limits)
    assert {f.product for f in facts} == {product.name}


@by_name
def test_evidence_stands_in_its_product_alone(product: Product) -> None:
    for attribute in PROBED:
        if attribute in product.facts:
            holders = [p.name for p in PRODUCTS if product.evidence(attribute) in p.as_json()]
            assert holders == [product.name], attribute


def test_the_whole_catalog_has_about_the_published_size_and_no_price_or_stock() -> None:
    count = tokenizer("o200k_base").count
    texts = [p.as_json() for p in PRODUCTS]
    assert abs(sum(map(count, texts)) - 2418) < 50
    assert abs(len(load_catalog().as_json()) - 1010) < 30
    assert not any(invented(text) for text in texts)


def test_details_ignore_case_and_spacing_and_a_miss_is_an_answer() -> None:
    details = next(t for t in tools(load_catalog()) if t.definition.name == "get_product_details")
    assert details.run({"name": "  laptop   PRO 14\n"}) == load_catalog().product("Laptop Pro 14").as_json()
    for odd in ({"name": "Laptop Pro 15"}, {"name": ""}, {"name": None}, {"name": ["x"]}, {}):
        assert "not found" in details.run(odd)


def test_a_changed_fact_changes_text_gold_and_evidence_together() -> None:
    changed = load_catalog().with_fact("devbook 15", "weight_kg", "1.9").product("DevBook 15")
    assert changed.value("weight_kg") == "1.9"
    assert changed.evidence("weight_kg") == "Weight: 1.9 kg"
    assert "1.9 kg" in changed.long_description
    assert "2.1 kg" not in changed.long_description


def test_what_is_unknown_is_refused_with_what_there_is() -> None:
    with pytest.raises(ConfigurationError, match="DevBook 15"):
        load_catalog().product("DevBook 16")
    with pytest.raises(ConfigurationError, match="en, pl"):
        scenario("de")


@pytest.mark.parametrize("language", ["en", "pl"])
def test_there_are_21_turns_and_50_probes_at_two_moments(language: str) -> None:
    shop = scenario(language)
    assert shop.id == f"laptop_catalog-{language}"
    assert len(shop.turns) == 21
    assert {turn: len({p.id for p in asked}) for turn, asked in shop.probes.items()} == {11: 50, 21: 50}
    assert all(p.gold and p.evidence for asked in shop.probes.values() for p in asked)
