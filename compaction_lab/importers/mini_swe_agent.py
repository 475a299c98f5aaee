"""mini-swe-agent trajectories: messages with the model's response beside them, or the older bare list of messages.

In the older shape commands stand in the assistant's text and observations are user messages; they stay what they were
sent as, and are tagged. Semantics: mini-swe-agent 1.x and 2.x ``agents/default.py``, ``models/litellm_model.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.conversation.wire import from_openai
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.content import with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source
from compaction_lab.importers.times import epoch_seconds

_WIRE_KEYS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a trajectory."""
    shape = outline(head)
    if shape.strings.get("trajectory_format", "").startswith("mini-swe-agent"):
        return 1.0
    named = path.name.endswith(".traj.json")
    if {"info", "messages"} <= shape.keys or (named and "info" in shape.keys):
        return 0.8
    return 0.7 if named and shape.kind == "array" and {"role", "content"} <= shape.keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the file as one record."""
    yield source.document()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a trajectory.

    Raises
    ------
    TranscriptError
        If there are no messages, or one of them is not a message.
    """
    value = record.value()
    envelope = value if isinstance(value, dict) else {}
    listed = envelope.get("messages") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        record.refuse("messages", f"found {describe(listed)}", "a list of messages", "give a complete trajectory")
    warnings: Counter[str] = Counter()
    messages: list[Message] = []
    for at, item in enumerate(listed):
        fields = Fields.of(item, record.at(f"messages[{at}]"))
        if fields.object.get("object") == "response" or fields.object.get("type") == "function_call_output":
            record.refuse(
                f"messages[{at}]",
                "found an item of the Responses interface",
                "a chat message",
                "import the items with format=openai_responses",
            )
        if fields.text("role") == "exit":
            continue  # the agent's own note of how it ended
        messages.append(_message(fields, messages, warnings, keep_media=record.keep_media))
    info = Fields(envelope, record.where).mapping("info")
    stats = Fields(Fields(info, record.at("info")).mapping("model_stats"), record.at("info.model_stats"))
    meta: dict[str, JSON] = {key: info[key] for key in ("exit_status", "mini_version") if info.get(key) is not None}
    if stats.object:
        usage = {"model_calls": stats.object.get("api_calls"), "cost_usd": stats.object.get("instance_cost")}
        meta["usage"] = {key: number or None for key, number in usage.items()}
    yield assemble(record, messages, format_name=IMPORTER.name, meta=meta, warnings=warnings, accept_orphans=True)


def _message(fields: Fields, earlier: list[Message], warnings: Counter[str], *, keep_media: bool) -> Message:
    mapping = {key: value for key, value in fields.object.items() if key in _WIRE_KEYS and value is not None}
    message = from_openai({"content": None, **mapping}, fields.where, keep_media=keep_media)
    extra = Fields(fields.mapping("extra"), f"{fields.where}.extra")
    message = replace(message, timestamp_s=epoch_seconds(extra.object.get("timestamp", fields.object.get("timestamp"))))
    if message.role == "user" and earlier and earlier[-1].role == "assistant":
        return replace(message, tags=("observation",))
    if message.role != "assistant":
        return message
    response = Fields(extra.mapping("response"), f"{extra.where}.response")
    message = replace(
        message, model=response.text("model"), response_id=response.text("id"), cost_usd=extra.number("cost")
    )
    return with_usage(message, response.object.get("usage"), "litellm", warnings)


IMPORTER = Importer("mini_swe_agent", "mini-swe-agent trajectories (.traj.json), new and old", sniff, records, read)
