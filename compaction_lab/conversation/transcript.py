"""A transcript: one conversation with its tools, metadata, probes and the compactions it already went through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Message, ToolDefinition


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about a conversation, its gold answer and the evidence for it.

    Parameters
    ----------
    id, kind
        Stable name, and the kind of memory it tests (``fact``, ``constraint``, ``decision``, ...).
    question
        Asked as an extra user message on a fork that leaves no trace.
    gold
        The accepted answers; the first is the canonical one.
    evidence
        Spans of text; a probe's evidence is visible as far as they stand verbatim in what is sent.
    after_message
        Asked when the first ``after_message`` messages exist; ``None`` means after the last.
    source_message
        Index of the message that first stated the fact; ages are measured from it.
    stale
        Values that were right once and have been superseded: an answer that states one is wrong.
    """

    id: str
    kind: str
    question: str
    gold: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    after_message: int | None = None
    source_message: int | None = None
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedCompaction:
    """A compaction that the recording agent made itself: later calls did not see all that stands before it.

    Parameters
    ----------
    position
        How many messages of the transcript precede it. What the agent put in their place, when the log says so, follows
        as messages whose ``source`` is ``summary``.
    trigger
        As the log names it (``auto``, ``manual``, ...); empty when it does not.
    tokens_before, tokens_after
        Size of the context as the log states it; ``None`` when it does not.
    """

    position: int
    trigger: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """One recorded or synthetic conversation, ready to replay.

    ``warnings`` counts what was accepted but odd, by kind (``reused_call_id``, ``unanswered_call``, ...).
    ``format`` names the importer that read it and ``origin`` the file and line it came from.
    ``compactions`` are those of the recording agent, in order.
    """

    id: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    probes: tuple[Probe, ...] = ()
    meta: Mapping[str, JSON] = field(default_factory=dict)
    warnings: Mapping[str, int] = field(default_factory=dict)
    format: str = ""
    origin: str = ""
    compactions: tuple[RecordedCompaction, ...] = ()
    memo: dict[object, object] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Derived values (its numbered log); never part of what a transcript is."""

    @property
    def log(self) -> Log:
        """The messages, numbered once and shared by every arm that replays them; not to be appended to."""
        found = self.memo.get("log")
        if found is None:
            found = self.memo["log"] = Log(self.messages)
        return cast("Log", found)

    @property
    def append_only(self) -> bool:
        """Whether every recorded call saw all earlier messages: no compaction in the log hides any."""
        return not self.compactions
