"""What the calls of a run's cells are priced as, and how large the model's window is: read from their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import cast

from compaction_lab.accounting.cache_policy import cache_policy
from compaction_lab.accounting.prices import Price, price_model
from compaction_lab.analysis.run_tables import RunTables
from compaction_lab.conversation.messages import JSON


def cell_prices(run: RunTables) -> dict[str, Price | None]:
    """Return the price of each cell's calls by cell key; ``None`` where a cell names no model the price list knows."""
    return {key: _price(cell.config) for key, cell in run.cell_by_key.items()}


def cell_windows(run: RunTables) -> dict[str, int | None]:
    """Return each cell's context window in tokens: the configured one, else that of the model it is priced as."""
    prices = cell_prices(run)
    found: dict[str, int | None] = {}
    for key, cell in run.cell_by_key.items():
        window, price = cell.config.get("window"), prices[key]
        listed = None if price is None else price.context_window
        found[key] = window if isinstance(window, int) and not isinstance(window, bool) else listed
    return found


def _price(config: Mapping[str, JSON]) -> Price | None:
    pricing = config.get("pricing")
    if not isinstance(pricing, Mapping) or not pricing.get("model"):
        return None
    model, on = str(pricing["model"]), pricing.get("on")
    overrides = cast("Mapping[str, Mapping[str, JSON]]", pricing.get("overrides") or {})
    price = price_model(model, overrides=overrides, on=None if on is None else date.fromisoformat(str(on)))
    policy = config.get("cache_policy")
    if price is None or not isinstance(policy, Mapping):
        return price
    return price.with_long_writes() if cache_policy(policy, model).long_writes else price
