"""OpenHands trajectories of the first generation (V0): a list of actions and observations.

Several actions may come from one response of the model: they are one message, and its usage counts once. Actions that
were no tool calls get a call named after the event. Semantics: OpenHands 0.x ``events/serialization``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from compaction_lab.conversation.media import media_from_url
from compaction_lab.conversation.messages import JSON, Message, Part, Text, ToolCall, ToolDefinition
from compaction_lab.conversation.transcript import RecordedCompaction, Transcript
from compaction_lab.conversation.wire import from_openai, tools_from_openai
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.content import arguments_text, with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source
from compaction_lab.importers.times import epoch_seconds

_SILENT = frozenset({"change_agent_state", "recall", "null", "condensation_request", "start"})
_NOT_ARGUMENTS = frozenset({"thought", "security_risk", "confirmation_state", "hidden", "is_confirmed"})


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a trajectory: events with a source that act or observe."""
    del path
    keys = outline(head).keys
    return 0.9 if "source" in keys and keys & {"action", "observation"} else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the file as one record."""
    yield source.whole()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a trajectory.

    Raises
    ------
    TranscriptError
        If an event is not an object, or the message of a response not a message.
    """
    told = _Told(keep_media=record.keep_media)
    for place, value in record.values():
        told.take(Fields.of(value, place.where))
    yield assemble(
        record,
        told.messages,
        format_name=IMPORTER.name,
        tools=told.tools,
        warnings=told.warnings,
        compactions=told.compactions,
        accept_orphans=True,
    )


@dataclass(slots=True)
class _Told:
    keep_media: bool
    messages: list[Message] = field(default_factory=list)
    tools: tuple[ToolDefinition, ...] = ()
    warnings: Counter[str] = field(default_factory=Counter)
    compactions: list[RecordedCompaction] = field(default_factory=list)
    responses: set[str] = field(default_factory=set)
    calls: dict[JSON, str] = field(default_factory=dict)
    billed: float = 0.0

    def take(self, event: Fields) -> None:
        """Take one event in."""
        action = event.text("action")
        if event.object.get("observation") is not None:
            self._observe(event)
        elif action == "system":
            args = Fields(event.mapping("args"), event.where)
            self._say(event, Message("system", (Text(args.text("content")),)))
            self.tools = tools_from_openai(args.object.get("tools"), f"{event.where}.args.tools")
        elif action == "condensation":
            self._condense(Fields(event.mapping("args"), f"{event.where}.args"))
        elif event.text("source") == "user" and action:
            args = Fields(event.mapping("args"), f"{event.where}.args")
            images: list[Part] = [media_from_url("image", u, keep=self.keep_media) for u in args.texts("image_urls")]
            text = args.text("content") or args.text("command") or event.text("message")
            self._say(event, Message("user", (Text(text), *images)))
        elif event.object.get("tool_call_metadata"):
            self._respond(event)
        elif action:
            if action not in _SILENT:
                self._act(event, action)
        else:
            self.warnings["unread_line"] += 1

    def _respond(self, event: Fields) -> None:
        metadata = Fields(event.mapping("tool_call_metadata"), f"{event.where}.tool_call_metadata")
        response = Fields(metadata.mapping("model_response"), f"{metadata.where}.model_response")
        response_id = response.text("id")
        if response_id in self.responses and response_id:
            return  # another action of the same response
        self.responses.add(response_id)
        choices = response.items("choices")
        first = choices[0] if choices else None
        said = first.get("message") if isinstance(first, dict) else None
        if isinstance(said, dict):
            wire: JSON = {key: said[key] for key in ("role", "content", "tool_calls") if said.get(key) is not None}
            message = from_openai(wire, f"{response.where}.choices[0].message", keep_media=self.keep_media)
        else:
            call = ToolCall(metadata.text("tool_call_id"), metadata.text("function_name"), self._arguments(event))
            message = Message("assistant", (), (call,))
        message = replace(message, model=response.text("model"), response_id=response_id)
        self._say(event, with_usage(message, response.object.get("usage"), "litellm", self.warnings))

    def _act(self, event: Fields, action: str) -> None:
        args = Fields(event.mapping("args"), f"{event.where}.args")
        thought = args.text("thought") if isinstance(args.object.get("thought"), str) else ""
        text = args.text("content") if action == "message" else thought
        calls = (
            () if action in {"message", "finish"} else (ToolCall(self._name(event), action, self._arguments(event)),)
        )
        self.warnings["synthesised_call_id"] += len(calls)
        self._say(event, Message("assistant", (Text(text),) if text else (), calls))

    def _observe(self, event: Fields) -> None:
        metadata = Fields(event.mapping("tool_call_metadata"), event.where)
        call_id = metadata.text("tool_call_id") or self.calls.get(event.whole("cause"), "")
        if not call_id:
            return  # state changes and recalled knowledge answer no call
        extras = event.mapping("extras")
        failed = event.text("observation") == "error" or extras.get("error") is True
        self._say(event, Message("tool", (Text(event.text("content")),), call_id=call_id, is_error=failed))

    def _condense(self, args: Fields) -> None:
        self.compactions.append(RecordedCompaction(len(self.messages), "condensation"))
        if args.text("summary"):
            self.messages.append(Message("user", (Text(args.text("summary")),), source="summary"))

    def _say(self, event: Fields, message: Message) -> None:
        metrics = Fields(event.mapping("llm_metrics"), event.where)
        total = metrics.number("accumulated_cost")
        if message.role == "assistant" and total is not None and total >= self.billed:
            message = replace(message, cost_usd=total - self.billed)
            self.billed = total
        self.messages.append(replace(message, timestamp_s=epoch_seconds(event.object.get("timestamp"))))

    def _name(self, event: Fields) -> str:
        number = event.whole("id")
        name = f"event-{len(self.messages) if number is None else number}"
        self.calls[number] = name
        return name

    def _arguments(self, event: Fields) -> str:
        args = event.mapping("args")
        return arguments_text({key: value for key, value in args.items() if key not in _NOT_ARGUMENTS})


IMPORTER = Importer("openhands", "OpenHands trajectories (V0), a list of events", sniff, records, read)
