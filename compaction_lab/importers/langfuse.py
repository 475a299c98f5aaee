"""Langfuse trace exports: the generations of a trace, folded into the conversations they were.

Only generations are calls: an agent's observation repeats its children's tokens in numbers that need not add up. What
goes in and out is JSON text, encoded once or twice, in the shape of whatever framework was traced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.conversation.wire import tools_from_openai
from compaction_lab.importers.base import Importer
from compaction_lab.importers.calls import transcripts_of
from compaction_lab.importers.content import parsed, with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.folding import Exchange
from compaction_lab.importers.otel_messages import instructions_message
from compaction_lab.importers.shapes import Spoken, read_shape
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source
from compaction_lab.importers.times import epoch_seconds, seconds_between


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file holds traces, or observations."""
    del path
    keys = outline(head).keys
    if "trace" in keys and (keys & {"observations"} or b'"observations"' in head or b'"projectId"' in head):
        return 0.95
    return 0.9 if "observations" in keys or {"type", "traceId", "startTime"} <= keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a trace; loose observations are one record."""
    loose: list[JSON] = []
    for place, value in source.whole().values():
        if isinstance(value, dict) and ("trace" in value or "observations" in value):
            yield place.part("", value)
        else:
            loose.append(value)
    if loose:
        yield Record(source.path, parsed=({"observations": loose},), keep_media=source.keep_media)


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversations of a trace.

    Raises
    ------
    TranscriptError
        If no generation holds messages, or they are in no shape the lab knows.
    """
    export = Fields.of(record.value(), record.where)
    trace = Fields(export.mapping("trace"), record.at("trace"))
    listed = export.items("observations") or trace.items("observations")
    observations = [Fields.of(item, record.at(f"observations[{at}]")) for at, item in enumerate(listed)]
    record.warnings["unread_line"] += sum("type" not in each.object for each in observations)
    generations = [each for each in observations if each.object.get("type") == "GENERATION"]
    ordered = sorted(generations, key=lambda each: epoch_seconds(each.object.get("startTime")) or 0.0)
    spoken = [each for each in ordered if each.object.get("input") is not None]
    record.warnings["call_without_content"] += len(ordered) - len(spoken)
    by_id = {each.text("id"): each for each in observations}
    exchanges = [_exchange(each, trace, _instructions(each, by_id), record) for each in spoken]
    yield from transcripts_of(record, exchanges, IMPORTER.name)


def spoken_in(value: JSON, where: str, *, keep_media: bool = False) -> Spoken:
    """Return the messages of an observation's input or output; loose text is said by whoever it stands for.

    Raises
    ------
    TranscriptError
        If it is in no shape the lab knows.
    """
    found = parsed(value)
    return read_shape(found, where, keep_media=keep_media) if isinstance(found, dict | list) else Spoken()


def _attributes(observation: Fields) -> dict[str, JSON]:
    metadata = parsed(observation.object.get("metadata"))
    stated = metadata.get("attributes") if isinstance(metadata, dict) else None
    return stated if isinstance(stated, dict) else {}


def _instructions(generation: Fields, by_id: Mapping[str, Fields]) -> list[Message]:
    """Return the system message that the generation, or the agent it ran for, was given beside its messages."""
    seen: set[str] = set()
    each: Fields | None = generation
    while each is not None and each.text("id") not in seen:
        seen.add(each.text("id"))
        if found := instructions_message(parsed(_attributes(each).get("gen_ai.system_instructions")), each.where):
            return found
        each = by_id.get(each.text("parentObservationId"))
    return []


def _exchange(generation: Fields, trace: Fields, instructions: list[Message], record: Record) -> Exchange:
    asked = spoken_in(generation.object.get("input"), f"{generation.where}.input", keep_media=record.keep_media)
    answer = parsed(generation.object.get("output"))
    said = spoken_in(answer, f"{generation.where}.output", keep_media=record.keep_media)
    sent, received = list(asked.messages), list(said.messages)
    text_in, text_out = parsed(generation.object.get("input")), answer
    if not sent and isinstance(text_in, str) and text_in:
        sent = _text("user", text_in)
    if not received and isinstance(text_out, str) and text_out:
        received = _text("assistant", text_out)
    # A whole response states the instructions it was given.
    opening = [message for message in received if message.role == "system"]
    received = [message for message in received if message.role != "system"]
    opening = opening or instructions
    if not any(message.role in {"system", "developer"} for message in sent):
        sent = [*opening, *sent]
    definitions = parsed(_attributes(generation).get("gen_ai.tool.definitions"))
    offered = tools_from_openai(definitions, generation.where) if isinstance(definitions, list) else ()
    for spoken in (asked, said):
        record.warnings.update(spoken.warnings)
    answered = [_measured(m, generation, record) if m.role == "assistant" else m for m in received[:1]] + received[1:]
    name = trace.text("sessionId") or trace.text("id") or generation.text("traceId")
    return Exchange(sent, answered, asked.tools or said.tools or offered, name, generation.text("id"))


def _text(role: str, text: str) -> list[Message]:
    return read_shape([{"role": role, "content": text}], "").messages


def _measured(message: Message, generation: Fields, record: Record) -> Message:
    start, end = (epoch_seconds(generation.object.get(key)) for key in ("startTime", "endTime"))
    cost = Fields(generation.mapping("costDetails"), f"{generation.where}.costDetails").number("total")
    message = replace(
        message,
        model=generation.text("model"),
        timestamp_s=start if end is None else end,
        latency_s=seconds_between(start, end),
        cost_usd=cost if cost is not None and cost >= 0 else None,
        usage=None,
    )
    usage = generation.object.get("usageDetails") or generation.object.get("usage")
    return with_usage(message, usage, "langfuse", record.warnings)


IMPORTER = Importer("langfuse", "Langfuse trace exports", sniff, records, read)
