"""When a compaction has paid for itself: its summary and its cache break against what later calls save."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compaction_lab.accounting.prices import Rates


@dataclass(frozen=True, slots=True)
class BreakEven:
    """What a compaction costs once, what each call saves, and after how many further calls it is paid.

    ``further_calls`` counts calls after the one it fired for, which saves too: 0 = paid at once, ``None`` = never.
    """

    once_usd: float
    saved_per_call_usd: float
    further_calls: int | None


def break_even(
    saved_tokens: int, rewritten_tokens: int, rates: Rates, *, summary_usd: float = 0.0, cached: bool = True
) -> BreakEven:
    """Return when a compaction has paid for itself, everything else being equal.

    Parameters
    ----------
    saved_tokens
        Input tokens each call no longer sends (negative when the compaction made the prompt longer).
    rewritten_tokens
        Tokens after the first change, which the call reads no longer from the cache: they are written anew.
    rates
        Prices at this size of input.
    summary_usd
        Cost of the summariser's call.
    cached
        Whether calls read their history from a prompt cache. Without one nothing is broken, and saved tokens are
        worth the full price.

    Examples
    --------
    A summary of 2 cents that frees 40,000 tokens and rewrites 5,000:

    >>> from compaction_lab.accounting.prices import price_model
    >>> result = break_even(40_000, 5_000, price_model("claude-sonnet-4-5").rates(), summary_usd=0.02)
    >>> round(result.once_usd, 5), round(result.saved_per_call_usd, 5), result.further_calls
    (0.03725, 0.012, 3)
    """
    kept = rates.cache_read if cached else rates.fresh
    once = summary_usd + (rewritten_tokens * (rates.cache_write - kept) / 1_000_000 if cached else 0.0)
    saved = saved_tokens * kept / 1_000_000
    if once <= saved:
        return BreakEven(once, saved, 0)
    if saved <= 0:
        return BreakEven(once, saved, None)
    return BreakEven(once, saved, math.ceil(once / saved - 1e-9) - 1)
