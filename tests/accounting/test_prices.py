from __future__ import annotations

import logging
import socket
from datetime import UTC, date, datetime

import genai_prices
import pytest
from genai_prices.data import providers
from genai_prices.types import ModelInfo, Provider, TieredPrices
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_lab.accounting.prices import context_window, price_model
from compaction_lab.conversation.messages import Usage
from compaction_lab.errors import ConfigurationError

USAGE = Usage(fresh_input_tokens=3_000, cache_read_tokens=6_000, cache_write_tokens=1_000, output_tokens=500)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("prices asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize(("model", "usd"), [("claude-sonnet-4-5", 0.02205), ("gpt-5-mini", 0.00215)])
def test_worked_prices(model: str, usd: float) -> None:
    price = price_model(model)
    assert price is not None
    assert price.cost(USAGE) == pytest.approx(usd)


def test_reasoning_costs_what_output_costs() -> None:
    price = price_model("gpt-5-mini")
    assert price is not None
    assert price.cost(Usage(output_tokens=200, reasoning_tokens=300)) == price.cost(Usage(output_tokens=500))


def test_a_long_input_reaches_the_next_tier_with_all_its_tokens() -> None:
    price = price_model("claude-sonnet-4-5")
    assert price is not None
    assert price.cost(Usage(fresh_input_tokens=200_000)) == pytest.approx(0.6)
    assert price.cost(Usage(fresh_input_tokens=1, cache_read_tokens=200_000)) == pytest.approx(0.120006)
    assert price.cost_uncached(Usage(fresh_input_tokens=1, cache_read_tokens=200_000)) == pytest.approx(1.200006)


def test_one_hour_writes_cost_more() -> None:
    price = price_model("claude-sonnet-4-5")
    assert price is not None
    usage = Usage(cache_write_tokens=1_000)
    assert price.cost(usage) == pytest.approx(0.00375)
    assert price.cost(usage, long_cache_write_tokens=400) == pytest.approx(0.6 * 0.00375 + 0.4 * 0.006)
    assert price.with_long_writes().cost(usage) == pytest.approx(0.006)


@pytest.mark.parametrize(
    ("name", "matched", "match"),
    [
        ("gpt-5.6-sol", "gpt-5.6-sol", "listed"),
        ("o3-pro-2025-06-10", "o3-pro", "listed"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", "dated"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5", "dated"),
        ("gpt-5-mini-2099-12-31", "gpt-5-mini", "dated"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5", "listed"),
    ],
)
def test_a_date_and_nothing_else_leads_to_the_family(name: str, matched: str, match: str) -> None:
    price = price_model(name)
    assert price is not None
    assert (price.matched, price.match) == (matched, match)


@pytest.mark.parametrize(
    "name", ["gpt-5-anything", "gpt-5-nano-anything", "gpt-5-mini-2025-99-99", "o3-pro-max", "my-model", ""]
)
def test_what_is_not_listed_has_no_price_and_warns_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    on = date(2026, 1, 1 + len(name))
    with caplog.at_level(logging.WARNING):
        assert price_model(name, on=on) is None
        assert price_model(name, on=on) is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert repr(name) in caplog.text


def test_prices_are_those_of_the_day() -> None:
    before, after = price_model("o3", on=date(2025, 6, 9)), price_model("o3", on=date(2025, 6, 10))
    assert before is not None
    assert after is not None
    assert (before.rates().fresh, after.rates().fresh) == (10.0, 2.0)


def test_an_override_wins_field_by_field() -> None:
    overrides = {"gpt-5-mini": {"cache_read": 0.02}, "mine": {"fresh": 1, "output": 2, "context_window": 32_768}}
    listed = price_model("gpt-5-mini", overrides=overrides)
    mine = price_model("mine", overrides=overrides)
    assert listed is not None
    assert mine is not None
    assert (listed.match, listed.rates().cache_read, listed.rates().fresh) == ("override", 0.02, 0.25)
    assert mine.cost(Usage(1_000_000, 1_000_000, 1_000_000, 1_000_000)) == pytest.approx(5.0)
    assert mine.context_window == context_window("mine", overrides=overrides) == 32_768
    assert context_window("gpt-5-mini") == 400_000
    assert context_window("unheard-of") is None


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"fresh": 1}, "output must be given"),
        ({"fresh": 1, "outputs": 2}, "did you mean output"),
        ({"fresh": -1, "output": 2}, "found -1"),
        ({"fresh": True, "output": 2}, "found True"),
        ({"fresh": 1, "output": float("nan")}, "found nan"),
        ({"fresh": 1, "output": 2, "context_window": 1.5}, "number of tokens"),
    ],
)
def test_a_broken_override_is_refused(own: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        price_model("mine", overrides={"mine": own})


PRICED = [
    (provider, model)
    for provider in providers
    if provider.id in {"openai", "anthropic", "google", "deepseek", "mistral", "x-ai", "moonshotai", "perplexity"}
    for model in provider.models
]
TEXT_KEYS = {
    "input_mtok",
    "cache_read_mtok",
    "cache_write_mtok",
    "cache_write_1h_mtok",
    "output_mtok",
    "requests_kcount",
}


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(PRICED),
    st.tuples(*[st.integers(0, 150_000)] * 5),
    st.dates(date(2025, 1, 1), date(2026, 10, 1)),
)
def test_every_listed_text_price_equals_the_library(
    listed: tuple[Provider, ModelInfo], tokens: tuple[int, int, int, int, int], on: date
) -> None:
    provider, model = listed
    price = price_model(f"{provider.id}/{model.id}", on=on)
    noon = datetime(on.year, on.month, on.day, 12, tzinfo=UTC)
    rates = model.get_prices(noon).__dict__
    if price is None or price.matched != model.id or "output_reasoning_mtok" in rates:
        return
    fresh, read, written, long_written, output = tokens
    usage = genai_prices.Usage(
        input_tokens=fresh + read + written + long_written,
        cache_read_tokens=read,
        cache_write_tokens=written + long_written,
        cache_write_1h_tokens=long_written,
        output_tokens=output,
    )
    expected = genai_prices.calc_price(usage, model.id, provider_id=provider.id, genai_request_timestamp=noon)
    ours = price.cost(Usage(fresh, read, written + long_written, output), long_cache_write_tokens=long_written)
    assert ours == pytest.approx(float(expected.total_price), rel=1e-9)


def test_the_list_has_tiers_to_test() -> None:
    assert any(
        isinstance(value, TieredPrices)
        for _, model in PRICED
        if not isinstance(model.prices, list)
        for key, value in model.prices.__dict__.items()
        if key in TEXT_KEYS
    )
