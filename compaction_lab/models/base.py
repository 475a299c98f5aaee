"""What is asked of a model and what it answers; every model, stub or real, is a callable of this shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from compaction_lab.conversation.messages import JSON, Message, ToolCall, ToolDefinition, Usage

Purpose = Literal["agent", "summarizer", "probe", "judge"]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call: the messages sent, the tools offered, and how long the answer may be (in tokens)."""

    messages: tuple[Message, ...]
    purpose: Purpose = "agent"
    tools: tuple[ToolDefinition, ...] = ()
    max_output_tokens: int | None = None
    seed: int = 0
    trial: int = 0
    response_format: JSON = None
    """OpenAI's ``response_format``: a JSON schema that a judge's answer must have, where the server supports it."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What came back: text and tool calls, why it stopped, and its usage when the provider reported one.

    ``latency_s`` is the measured wall time of a real call and ``None`` for a stub, whose latency is modelled.
    ``error`` is empty, or says why the reply must not be used.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    usage: Usage | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    error: str = ""
    first_token_s: float | None = None
    cached: bool = False
    """Whether the reply came out of the response cache; ``latency_s`` is then that of the original call."""


class Model(Protocol):
    """Anything that answers a request; ``simulated`` is true for stubs and labels all they produce."""

    @property
    def name(self) -> str:
        """What rows and manifests call it."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether its answers are made by a stub, not measured."""
        ...

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Answer one request."""
        ...
