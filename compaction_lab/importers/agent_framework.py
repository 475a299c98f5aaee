"""Agent Framework sessions: ``AgentSession.to_dict()``, whose messages lie in the state under their provider's name.

Semantics: agent-framework-core 1.23 ``_sessions.py``, ``_types.py``, ``_compaction.py``. Messages that its compaction
excluded stay in the session, marked; they show that the session was compacted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.media import MediaKind, media_from_url
from compaction_lab.conversation.messages import JSON, Message, Part, Role, ToolCall
from compaction_lab.conversation.transcript import RecordedCompaction, Transcript
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.content import arguments_text, content_parts, result_parts, with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source

PROVIDER = "agent_framework"
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio"}


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file holds sessions."""
    del path
    shape = outline(head)
    if shape.strings.get("type") == "session" and "state" in shape.keys:
        return 1.0
    return 0.9 if {"session_id", "state"} <= shape.keys else 0.6 if {"role", "contents"} <= shape.keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a session; a list of messages is one."""
    values = list(source.whole().values())
    if all(isinstance(value, dict) and "contents" in value for _, value in values):
        listed: list[JSON] = [value for _, value in values]
        yield Record(source.path, parsed=({"state": {"": {"messages": listed}}},), keep_media=source.keep_media)
        return
    yield from (place.part("", value) for place, value in values)


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of each provider of a session that keeps messages.

    Raises
    ------
    TranscriptError
        If none does: with a ``service_session_id`` the messages are on the server.
    """
    fields = Fields.of(record.value(), record.where)
    state = fields.mapping("state")
    kept = {key: value for key, value in state.items() if isinstance(value, dict) and value.get("messages")}
    if not kept:
        on_server = bool(fields.text("service_session_id"))
        record.refuse(
            "state",
            "found no messages" + (", and a service_session_id: they are on the server" if on_server else ""),
            "messages under a provider's name, such as in_memory",
            "export the messages from the service" if on_server else "serialise the session after it was used",
        )
    for key, value in kept.items():
        yield _transcript(Fields(value, record.at(f"state.{key}")), record, fields, f":{key}" if len(kept) > 1 else "")


def _transcript(provider: Fields, record: Record, session: Fields, suffix: str) -> Transcript:
    warnings: Counter[str] = Counter()
    messages: list[Message] = []
    excluded: list[int] = []
    for at, item in enumerate(provider.items("messages")):
        fields = Fields.of(item, f"{provider.where}.messages[{at}]")
        messages.extend(_messages(fields, warnings, keep_media=record.keep_media))
        if fields.mapping("additional_properties").get("_excluded") is True:
            excluded.append(len(messages))
    name = session.text("session_id")
    return assemble(
        replace(record, warnings=Counter(record.warnings)),
        messages,
        format_name=IMPORTER.name,
        transcript_id=name + suffix if name else "",
        warnings=warnings,
        compactions=[RecordedCompaction(excluded[-1], "excluded")] if excluded else (),
        accept_orphans=True,
    )


def _messages(fields: Fields, warnings: Counter[str], *, keep_media: bool) -> list[Message]:
    stated = fields.object.get("role")
    role = stated.get("value") if isinstance(stated, dict) else stated
    if role not in get_args(Role):
        raise TranscriptError(
            f"{fields.where}: field 'role' is {describe(role)}, "
            f"expected one of {', '.join(get_args(Role))}; correct it."
        )
    parts: list[Part] = []
    calls: list[ToolCall] = []
    results: list[Message] = []
    usage: JSON = None
    for at, item in enumerate(fields.items("contents")):
        content = Fields.of(item, f"{fields.where}.contents[{at}]")
        kind = content.text("type")
        if kind == "function_call":
            arguments = arguments_text(content.object.get("arguments"))
            calls.append(ToolCall(content.text("call_id"), content.text("name"), arguments))
        elif kind == "function_result":
            results.append(_result(content, keep_media=keep_media))
        elif kind == "usage":
            usage = content.object.get("usage_details")
        elif kind in {"data", "uri"}:
            family = content.text("media_type").split("/", maxsplit=1)[0]
            parts.append(media_from_url(_KINDS.get(family, "file"), content.text("uri"), keep=keep_media))
        else:
            parts.extend(content_parts(content.object, content.where, provider=PROVIDER, keep_media=keep_media))
    if role == "tool" or (results and not parts and not calls):
        return results or [Message("tool", tuple(parts))]
    name = fields.text("author_name")
    message = Message(cast("Role", role), tuple(parts), tuple(calls), name=name, id=fields.text("message_id"))
    return [*results, with_usage(message, usage, "agent_framework", warnings) if role == "assistant" else message]


def _result(content: Fields, *, keep_media: bool) -> Message:
    stated = content.object.get("result")
    answer = content.object.get("items") if stated is None else stated
    failed = content.object.get("exception") is not None
    if answer is None and failed:
        answer = arguments_text(content.object.get("exception"))
    parts = result_parts(answer, content.where, provider=PROVIDER, keep_media=keep_media)
    return Message("tool", parts, call_id=content.text("call_id"), is_error=failed)


IMPORTER = Importer("agent_framework", "Agent Framework sessions (AgentSession.to_dict)", sniff, records, read)
