"""tau2-bench results: the agent's side of each simulated conversation, with its usage and cost.

The user is a model too, with tools and usage of its own: its calls, their results and its bill are no part of what the
agent was sent, and are left out. The policy is not among the messages; where the results state it, it is put first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from compaction_lab.conversation.messages import JSON, Message, Role, Text, ToolCall
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.content import arguments_text, content_parts, with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source
from compaction_lab.importers.times import epoch_seconds

_META = ("task_id", "trial", "seed", "termination_reason", "agent_cost", "user_cost")


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file holds results, a list of simulations, or one."""
    del path
    keys = outline(head).keys
    if "simulations" in keys or ("info" in keys and b'"environment_info"' in head):
        return 0.9
    return 0.85 if "task_id" in keys and keys & {"termination_reason", "reward_info", "agent_cost"} else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a simulation; those of a results folder stand in files of their own beside ``results.json``."""
    for place, value in source.whole().values():
        fields = Fields.of(value, place.where)
        if "messages" in fields.object:
            yield place.part("", value)
            continue
        info: dict[str, JSON] = {"info": fields.object.get("info")}
        for at, simulation in enumerate(fields.items("simulations")):
            one = simulation if isinstance(simulation, dict) else {"messages": simulation}
            yield place.part(f"simulations[{at}]", {**one, **info})
        folder = source.path.parent / "simulations"
        if not fields.items("simulations") and folder.is_dir():
            for file in sorted(folder.glob("*.json")):
                part = Source(file, source.max_record_bytes, source.keep_media).document()
                yield part.part("", {**Fields.of(part.value(), part.where).object, **info})


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a simulation.

    Raises
    ------
    TranscriptError
        If it has no messages, or one of them is not one.
    """
    fields = Fields.of(record.value(), record.where)
    warnings: Counter[str] = Counter()
    messages = _policy(fields, warnings)
    for at, item in enumerate(fields.items("messages")):
        message = Fields.of(item, record.at(f"messages[{at}]"))
        bundle = message.items("tool_messages")
        for each in [Fields.of(inner, message.where) for inner in bundle] or [message]:
            messages.extend(_message(each, warnings))
    meta: dict[str, JSON] = {key: fields.object[key] for key in _META if fields.object.get(key) is not None}
    meta["reward"] = fields.mapping("reward_info").get("reward")
    yield assemble(
        record,
        messages,
        format_name=IMPORTER.name,
        transcript_id=fields.text("id"),
        meta=meta,
        warnings=warnings,
        accept_orphans=True,
    )


def _policy(fields: Fields, warnings: Counter[str]) -> list[Message]:
    info = Fields(fields.mapping("info"), f"{fields.where}.info").mapping("environment_info")
    policy = info.get("policy")
    if isinstance(policy, str) and policy:
        warnings["reconstructed_system_prompt"] += 1
        return [Message("system", (Text(policy),), source="injected")]
    warnings["missing_system_prompt"] += 1
    return []


def _message(fields: Fields, warnings: Counter[str]) -> list[Message]:
    role = fields.text("role")
    if role not in get_args(Role):
        fields = Fields({"role": 0}, fields.where)  # which refuses it, saying where
        fields.text("role")
    parts = content_parts(fields.object.get("content"), f"{fields.where}.content", provider="tau2")
    if role == "tool":
        if fields.object.get("requestor") == "user":
            warnings["user_tool_result"] += 1
            return []
        call_id = fields.text("id") or fields.text("tool_call_id")
        return [Message("tool", parts, call_id=call_id, is_error=fields.flag("error"))]
    calls = _calls(fields)
    if role == "user" and calls:
        warnings["user_tool_call"] += len(calls)
        if not parts:
            return []
    stamp = epoch_seconds(fields.object.get("timestamp"))
    message = Message(cast("Role", role), parts, calls if role == "assistant" else (), timestamp_s=stamp)
    if role != "assistant":
        return [message]
    raw = Fields(fields.mapping("raw_data"), f"{fields.where}.raw_data")
    message = replace(
        message,
        cost_usd=fields.number("cost") if "cost" in fields.object else None,
        latency_s=fields.number("generation_time_seconds"),
        model=raw.text("model"),
        response_id=raw.text("id"),
    )
    return [with_usage(message, raw.object.get("usage") or fields.object.get("usage"), "litellm", warnings)]


def _calls(fields: Fields) -> tuple[ToolCall, ...]:
    items = [Fields.of(item, f"{fields.where}.tool_calls[{at}]") for at, item in enumerate(fields.items("tool_calls"))]
    return tuple(
        ToolCall(item.text("id"), item.text("name"), arguments_text(item.object.get("arguments"))) for item in items
    )


IMPORTER = Importer("tau2_bench", "tau2-bench results, simulations, or a results folder", sniff, records, read)
