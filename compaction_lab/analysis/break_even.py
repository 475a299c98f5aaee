"""Whether compactions paid for themselves: each firing's cost at once against what the session's later calls saved."""

from __future__ import annotations

import math

import pandas as pd

from compaction_lab.accounting.break_even import break_even
from compaction_lab.analysis.prices import cell_prices
from compaction_lab.analysis.run_tables import RunTables, measured

UNIT_OF_CELL = ["cell", "transcript", "trial"]
KEYS = ["arm", "model", "dataset"]


def firings_paid(run: RunTables) -> pd.DataFrame:
    """Return every firing with what it cost at once and after how many further calls it was paid.

    A firing costs its summary and what the call can no longer read from the cache; it saves the tokens it removed at
    the price of reading them from the cache in every later call, everything else being equal: with what other firings
    did in between, the arm's bill differs. Where the cache is not simulated nothing is broken and saved tokens are
    worth the full price.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, transcript, trial, turn, call, saved_tokens, rewritten_tokens, summary_usd, once_usd,
        saved_per_call_usd, further_calls`` (missing: never) ``, calls_left`` (in the session) ``, paid``.
    """
    prices = cell_prices(run)
    calls = run.calls
    agent = calls[calls["purpose"] == "agent"]
    last = agent.groupby(UNIT_OF_CELL)["call"].max()
    cached = agent.groupby(UNIT_OF_CELL)["cache_read_tokens"].count() > 0
    summaries = calls[calls["purpose"] == "summarizer"].groupby([*UNIT_OF_CELL, "call"])["cost_usd"]
    summary_usd = summaries.agg(lambda costs: costs.sum(skipna=False))
    names = ["tokens_before", "tokens_after", "first_changed_token"]
    fired = measured(run.compactions, names)
    fired = fired[fired["edits"].fillna("[]") != "[]"]
    rows = []
    for firing in fired.to_dict("records"):
        unit = (firing["cell"], firing["transcript"], firing["trial"])
        price = prices.get(str(firing["cell"]))
        if price is None or unit not in last.index or any(math.isnan(firing[name]) for name in names):
            continue
        summary = float(summary_usd.get((*unit, firing["call"]), 0.0))
        saved = int(firing["tokens_before"] - firing["tokens_after"])
        rewritten = max(0, int(firing["tokens_after"] - firing["first_changed_token"]))
        rates = price.rates(int(firing["tokens_after"]))
        found = break_even(saved, rewritten, rates, summary_usd=summary, cached=bool(cached[unit]))
        left = int(last[unit]) - int(firing["call"])
        rows.append(
            {
                **{name: firing[name] for name in (*KEYS, "transcript", "trial", "turn", "call")},
                "saved_tokens": saved,
                "rewritten_tokens": rewritten,
                "summary_usd": summary,
                "once_usd": found.once_usd,
                "saved_per_call_usd": found.saved_per_call_usd,
                "further_calls": math.nan if found.further_calls is None else float(found.further_calls),
                "calls_left": left,
                "paid": found.further_calls is not None and found.further_calls <= left,
            }
        )
    columns = [*KEYS, "transcript", "trial", "turn", "call", "saved_tokens", "rewritten_tokens", "summary_usd"]
    return pd.DataFrame(
        rows, columns=[*columns, "once_usd", "saved_per_call_usd", "further_calls", "calls_left", "paid"]
    )


def break_even_table(run: RunTables) -> pd.DataFrame:
    """Return, by arm, how soon its firings were paid and how many never were within their session.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, firings, median_once_usd, median_saved_per_call_usd, median_further_calls`` (of those
        that are ever paid) ``, never_percent`` (save nothing) ``, paid_in_session_percent``.
    """
    firings = firings_paid(run)
    rows = []
    for keys, group in firings.groupby(KEYS, sort=True):
        ever = group["further_calls"].dropna()
        rows.append(
            {
                **dict(zip(KEYS, keys, strict=True)),
                "firings": len(group),
                "median_once_usd": float(group["once_usd"].median()),
                "median_saved_per_call_usd": float(group["saved_per_call_usd"].median()),
                "median_further_calls": float(ever.median()) if len(ever) else math.nan,
                "never_percent": 100.0 * float(group["further_calls"].isna().mean()),
                "paid_in_session_percent": 100.0 * float(group["paid"].mean()),
            }
        )
    columns = ["firings", "median_once_usd", "median_saved_per_call_usd", "median_further_calls"]
    return pd.DataFrame(rows, columns=[*KEYS, *columns, "never_percent", "paid_in_session_percent"])
