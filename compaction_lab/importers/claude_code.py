"""Claude Code sessions: the branch that was kept, each side chain a transcript of its own, compactions marked.

A response stands on one line a content block, each with the usage of the whole: the lines are one message, the last
usage counts. What the program only shows to the user (hooks, notices, error texts of the interface) is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.transcript import RecordedCompaction, Transcript
from compaction_lab.importers.anthropic_messages import messages_from_anthropic
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.claude_code_graph import Line, chains, kept_lines
from compaction_lab.importers.content import with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source
from compaction_lab.importers.times import epoch_seconds

_META = {"cwd": "cwd", "version": "version", "gitBranch": "git_branch", "sessionId": "session", "agentId": "agent"}


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a session: lines that name themselves and their parent."""
    del path
    keys = outline(head).keys
    if {"uuid", "parentUuid"} <= keys:
        return 0.95
    if "type" in keys and b'"parentUuid"' in head and b'"sessionId"' in head:
        return 0.9  # begins with a line about the session
    return 0.7 if "leafUuid" in keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the file as one record."""
    yield source.whole()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the session and then its side chains.

    Raises
    ------
    TranscriptError
        If a line is not an object, its message not a message, or the file has no message at all.
    """
    lines: dict[str, Line] = {}
    for number, (place, value) in enumerate(record.values()):
        fields = Fields.of(value, place.where)
        if isinstance(fields.object.get("uuid"), str):
            lines[fields.text("uuid")] = Line(number, fields.object, place)  # written again when a session is resumed
        record.warnings["unread_line"] += "type" not in fields.object
    ordered = sorted(lines.values(), key=lambda line: line.number)
    main = [line for line in ordered if not line.value.get("isSidechain")]
    side = chains(line for line in ordered if line.value.get("isSidechain"))
    found = [t for at, part in enumerate([main, *side]) for t in _transcript(part, record, is_side=at > 0)]
    if not found:
        record.refuse("", "found no user or assistant line", "a session", "leave the file out")
    yield from found


def _transcript(lines: Sequence[Line], record: Record, *, is_side: bool) -> Iterator[Transcript]:
    warnings: Counter[str] = Counter()
    messages: list[Message] = []
    compactions: list[RecordedCompaction] = []
    places: dict[str, dict[str, int]] = {}
    kept = kept_lines(lines, warnings)
    for line in kept:
        if line.is_boundary:
            compactions.append(_compaction(line, len(messages)))
        elif line.text("type") == "assistant" and line.message:
            _respond(line, messages, places, warnings, keep_media=record.keep_media)
        elif line.text("type") == "user" and line.message:
            summary = bool(line.value.get("isCompactSummary"))
            if summary and (not compactions or compactions[-1].position != len(messages)):
                compactions.append(RecordedCompaction(len(messages)))  # older versions wrote no boundary
            tags = ("meta",) if line.value.get("isMeta") else ()
            for message in _messages(line, record.keep_media):
                source = "summary" if summary and message.role == "user" else "recorded"
                stamp = epoch_seconds(line.value.get("timestamp"))
                messages.append(replace(message, timestamp_s=stamp, tags=tags, source=source))  # type: ignore[arg-type]
        else:
            warnings["unread_attachment"] += line.text("type") == "attachment"
    if not messages:
        return
    last = kept[-1]
    session = last.text("sessionId")
    name = f"{session}:{last.text('agentId') or kept[0].text('uuid')[:8]}" if is_side else session
    meta: dict[str, JSON] = {ours: last.text(theirs) for theirs, ours in _META.items() if last.text(theirs)}
    yield assemble(
        replace(record, warnings=Counter()) if is_side else record,
        messages,
        format_name=IMPORTER.name,
        transcript_id=name,
        meta={**meta, "side_chain": True} if is_side else meta,
        warnings=warnings,
        compactions=compactions,
        accept_orphans=True,
    )


def _respond(
    line: Line,
    messages: list[Message],
    places: dict[str, dict[str, int]],
    warnings: Counter[str],
    *,
    keep_media: bool,
) -> None:
    """Add a line's blocks to the message of its response, or begin that message."""
    if line.value.get("isApiErrorMessage") or line.message.get("model") == "<synthetic>":
        warnings["synthetic_message"] += 1  # written by the program, never seen by the model
        return
    spoken = _messages(line, keep_media)
    request = line.text("requestId")
    by_request = places.setdefault(line.response, {}) if line.response else {}
    at = by_request.get(request, by_request.get("") if request else next(iter(by_request.values()), None))
    if at is None:
        at = len(messages)
        stamp = epoch_seconds(line.value.get("timestamp"))
        model = line.message.get("model")
        named = model if isinstance(model, str) else ""
        messages.append(replace(spoken[-1], timestamp_s=stamp, model=named, response_id=line.response))
    else:
        known = {call.id for call in messages[at].calls}
        more = tuple(call for call in spoken[-1].calls if call.id not in known)
        said = messages[at]
        messages[at] = replace(said, parts=(*said.parts, *spoken[-1].parts), calls=(*said.calls, *more))
    if request or not by_request:  # a line without its request must not join those of another
        by_request[request] = at
    counted: Counter[str] = Counter()
    cost = line.value.get("costUSD")
    messages[at] = with_usage(messages[at], line.message.get("usage"), "anthropic", counted)
    warnings |= counted
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e9:  # noqa: PLR2004
        messages[at] = replace(messages[at], cost_usd=float(cost))


def _messages(line: Line, keep_media: bool) -> list[Message]:  # noqa: FBT001
    return messages_from_anthropic(dict(line.message), line.place.at("message"), keep_media=keep_media)


def _compaction(line: Line, position: int) -> RecordedCompaction:
    micro = line.text("subtype").startswith("micro")
    stated = line.value.get("microcompactMetadata" if micro else "compactMetadata")
    fields = Fields(stated if isinstance(stated, dict) else {}, line.place.at("compactMetadata"))
    before, saved = fields.whole("preTokens"), fields.whole("tokensSaved")
    after = fields.whole("postTokens")
    if after is None and before is not None and saved is not None:
        after = max(0, before - saved)
    return RecordedCompaction(position, "microcompact" if micro else fields.text("trigger"), before, after)


IMPORTER = Importer("claude_code", "Claude Code session logs (.jsonl), side chains included", sniff, records, read)
