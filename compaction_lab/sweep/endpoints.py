"""The real models of a configuration: the part each plays, what its calls cost, which settings change no result."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from functools import cache

from compaction_lab.accounting.prices import Price, price_model
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.models.registry import Role, check_model
from compaction_lab.quality.judges import JUDGES
from compaction_lab.records import Cell

Config = Mapping[str, JSON]

REAL = "openai_compatible"
ROLES = ("model", "summarizer", "reader", "judge")
"""Parts of a configuration that a model can play; a judge's model is its own endpoint."""

PLAYED_AS: Mapping[str, Role] = {"model": "agent", "summarizer": "summarizer", "reader": "reader", "judge": "judge"}
"""What a model does in a part of a configuration."""

WITHOUT_MODEL: Mapping[str, tuple[Collection[str], ...]] = {"reader": ({"calibrated"},), "judge": (JUDGES, {"None"})}
"""Kinds of readers and judges that ask no model, judges that are added later included."""

HOW_ASKED = frozenset(
    {
        "timeout_s",
        "retries",
        "stream",
        "requests_per_minute",
        "tokens_per_minute",
        "cache",
        "key_variable",
        "batch",
        "batch_poll_s",
    }
)
"""Settings of an endpoint that say how it is asked, not what it answers."""


def real_models(config: Config) -> Iterator[tuple[str, Config]]:
    """Yield role and node of every real model that a configuration asks; a replay does not ask its agent."""
    for role in ROLES:
        node = config.get(role)
        if isinstance(node, Mapping) and is_real(role, node) and (role != "model" or config.get("mode") == "live"):
            yield role, node


def batched_models(config: Config) -> Iterator[Config]:
    """Yield the nodes of the real models whose calls go to provider batches."""
    return (node for _, node in real_models(config) if node.get("batch"))


def check_models(config: Config) -> None:
    """Refuse models that cannot be built, or cannot do what is asked of them, before anything is run.

    Raises
    ------
    ConfigurationError
        Naming the part and what is wrong.
    """
    for key, role in PLAYED_AS.items():
        node = config.get(key)
        if isinstance(node, Mapping) and not any(
            str(node.get("kind")) in kinds for kinds in WITHOUT_MODEL.get(key, ())
        ):
            check_model(node, role)
    if any(batched_models(config)):
        _require_caches(config, "a run with batch=true goes through its units more than once and would pay each time")


def require_caches(cells: Iterable[Cell]) -> None:
    """Refuse a run that may make no call and has a model without a cache.

    Raises
    ------
    ConfigurationError
        Naming the model's part.
    """
    for cell in cells:
        _require_caches(cell.config, "with --existing only-cache nobody is left to answer")


def _require_caches(config: Config, why: str) -> None:
    for role, node in real_models(config):
        if not node.get("cache", True):
            raise ConfigurationError(f"{role}.cache=false: {why}; leave its cache on")


def is_real(role: str, node: Config) -> bool:
    """Whether the node of a role names an endpoint."""
    return node.get("kind") == (REAL if role != "judge" else "llm") and bool(node.get("model"))


def pricing_of(config: Config) -> Config:
    """Return the ``pricing`` node, empty when there is none."""
    pricing = config.get("pricing")
    return pricing if isinstance(pricing, Mapping) else {}


def priced_as(node: Config) -> str:
    """Return the name in the price list that a real model's calls are priced by: its own, unless it says otherwise."""
    return str(node.get("priced_as") or node.get("model"))


def endpoint_price(node: Config, config: Config) -> Price | None:
    """Return what a real model's calls cost, or ``None`` when no price is known."""
    return price_named(priced_as(node), config)


def price_named(name: str, config: Config) -> Price | None:
    """Return a model's price on the day, and with the overrides, of a configuration."""
    pricing = pricing_of(config)
    return _price(name, json.dumps([pricing.get("on"), pricing.get("overrides")], sort_keys=True))


@cache
def _price(name: str, terms: str) -> Price | None:
    on, overrides = json.loads(terms)
    try:
        day = None if on is None else date.fromisoformat(str(on))
    except ValueError as error:
        msg = f"pricing.on={on!r}: {error}; expected a day such as 2026-11-01, or null for today's prices"
        raise ConfigurationError(msg) from error
    return price_model(name, overrides=overrides or {}, on=day)


def require_prices(cells: Iterable[Cell]) -> None:
    """Refuse a budget for models without a known price.

    Raises
    ------
    ConfigurationError
        Naming the model and how to give its price.
    """
    for cell in cells:
        for role, node in real_models(cell.config):
            if endpoint_price(node, cell.config) is None:
                raise ConfigurationError(
                    f"--max-cost: no price is known for {role} {priced_as(node)}, so its calls cannot be held to a "
                    f"budget; name a model of the price list with {role}.priced_as=NAME, or give prices of your own "
                    "in pricing.overrides (conf/pricing/self_hosted.yaml shows how)"
                )
