"""OpenHands conversations of the second generation (V1): ``base_state.json`` with its ``events`` folder, or the events.

Usage stands in the state by response; several actions may share a response, whose usage counts once. A condensation
hides earlier events from later calls. Semantics: OpenHands software-agent-sdk 1.x ``sdk/event``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast, get_args

from compaction_lab.conversation.messages import JSON, Message, Part, Reasoning, Role, Text, ToolCall, ToolDefinition
from compaction_lab.conversation.transcript import RecordedCompaction, Transcript
from compaction_lab.conversation.wire import tools_from_openai
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.content import arguments_text, content_parts, with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.markers import has_value
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source
from compaction_lab.importers.times import epoch_seconds

PROVIDER = "openhands"
_KINDS = ("SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "Condensation")


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a conversation's state, or a list of its events."""
    keys = outline(head).keys
    if path.name == "base_state.json" and "agent" in keys:
        return 0.95
    return 0.9 if {"kind", "source"} <= keys and has_value(head, "kind", *_KINDS) else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the conversation as one record: the state with the events of the folder beside it, in their order."""
    events = source.path.parent / "events"
    if source.path.name != "base_state.json":
        yield source.whole()
        return
    document = source.document()
    state = Fields.of(document.value(), document.where).object
    files = sorted(events.glob("event-*.json")) if events.is_dir() else []
    listed: list[JSON] = [Source(file, source.max_record_bytes, source.keep_media).document().value() for file in files]
    yield replace(document, raw=b"", parsed=({"state": state, "events": listed},))


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation.

    Raises
    ------
    TranscriptError
        If an event is not an object, or a field has a wrong type; events of unknown kind are passed over.
    """
    state: dict[str, JSON] = {}
    if record.lines is None:
        whole = Fields.of(record.value(), record.where)
        state = whole.mapping("state")
        events = [(record.at(f"events[{at}]"), item) for at, item in enumerate(whole.items("events"))]
    else:
        events = [(place.where, value) for place, value in record.values()]
    told = _Told(_usages(Fields(state, record.where)), keep_media=record.keep_media)
    for where, item in events:
        told.take(Fields.of(item, where))
    name = state.get("id")
    yield assemble(
        record,
        told.messages,
        format_name=IMPORTER.name,
        transcript_id=name if isinstance(name, str) else "",
        tools=told.tools,
        warnings=told.warnings,
        compactions=told.compactions,
        accept_orphans=True,
    )


def _usages(state: Fields) -> dict[str, dict[str, JSON]]:
    """Return usage, cost and duration by response id."""
    found: dict[str, dict[str, JSON]] = {}
    by_use = Fields(state.mapping("stats"), f"{state.where}.stats").mapping("usage_to_metrics")
    for name, metrics in by_use.items():
        fields = Fields.of(metrics, f"{state.where}.stats.usage_to_metrics.{name}")
        durations = {}
        for each in fields.items("response_latencies"):
            item = Fields.of(each, fields.where)
            durations[item.text("response_id")] = item.number("latency")
        for each in fields.items("token_usages"):
            item = Fields.of(each, fields.where)
            latency = durations.get(item.text("response_id"))
            found[item.text("response_id")] = {"usage": item.object, "latency": latency}
    return found


@dataclass(slots=True)
class _Told:
    usages: Mapping[str, dict[str, JSON]]
    keep_media: bool
    messages: list[Message] = field(default_factory=list)
    tools: tuple[ToolDefinition, ...] = ()
    warnings: Counter[str] = field(default_factory=Counter)
    compactions: list[RecordedCompaction] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def take(self, event: Fields) -> None:
        """Take one event in."""
        kind = event.text("kind")
        if kind == "SystemPromptEvent":
            prompt = Fields(event.mapping("system_prompt"), event.where)
            self._say(event, Message("system", (Text(prompt.text("text")),)))
            offered: list[JSON] = [_tool(Fields.of(each, event.where)) for each in event.items("tools")]
            self.tools = tools_from_openai(offered, f"{event.where}.tools")
        elif kind == "MessageEvent":
            said = Fields(event.mapping("llm_message"), f"{event.where}.llm_message")
            role = said.text("role") if said.text("role") in get_args(Role) else "user"
            message = Message(
                cast("Role", role), (*self._thinking(said), *self._parts(said.object.get("content"), said))
            )
            extended = self._parts(event.object.get("extended_content"), event)
            self._respond(event, replace(message, parts=(*message.parts, *extended)))
        elif kind == "ActionEvent":
            call = Fields(event.mapping("tool_call"), f"{event.where}.tool_call")
            calls = (ToolCall(event.text("tool_call_id"), event.text("tool_name"), _arguments(call)),)
            parts = (*self._thinking(event), *self._parts(event.object.get("thought"), event))
            self._respond(event, Message("assistant", parts, calls))
        elif event.text("tool_call_id"):
            self._say(event, self._result(event, kind))
        elif kind == "Condensation":
            self.compactions.append(RecordedCompaction(len(self.messages), "condensation"))
            if event.text("summary"):
                self._say(event, Message("user", (Text(event.text("summary")),), source="summary"))
        else:
            self.warnings["unread_line"] += not kind

    def _respond(self, event: Fields, message: Message) -> None:
        """Add a message, or what it adds to that of the same response."""
        response_id = event.text("llm_response_id")
        at = self.places.get(response_id) if response_id else None
        if at is not None and message.role == "assistant":
            said = self.messages[at]
            more = tuple(part for part in message.parts if part not in said.parts)
            self.messages[at] = replace(said, parts=(*said.parts, *more), calls=(*said.calls, *message.calls))
            return
        if message.role == "assistant" and response_id:
            self.places[response_id] = len(self.messages)
            known = self.usages.get(response_id, {})
            message = with_usage(message, known.get("usage"), "litellm", self.warnings)
            latency = known.get("latency")
            latency_s = float(latency) if isinstance(latency, int | float) and latency >= 0 else None
            message = replace(message, response_id=response_id, latency_s=latency_s)
        self._say(event, message)

    def _result(self, event: Fields, kind: str) -> Message:
        observation = Fields(event.mapping("observation"), f"{event.where}.observation")
        content = observation.object.get("content", event.object.get("error", event.object.get("rejection_reason")))
        failed = kind == "AgentErrorEvent" or observation.flag("is_error")
        parts = self._parts(content, observation)
        return Message("tool", parts, call_id=event.text("tool_call_id"), is_error=failed, name=event.text("tool_name"))

    def _parts(self, value: JSON, fields: Fields) -> tuple[Part, ...]:
        found = content_parts(value, fields.where, provider=PROVIDER, keep_media=self.keep_media)
        return tuple(part for part in found if not isinstance(part, Text) or part.text)

    def _thinking(self, fields: Fields) -> tuple[Part, ...]:
        blocks = content_parts(fields.items("thinking_blocks"), fields.where, provider=PROVIDER)
        text = fields.text("reasoning_content")
        return blocks or ((Reasoning(text),) if text else ())

    def _say(self, event: Fields, message: Message) -> None:
        self.messages.append(replace(message, timestamp_s=epoch_seconds(event.object.get("timestamp"))))


def _arguments(call: Fields) -> str:
    return arguments_text(call.object.get("arguments", call.mapping("function").get("arguments")))


def _tool(tool: Fields) -> JSON:
    """Return a tool definition, which names its schema in the manner of OpenAI, or of MCP."""
    named = {
        "name": tool.text("name") or tool.text("title") or tool.text("kind"),
        "description": tool.text("description"),
    }
    schema = tool.object.get("inputSchema", tool.object.get("parameters"))
    return tool.object if "function" in tool.object else {**named, "parameters": schema}


IMPORTER = Importer(
    "openhands_v1", "OpenHands conversations (V1), base_state.json with its events", sniff, records, read
)
