"""A session's bill by what it was paid for, and what it would be with and without the provider's prompt cache."""

from __future__ import annotations

import math

import pandas as pd

from compaction_lab.analysis.prices import cell_prices
from compaction_lab.analysis.run_tables import UNIT, RunTables, known_mean, known_sum, measured

KEYS = ["arm", "model", "dataset"]
BUCKETS = ("fresh_input_usd", "cache_read_usd", "cache_write_usd", "output_usd", "summaries_usd")
"""Parts of a bill; reasoning is output, and a summary's input and output are one part."""

_TOKENS = [
    "input_tokens",
    "fresh_input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
]


def cost_buckets(run: RunTables) -> pd.DataFrame:
    """Return the mean bill of a session by bucket; missing when a call's price is unknown.

    Without a simulated cache all input is fresh.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, units``, the five of :data:`BUCKETS`, and their sum ``total_usd``.
    """
    prices = cell_prices(run)
    calls = run.calls
    calls = measured(calls[calls["purpose"].isin(["agent", "summarizer"])], _TOKENS)
    split = calls["fresh_input_tokens"].notna()
    fresh = calls["fresh_input_tokens"].where(split, calls["input_tokens"])
    read, written = (calls[name].where(split, 0.0) for name in ("cache_read_tokens", "cache_write_tokens"))
    sizes = calls["input_tokens"].fillna(0).astype(int)
    paying = [prices.get(str(cell)) for cell in calls["cell"]]
    rates = [None if price is None else price.rates(size) for price, size in zip(paying, sizes, strict=True)]

    def per_token(name: str) -> pd.Series:
        values = [math.nan if found is None else getattr(found, name) / 1_000_000 for found in rates]
        return pd.Series(values, index=calls.index, dtype="float64")

    request = pd.Series([math.nan if price is None else price.request_usd for price in paying], index=calls.index)
    parts = pd.DataFrame(
        {
            "fresh_input_usd": fresh * per_token("fresh") + request,
            "cache_read_usd": read * per_token("cache_read"),
            "cache_write_usd": written * per_token("cache_write"),
            "output_usd": calls["output_tokens"].fillna(0.0) * per_token("output")
            + calls["reasoning_tokens"].fillna(0.0) * per_token("reasoning"),
            "summaries_usd": 0.0,
        }
    )
    asked = calls["purpose"] == "summarizer"
    own = list(BUCKETS[:4])
    parts.loc[asked, "summaries_usd"] = parts.loc[asked, own].sum(axis=1, skipna=False)
    parts.loc[asked, own] = 0.0
    named = pd.concat([calls[["arm", *UNIT]], parts], axis=1)
    units = named.groupby(["arm", *UNIT], as_index=False)[list(BUCKETS)].agg(known_sum)
    grouped = units.groupby(KEYS, as_index=False, sort=True)
    table = grouped[list(BUCKETS)].agg(known_mean)
    table.insert(3, "units", grouped.size()["size"])
    return table.assign(total_usd=table[list(BUCKETS)].sum(axis=1, skipna=False))


def cost_with_and_without_cache(run: RunTables) -> pd.DataFrame:
    """Return the mean bill of a session as if nothing were cached, with the simulated cache, and as billed.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, units, uncached_usd, cached_usd, billed_usd, cache_breaks`` (calls a session whose prompt
        departs from the previous one's) ``, read_percent`` (of input tokens, from the cache).
    """
    calls = run.calls
    paid = calls[calls["purpose"].isin(["agent", "summarizer"])]
    names = {"uncached_usd": "cost_uncached_usd", "cached_usd": "cost_cached_usd", "billed_usd": "cost_billed_usd"}
    sums = paid.groupby(["arm", *UNIT], as_index=False).agg(**{k: (v, known_sum) for k, v in names.items()})
    agent = measured(calls[calls["purpose"] == "agent"], ["cache_read_tokens", "input_tokens"])
    agent = agent.assign(broken=agent["first_changed_token"].notna().astype(float))
    met = agent.groupby(["arm", *UNIT], as_index=False).agg(
        cache_breaks=("broken", "sum"), read=("cache_read_tokens", known_sum), sent=("input_tokens", known_sum)
    )
    units = sums.merge(met, on=["arm", *UNIT], how="left")
    grouped = units.groupby(KEYS, as_index=False, sort=True)
    table = grouped.agg(
        units=("sent", "size"),
        **{name: (name, known_mean) for name in names},
        cache_breaks=("cache_breaks", "mean"),
        read=("read", known_sum),
        sent=("sent", known_sum),
    )
    table["read_percent"] = 100.0 * table.pop("read") / table.pop("sent")
    return table
