"""One recorded model call, request and response, of any chat interface; and conversations made of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.importers.base import assemble
from compaction_lab.importers.content import with_usage
from compaction_lab.importers.folding import Conversation, Exchange, fold
from compaction_lab.importers.shapes import Spoken, read_shape
from compaction_lab.importers.source import Record
from compaction_lab.importers.times import epoch_seconds, seconds_between

_REQUEST_KEYS = ("messages", "input", "contents")
_START = ("start_time", "startTime", "request_time", "timestamp", "created_at", "created")
_END = ("end_time", "endTime", "response_time", "completed_at")
_COST = ("response_cost", "cost", "cost_usd", "total_cost")


def exchange(request: JSON, response: JSON, place: Record, warnings: Counter[str]) -> Exchange:
    """Return the exchange of a request and its response, either of which may stand in the same object.

    Raises
    ------
    TranscriptError
        If their messages are in no shape the lab knows.
    """
    asked = request if isinstance(request, dict) else {}
    answered = response if isinstance(response, dict) else {}
    sent = Spoken()
    if any(asked.get(key) for key in _REQUEST_KEYS) or asked.get("instructions"):
        stated = {key: value for key, value in asked.items() if key not in {"output", "choices", "response", "role"}}
        stated.setdefault("input", [])
        sent = read_shape(stated, place.at("request"), keep_media=place.keep_media)
    received = Spoken()
    if any(key in answered for key in ("choices", "output", "content", "message", "parts")):
        body = {
            key: value for key, value in answered.items() if key in {"choices", "output", "content", "role", "message"}
        }
        received = read_shape(_said(body), place.at("response"), keep_media=place.keep_media)
    for spoken in (sent, received):
        warnings.update(spoken.warnings)
    choices = answered.get("choices")
    warnings["unread_choice"] += len(choices) - 1 if isinstance(choices, list) and len(choices) > 1 else 0
    if not sent.messages or (sent.messages[-1].role in {"system", "developer"}):
        warnings["missing_input"] += 1
    name = next((v for k in ("conversation_id", "session_id", "thread_id") if isinstance(v := asked.get(k), str)), "")
    before = answered.get("previous_response_id") or asked.get("previous_response_id")
    response_id = answered.get("id")
    return Exchange(
        sent.messages,
        measured(received.messages, asked, answered, warnings),
        sent.tools or received.tools,
        name,
        response_id if isinstance(response_id, str) else "",
        before if isinstance(before, str) else "",
    )


def measured(
    messages: Sequence[Message], asked: dict[str, JSON], answered: dict[str, JSON], warnings: Counter[str]
) -> list[Message]:
    """Return the received messages with what the log says about their call, on the last assistant message."""
    at = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
    if at < 0:
        return list(messages)
    usage = answered.get("usage")
    dialect = "openai_chat"
    if isinstance(usage, dict) and "input_tokens" in usage:
        dialect = "anthropic" if "stop_reason" in answered or answered.get("type") == "message" else "openai_responses"
    elif isinstance(usage, dict) and "cache_creation_input_tokens" in usage:
        dialect = "litellm"
    start = next((t for k in _START for o in (asked, answered) if (t := epoch_seconds(o.get(k))) is not None), None)
    end = next((t for k in _END for o in (answered, asked) if (t := epoch_seconds(o.get(k))) is not None), None)
    model = next((v for o in (answered, asked) if isinstance(v := o.get("model"), str)), "")
    cost = next((float(v) for o in (answered, asked) for k in _COST if _is_amount(v := o.get(k))), None)  # type: ignore[arg-type]
    response_id = answered.get("id")
    message = replace(
        messages[at],
        model=model,
        timestamp_s=start if end is None else end,
        latency_s=seconds_between(start, end),
        cost_usd=cost,
        response_id=response_id if isinstance(response_id, str) else "",
    )
    return [*messages[:at], with_usage(message, usage, dialect, warnings), *messages[at + 1 :]]


def transcripts_of(record: Record, exchanges: Sequence[Exchange], format_name: str) -> Iterator[Transcript]:
    """Yield the conversations that a file's calls were.

    Raises
    ------
    TranscriptError
        If there are none.
    """
    found = fold(exchanges)
    if not any(conversation.messages for conversation in found):
        record.refuse("", "found no recorded model call", "requests with their responses", "leave the file out")
    names = Counter(conversation.name for conversation in found)
    found[0].warnings.update(record.warnings)  # of the file; they are counted once
    for number, conversation in enumerate(found, start=1):
        if conversation.messages:
            named = conversation.name if names[conversation.name] == 1 else ""
            yield _transcript(record, conversation, format_name, named or _part_name(record, number, len(found)))


def _transcript(record: Record, conversation: Conversation, format_name: str, name: str) -> Transcript:
    return assemble(
        replace(record, warnings=Counter()),
        conversation.messages,
        format_name=format_name,
        transcript_id=name,
        tools=conversation.tools,
        meta={"conversation": conversation.name} if conversation.name else {},
        warnings=conversation.warnings,
        compactions=conversation.compactions,
        accept_orphans=True,
    )


def _part_name(record: Record, number: int, of: int) -> str:
    stem = record.path.name.split(".")[0] or record.path.name
    return f"{stem}:{number}" if of > 1 else ""


def _said(body: dict[str, JSON]) -> JSON:
    if "choices" in body or "message" in body:
        return body
    return {"messages": body["output"]} if "output" in body else {"role": "assistant", **body}


def _is_amount(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9  # noqa: PLR2004
