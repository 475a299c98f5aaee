from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.accounting.break_even import break_even
from compaction_lab.accounting.prices import Price, Rates

RATES = Rates(0, fresh=10.0, cache_read=1.0, cache_write=12.5, long_cache_write=20.0, output=50.0, reasoning=50.0)


def test_without_a_cache_break_every_saved_token_pays() -> None:
    assert break_even(1_000, 0, RATES).further_calls == 0
    assert break_even(1_000, 50_000, RATES, cached=False).further_calls == 0


def test_a_compaction_that_saves_nothing_never_pays() -> None:
    assert break_even(0, 1, RATES).further_calls is None
    assert break_even(-5, 0, RATES, summary_usd=0.01).further_calls is None


def test_a_small_cut_far_back_needs_many_calls() -> None:
    result = break_even(saved_tokens=1_000, rewritten_tokens=100_000, rates=RATES)
    assert result.once_usd == 1.15
    assert result.further_calls == 1149


@given(st.integers(1, 20_000), st.integers(0, 50_000), st.integers(0, 100))
def test_paid_means_that_the_bill_of_all_calls_is_no_longer_higher(saved: int, kept: int, cents: int) -> None:
    """Compare whole bills: the prompt read from the cache each time, against one rewrite and shorter reads."""
    rewritten = kept
    result = break_even(saved, rewritten, RATES, summary_usd=cents / 100)
    price = Price("m", "", "", "override", date(2026, 1, 1), (RATES,)).rates()

    def extra_usd(calls: int) -> float:
        untouched = calls * (saved + kept) * price.cache_read
        compacted = kept * price.cache_write + (calls - 1) * kept * price.cache_read
        return cents / 100 + (compacted - untouched) / 1e6

    assert result.further_calls is not None
    assert extra_usd(result.further_calls + 1) <= 1e-6
    if result.further_calls:
        assert extra_usd(result.further_calls) > -1e-6
