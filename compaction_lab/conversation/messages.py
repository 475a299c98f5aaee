"""Messages and what they are made of; no counting, no grouping, no file formats live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"
Role = Literal["system", "developer", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "developer", "user", "assistant", "tool")

Source = Literal["recorded", "generated", "injected", "placeholder", "summary"]
"""Who wrote a message: the recording, a live model or scenario, a framework, or a compaction strategy."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's reasoning: readable text, or an opaque (signed or encrypted) item that must travel with its message."""

    text: str = ""
    opaque: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Media:
    """An image, sound or file by its kind, type and size; the payload itself is kept only when asked for."""

    kind: Literal["image", "audio", "file"]
    mime: str = ""
    byte_size: int = 0
    width: int = 0
    height: int = 0
    payload: str = ""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A provider item the lab carries along but does not read, as canonical JSON."""

    provider: str
    data: str


Part: TypeAlias = Text | Reasoning | Media | Opaque


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run a tool; ``arguments`` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Disjoint token buckets of one model call: all that was sent is ``input_tokens``, the sum of three.

    ``output_tokens`` excludes ``reasoning_tokens``. ``raw`` keeps the provider's own payload.
    """

    fresh_input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    raw: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def input_tokens(self) -> int:
        """Tokens sent: fresh, read from and written to the provider's prompt cache."""
        return self.fresh_input_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Parameters
    ----------
    role
        ``system``, ``developer``, ``user``, ``assistant`` or ``tool``.
    parts
        Content in order: text, reasoning, media, opaque provider items.
    calls
        Tool calls an assistant message makes, in order.
    call_id, is_error
        Of a ``tool`` message: the call it answers, and whether the tool failed.
    name
        Participant or tool name, when recorded.
    id, response_id
        Wire ids, empty unless recorded; messages that share a ``response_id`` came from one model call.
    source, pinned, tags
        Who wrote it; whether no strategy may touch it; labels that some frameworks act on.
    usage, model, timestamp_s, latency_s, cost_usd
        What the recording says about the call that produced an assistant message (seconds since the epoch).
    extra
        Wire keys the lab does not know, kept as they were.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    is_error: bool = False
    name: str = ""
    id: str = ""
    response_id: str = ""
    source: Source = "recorded"
    pinned: bool = False
    tags: tuple[str, ...] = ()
    usage: Usage | None = None
    model: str = ""
    timestamp_s: float | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    extra: Mapping[str, JSON] = field(default_factory=dict)
    memo: dict[object, object] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Derived values (token counts, wire text) by rule; never part of what a message is."""

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Text):
            return self.parts[0].text
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    def replaced(self, text: str, source: Source) -> Message:
        """Return this message with ``text`` as its whole content: same role, calls and ids, written by ``source``."""
        key = ("replaced", text, source)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = Message(
                self.role,
                (Text(text),),
                self.calls,
                self.call_id,
                self.is_error,
                self.name,
                self.id,
                self.response_id,
                source,
                self.pinned,
                self.tags,
                extra=self.extra,
            )
        return cast("Message", found)

    @property
    def wire(self) -> tuple[object, ...]:
        """What a provider is sent of this message; equal wires are equal prompts."""
        found = self.memo.get("wire")
        if found is None:
            found = self.memo["wire"] = (self.role, self.parts, self.calls, self.call_id, self.name)
        return found  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool offered to the model; ``parameters`` is a JSON Schema object."""

    name: str
    description: str = ""
    parameters: Mapping[str, JSON] = field(default_factory=dict)


def system(text: str, *, pinned: bool = False) -> Message:
    """Return a system message with one text part."""
    return Message("system", (Text(text),), pinned=pinned)


def user(text: str) -> Message:
    """Return a user message with one text part."""
    return Message("user", (Text(text),))


def assistant(text: str = "", *calls: ToolCall) -> Message:
    """Return an assistant message with an optional text part and tool calls."""
    return Message("assistant", (Text(text),) if text else (), calls)


def tool(call_id: str, text: str, *, name: str = "") -> Message:
    """Return the result of the call ``call_id`` as a tool message."""
    return Message("tool", (Text(text),), call_id=call_id, name=name)
