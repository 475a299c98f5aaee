"""Model kinds by the names configurations use, and the way from a configuration to a model."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

from compaction_lab.accounting.prices import Price
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.models.base import Model

if TYPE_CHECKING:
    from compaction_lab.models.openai_compatible import OpenAICompatible

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
    "batch",
    "batch_poll_s",
    "blocking",
    "priced_as",
    "top",
    "repeats",
    "pool",
)

ROLES_OF: Mapping[Role, tuple[str, ...]] = {
    "agent": ("recorded", "stub_shop", "openai_compatible"),
    "summarizer": ("stub", "faulty", "openai_compatible"),
    "reader": ("stub", "stub_skimming", "openai_compatible"),
    "judge": ("llm",),
}
"""Kinds of models by the part they can play; readers and judges that are no models have modules of their own."""


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
    if is_endpoint(node, role):
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
    raise ConfigurationError(f"{role}: kind={kind!r}; expected one of {', '.join(ROLES_OF[role])}")


def check_model(node: Mapping[str, JSON], role: Role) -> None:
    """Refuse a configuration that no model can be built from, without building one.

    Raises
    ------
    ConfigurationError
        The kind does not play this part, or a parameter is unknown or has no sense.
    """
    kind = str(node.get("kind"))
    if kind not in ROLES_OF.get(role, ()):
        known = ", ".join(ROLES_OF[role])
        raise ConfigurationError(f"{role}: kind={kind!r}; expected one of {known}")
    if is_endpoint(node, role):
        endpoint_of(node)


def is_endpoint(node: Mapping[str, JSON], role: Role) -> bool:
    """Whether a configuration names an endpoint in this part."""
    return node.get("kind") == "openai_compatible" or (node.get("kind") == "llm" and role == "judge")


def endpoint_of(node: Mapping[str, JSON]) -> OpenAICompatible:
    """Return the endpoint that a configuration describes, to be asked directly.

    Raises
    ------
    ConfigurationError
        A parameter is unknown or has no sense, or no model is named.
    """
    from compaction_lab.models.openai_compatible import OpenAICompatible

    known = {field.name for field in dataclasses.fields(OpenAICompatible) if field.init and field.compare}
    unknown = [key for key in node if key not in known and key not in _ENDPOINT_EXTRAS]
    if unknown or not node.get("model"):
        wrong = (
            f"no such parameter '{unknown[0]}'" if unknown else "no value for model, the endpoint's name of the model"
        )
        msg = f"openai_compatible: {wrong}; its parameters are {', '.join(sorted(known))}"
        raise ConfigurationError(msg)
    parameters = cast("dict[str, Any]", {key: value for key, value in node.items() if key in known})
    return OpenAICompatible(**parameters)


@cache
def _endpoint(text: str, price: Price | None) -> Model:
    """Build an endpoint once per process, behind its rate limiter, the run's budget and the response cache."""
    from compaction_lab.models.budget import Budget, BudgetedModel
    from compaction_lab.models.response_cache import CachedModel, ResponseCache, default_path

    node = json.loads(text)
    endpoint = limited(node)
    budget = Budget.of_environment()
    if budget is not None and price is None:
        raise ConfigurationError(f"--max-cost: no price is known for {endpoint.name}; give it priced_as=")
    if node.get("batch") and not only_cache():
        return _batched(endpoint, text, None if budget is None else price)
    model: Model = endpoint
    if budget is not None and price is not None:
        model = BudgetedModel(endpoint, model, budget, price)
    if not node.get("cache", True):
        return model
    return CachedModel(endpoint, model, ResponseCache(default_path()), only_cache=only_cache())


def limited(node: Mapping[str, JSON]) -> OpenAICompatible:
    """Return the endpoint that a configuration describes, with the limiter that all who ask its provider share."""
    from compaction_lab.models.limiter import Limits, RateLimiter, limiter_path

    endpoint = endpoint_of(node)
    limits = Limits(
        cast("int | None", node.get("requests_per_minute")), cast("int | None", node.get("tokens_per_minute"))
    )
    return dataclasses.replace(endpoint, limiter=RateLimiter(limiter_path(), endpoint.endpoint, limits))


def _batched(endpoint: OpenAICompatible, node: str, price: Price | None) -> Model:
    from compaction_lab.models.batch_notes import BatchedModel, Notebook, NotingModel
    from compaction_lab.models.batch_queue import BatchQueue
    from compaction_lab.models.response_cache import ResponseCache, default_path

    cache, notebook = ResponseCache(default_path()), Notebook.of_environment()
    if notebook is not None:
        return NotingModel(endpoint, endpoint, cache, notebook, node, price)
    return BatchedModel(endpoint, endpoint, cache, BatchQueue(cache))


@contextmanager
def told(variables: Mapping[str, str]) -> Iterator[None]:
    """Tell models something through the environment, which workers inherit, and have endpoints built anew.

    Parameters
    ----------
    variables
        Of the environment: what models may ask and spend, or where to note what they would ask.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    _endpoint.cache_clear()
    try:
        yield
    finally:
        _endpoint.cache_clear()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


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
