"""Model kinds by the names configurations use, and the way from a configuration to a model."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Literal

from compaction_lab.accounting.prices import Price
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.models.base import Model

Role = Literal["agent", "summarizer", "reader", "judge"]
SEMANTICS = 1
"""Version of what the stubs answer, part of every key."""

ONLY_CACHE = "COMPACTION_LAB_ONLY_CACHE"
_ENDPOINT_EXTRAS = (
    "kind",
    "name",
    "preset",
    "about",
    "cache",
    "requests_per_minute",
    "tokens_per_minute",
    "blocking",
    "priced_as",
    "top",
    "repeats",
    "pool",
)

KINDS = ("recorded", "stub_shop", "stub", "stub_skimming", "faulty", "openai_compatible")


def build_model(
    node: Mapping[str, JSON], *, role: Role = "agent", agent: Model | None = None, price: Price | None = None
) -> Model | None:
    """Return the model a configuration describes, or ``None`` for ``recorded``.

    Parameters
    ----------
    node
        A ``model``, ``summarizer`` or ``reader`` node: its kind and parameters.
    role
        Which part it plays; a ``stub`` differs by part.
    agent
        The live agent, which is also its own stub reader: asked again, with tools off.
    price
        Of a real model, which holds its calls to the run's budget.

    Raises
    ------
    ConfigurationError
        The kind is unknown, or does not play this part.
    """
    kind = str(node.get("kind"))
    if kind == "recorded":
        return None
    if kind == "stub_shop":
        from compaction_lab.models.stub_shop import ANSWER_TOKENS

        answer_tokens = node.get("answer_tokens", ANSWER_TOKENS)
        if not isinstance(answer_tokens, int) or isinstance(answer_tokens, bool) or answer_tokens < 1:
            msg = f"model.answer_tokens={answer_tokens!r}; expected a whole number of at least 1"
            raise ConfigurationError(msg)
        return _shop(answer_tokens)
    if kind == "stub" and role == "summarizer":
        return _summarizer()
    if kind == "openai_compatible" or (kind == "llm" and role == "judge"):
        return _endpoint(json.dumps(node, sort_keys=True), price)
    if kind == "faulty" and role == "summarizer":
        return _faulty(str(node.get("fault", "empty")))
    if kind == "stub_skimming" and role == "reader":
        dip = node.get("dip", 0.0)
        if isinstance(dip, bool) or not isinstance(dip, int | float):
            raise ConfigurationError(f"reader.dip={dip!r}; expected a share between 0 and 1")
        return _reader(float(dip))
    if kind == "stub" and role == "reader":
        return agent if agent is not None else _reader(0.0)
    msg = f"{role}: kind={kind!r}; expected one of {', '.join(KINDS)} ('stub' is a summarizer or a reader)"
    raise ConfigurationError(msg)


@cache
def _endpoint(text: str, price: Price | None) -> Model:
    """Build an endpoint once per process, behind its rate limiter, the run's budget and the response cache."""
    from compaction_lab.conversation.tokens import TokenCounter, tokenizer
    from compaction_lab.models.budget import Budget, BudgetedModel
    from compaction_lab.models.limiter import LimitedModel, Limits, RateLimiter, limiter_path
    from compaction_lab.models.openai_compatible import OpenAICompatible
    from compaction_lab.models.response_cache import CachedModel, ResponseCache, default_path

    node = json.loads(text)
    known = {field.name for field in dataclasses.fields(OpenAICompatible) if field.init}
    unknown = [key for key in node if key not in known and key not in _ENDPOINT_EXTRAS]
    if unknown or not node.get("model"):
        wrong = (
            f"no such parameter '{unknown[0]}'" if unknown else "no value for model, the endpoint's name of the model"
        )
        msg = f"openai_compatible: {wrong}; its parameters are {', '.join(sorted(known))}"
        raise ConfigurationError(msg)
    endpoint = OpenAICompatible(**{key: value for key, value in node.items() if key in known})
    model: Model = endpoint
    counter = TokenCounter(tokenizer("o200k_base"))
    limits = Limits(node.get("requests_per_minute"), node.get("tokens_per_minute"))
    if limits != Limits():
        limiter = RateLimiter(limiter_path(), endpoint.endpoint, limits)
        model = LimitedModel(endpoint, limiter, counter)
    budget = Budget.of_environment()
    if budget is not None:
        if price is None:
            raise ConfigurationError(f"--max-cost: no price is known for {endpoint.name}; give it priced_as=")
        model = BudgetedModel(endpoint, model, budget, price, counter)
    if only_cache() and not node.get("cache", True):
        raise ConfigurationError(f"{endpoint.name}: cache=false and --existing only-cache leave no one to answer")
    if not node.get("cache", True):
        return model
    return CachedModel(endpoint, model, ResponseCache(default_path()), only_cache=only_cache())


def forget_endpoints() -> None:
    """Build endpoints anew: what this process may ask and spend has changed."""
    _endpoint.cache_clear()


def only_cache() -> bool:
    """Return whether this process may make no model call at all (``run --existing only-cache``)."""
    return os.environ.get(ONLY_CACHE) == "1"


@cache
def _shop(answer_tokens: int) -> Model:
    from compaction_lab.models.stub_shop import ShopStub

    return ShopStub(answer_tokens=answer_tokens)


@cache
def _summarizer() -> Model:
    from compaction_lab.models.stub_summarizer import ExtractiveSummarizer

    return ExtractiveSummarizer()


@cache
def _faulty(fault: str) -> Model:
    from compaction_lab.models.faulty import FaultySummarizer

    return FaultySummarizer(fault)


@cache
def _reader(dip: float) -> Model:
    from compaction_lab.models.stub_reader import StubReader

    return StubReader(dip=dip) if dip else StubReader()
