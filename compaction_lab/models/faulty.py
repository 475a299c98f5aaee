"""Summarisers that fail in the ways real ones do, so that strategies and guards can be tested against them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compaction_lab.conversation.messages import ToolCall
from compaction_lab.errors import ConfigurationError
from compaction_lab.models.base import ModelReply, ModelRequest

CONSTANT = "Summary: nothing of note."
CALLED = (ToolCall("faulty-1", "continue_work", "{}"),)
SLOW_S = 120.0
_ORDER = re.compile(r"\b(?:ignore|disregard|forget|override|you must|from now on)\b[^\n.!?]*", re.IGNORECASE)


def _transcript(request: ModelRequest) -> str:
    return "\n".join(message.text for message in request.messages)


def _empty(request: ModelRequest) -> ModelReply:  # noqa: ARG001 - one shape for all
    return ModelReply("")


def _constant(request: ModelRequest) -> ModelReply:  # noqa: ARG001
    return ModelReply(CONSTANT)


def _inflating(request: ModelRequest) -> ModelReply:
    text = _transcript(request)
    return ModelReply(f"{text}\n{text}")


def _raising(request: ModelRequest) -> ModelReply:  # noqa: ARG001
    return ModelReply(finish="error", error="503 service unavailable")


def _slow(request: ModelRequest) -> ModelReply:
    return ModelReply(_transcript(request)[:200], latency_s=SLOW_S)


def _calling(request: ModelRequest) -> ModelReply:  # noqa: ARG001
    return ModelReply("", CALLED, "tool_calls")


def _truncated(request: ModelRequest) -> ModelReply:
    return ModelReply(_transcript(request)[:80], finish="length")


def _obeying(request: ModelRequest) -> ModelReply:
    found = [
        match[0] for message in request.messages[1:] or request.messages for match in _ORDER.finditer(message.text)
    ]
    return ModelReply("; ".join(found) or CONSTANT)


FAULTS: Mapping[str, Callable[[ModelRequest], ModelReply]] = {
    "empty": _empty,
    "constant": _constant,
    "inflating": _inflating,
    "raising": _raising,
    "slow": _slow,
    "calling": _calling,
    "truncated": _truncated,
    "obeying": _obeying,
}


@dataclass(frozen=True, slots=True)
class FaultySummarizer:
    """A summariser with one fault.

    Parameters
    ----------
    fault
        ``empty`` text; a ``constant`` that says nothing; ``inflating``: twice what it was sent; ``raising``: the
        provider's error; ``slow``: two minutes for a short text; ``calling`` a tool instead of answering;
        ``truncated`` at its length limit; ``obeying``: repeats instructions found in the text it should summarise.

    Examples
    --------
    >>> from compaction_lab.conversation.messages import user
    >>> FaultySummarizer("truncated")(ModelRequest((user("a long story"),))).finish
    'length'
    """

    fault: str = "empty"
    simulated: bool = True

    def __post_init__(self) -> None:
        """Check the name."""
        if self.fault not in FAULTS:
            raise ConfigurationError(f"summarizer.fault={self.fault!r}; expected one of {', '.join(FAULTS)}")

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"faulty_{self.fault}"

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Answer as the fault has it."""
        return FAULTS[self.fault](request)
