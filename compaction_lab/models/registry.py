"""Model kinds by the names configurations use, and the way from a configuration to a model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.models.base import Model

Role = Literal["agent", "summarizer", "reader"]
SEMANTICS = 1
"""Version of what the stubs answer, part of every key."""

KINDS = ("recorded", "stub_shop", "stub", "faulty")


def build_model(node: Mapping[str, JSON], *, role: Role = "agent", agent: Model | None = None) -> Model | None:
    """Return the model a configuration describes, or ``None`` for ``recorded``.

    Parameters
    ----------
    node
        A ``model``, ``summarizer`` or ``reader`` node: its kind and parameters.
    role
        Which part it plays; a ``stub`` differs by part.
    agent
        The live agent, which is also its own stub reader: asked again, with tools off.

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
    if kind == "faulty" and role == "summarizer":
        return _faulty(str(node.get("fault", "empty")))
    if kind == "stub" and role == "reader":
        return agent if agent is not None else _reader()
    msg = f"{role}: kind={kind!r}; expected one of {', '.join(KINDS)} ('stub' is a summarizer or a reader)"
    raise ConfigurationError(msg)


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
def _reader() -> Model:
    from compaction_lab.models.stub_reader import StubReader

    return StubReader()
