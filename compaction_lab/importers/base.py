"""What an importer is, and how the messages it read become a transcript with its oddities counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from compaction_lab.conversation.messages import JSON, Message, Text, ToolDefinition
from compaction_lab.conversation.pairing import Pairing
from compaction_lab.conversation.transcript import Probe, RecordedCompaction, Transcript
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.source import Record, Source

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Importer:
    """One recorded format.

    Parameters
    ----------
    name
        As given to ``load_transcripts(format=...)``.
    summary
        One line for people who ask which formats are known.
    sniff
        First bytes and path to confidence: 0 (no) to 1 (it says so itself).
    records
        Splits a file into records; one conversation each is the rule.
    read
        The transcripts of a record; an empty id is filled with the name of the file.
    """

    name: str
    summary: str
    sniff: Callable[[bytes, Path], float]
    records: Callable[[Source], Iterator[Record]]
    read: Callable[[Record], Iterator[Transcript]]


def assemble(  # noqa: PLR0913 - one keyword a field of the transcript
    record: Record,
    messages: Sequence[Message],
    *,
    format_name: str,
    transcript_id: str = "",
    tools: Sequence[ToolDefinition] = (),
    probes: Sequence[Probe] = (),
    meta: Mapping[str, JSON] | None = None,
    warnings: Mapping[str, int] | None = None,
    places: Sequence[str] = (),
    compactions: Sequence[RecordedCompaction] = (),
    accept_orphans: bool = False,
) -> Transcript:
    """Return a transcript after the checks that hold for every format.

    Parameters
    ----------
    record
        Where the conversation was read.
    messages
        In the order of the conversation; time stamps never reorder them.
    format_name, transcript_id, tools, probes, meta, compactions
        Of the transcript.
    warnings
        What the importer itself found odd.
    places
        Where each message stands; ``messages[i]`` of the record when empty.
    accept_orphans
        Count tool results without an earlier call instead of refusing them, for logs that may begin in the middle.

    Raises
    ------
    TranscriptError
        If there are no messages, or a tool result has no earlier call and orphans are not accepted.
    """
    if not messages:
        record.refuse("messages", "found no messages", "at least one", "remove the record")
    pairing = Pairing(messages)
    for index in () if accept_orphans else pairing.orphans:
        call_id = messages[index].call_id
        place = places[index] if places else record.at(f"messages[{index}]")
        stated = f"the id {call_id!r}" if call_id else "no tool_call_id"
        raise TranscriptError(
            f"{place}, tool_call_id: found a tool result with {stated}, expected the id of a call that an earlier "
            "assistant message makes; add the missing assistant message or remove the result."
        )
    counted = Counter(record.warnings)
    counted.update(warnings or {})
    counted["reused_call_id"] += pairing.reused_ids
    counted["unanswered_call"] += len(pairing.unanswered)
    counted["duplicate_result"] += len(pairing.duplicates)
    counted["orphan_result"] += len(pairing.orphans)
    counted["recorded_compaction"] += len(compactions)
    counted["lone_surrogate"] += sum(map(_has_lone_surrogate, messages))
    counted["time_goes_back"] += _backward_steps(messages)
    return Transcript(
        transcript_id,
        tuple(messages),
        tuple(tools),
        tuple(probes),
        dict(meta or {}),
        {kind: number for kind, number in sorted(counted.items()) if number},
        format_name,
        record.where,
        tuple(compactions),
    )


def _has_lone_surrogate(message: Message) -> bool:
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    texts += [call.arguments for call in message.calls]
    return any(not text.isascii() and _LONE_SURROGATE.search(text) for text in texts)


def _backward_steps(messages: Sequence[Message]) -> int:
    stamps = [message.timestamp_s for message in messages if message.timestamp_s is not None]
    return sum(later < earlier for earlier, later in pairwise(stamps))
