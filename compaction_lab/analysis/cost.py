"""Money turn by turn: the agent's calls and its summaries; what probes and judges cost is the lab's expense."""

from __future__ import annotations

import pandas as pd

from compaction_lab.analysis.run_tables import CONVERSATION, UNIT, known_sum


def cost_per_unit(calls: pd.DataFrame) -> pd.DataFrame:
    """Return the cost of each unit's agent and summariser calls in USD; missing if any call's cost is unknown.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, seed, transcript, trial, cost_usd``.
    """
    paid = calls[calls["purpose"].isin(["agent", "summarizer"])]
    return paid.groupby(["arm", *UNIT], sort=True, as_index=False).agg(cost_usd=("cost_usd", known_sum))


def cumulative_cost(calls: pd.DataFrame, along: str = "turn") -> pd.DataFrame:
    """Return the cost so far at the end of each turn, summaries included, mean over seeds and trials.

    Parameters
    ----------
    calls
        The *calls* table.
    along
        ``turn``, or ``call`` for a replay of a session with a single user turn.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, transcript, turn, cost_usd, cumulative_cost_usd, cost_kind``; a cost is missing from the
        first call on whose price is unknown.
    """
    paid = calls[calls["purpose"].isin(["agent", "summarizer"])]
    by_turn = paid.groupby(["arm", *UNIT, along], sort=True, as_index=False).agg(
        cost_usd=("cost_usd", known_sum), cost_kind=("cost_kind", "first")
    )
    by_turn["cumulative_cost_usd"] = by_turn.groupby(["arm", *UNIT], sort=False)["cost_usd"].cumsum(skipna=False)
    grouped = by_turn.groupby(["arm", *CONVERSATION, along], sort=True, as_index=False)
    return grouped.agg(
        cost_usd=("cost_usd", lambda costs: costs.mean(skipna=False)),
        cumulative_cost_usd=("cumulative_cost_usd", lambda costs: costs.mean(skipna=False)),
        cost_kind=("cost_kind", "first"),
    )
