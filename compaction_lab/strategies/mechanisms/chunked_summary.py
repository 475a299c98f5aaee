"""Summaries of pieces, then a summary of the summaries, until one is left (mechanism M24)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

from compaction_lab.strategies.base import Compaction, Replies, Requests, Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import KeepUnit, kept_from
from compaction_lab.strategies.reading import clipped, rendered, text_tokens
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import (
    INSTRUCTION,
    Acceptance,
    Span,
    SummaryRole,
    Wording,
    behind,
    continuing,
    placed,
)


@register("chunked_summary", semantics=1)
@dataclass(frozen=True, slots=True)
class ChunkedSummary:
    """Summarise what is old in chunks that fit the summariser, and merge the summaries.

    Parameters
    ----------
    chunk_tokens
        Most tokens of one chunk; a single message that is longer is a chunk of its own, clipped.
    keep, unit
        What stays verbatim, as in ``summarize``.
    at_a_time
        Chunks asked for at once.
    merge
        ``join``: the summaries stand one after the other; ``summary``: they are summarised again, ``depth`` times at
        most, until they fit one chunk.
    depth
        Most rounds of merging.
    role, prompt, max_summary_tokens, only_if_shorter
        As in ``summarize``.
    """

    chunk_tokens: int = 4000
    keep: float = 4
    unit: KeepUnit = "turn"
    at_a_time: int = 4
    merge: Literal["summary", "join"] = "summary"
    depth: int = 3
    role: SummaryRole = "user"
    prompt: str | None = None
    max_summary_tokens: int | None = 500
    only_if_shorter: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "chunk_tokens", 1)
        at_least(self, "at_a_time", 1)
        at_least(self, "depth", 1)

    def __call__(self, situation: Situation) -> Steps:
        """Summarise what is old."""
        return continuing(self._summarize, situation)

    def _summarize(self, situation: Situation) -> Steps:
        context = situation.context
        cut = kept_from(situation, self.unit, self.keep)
        old = tuple(e for e in context.entries(None, (cut, 0)) if situation.removable(e.key, e.message, cut))
        if all(entry.message.source == "summary" for entry in old):
            return Compaction()
        prompt = self.prompt or INSTRUCTION
        wording = Wording(prompt, prompt, role=self.role, max_summary_tokens=self.max_summary_tokens)
        texts = [rendered(entry.message) for entry in old]
        for round_number in range(1 + self.depth):
            texts, outcome = yield from self._round([text for text in texts if text], wording, situation)
            if outcome:
                return Compaction(outcome=outcome)
            together = sum(text_tokens(text, situation.counter) for text in texts)
            if len(texts) == 1 or self.merge == "join" or (round_number and together <= self.chunk_tokens):
                break
        span = Span(old, behind(context, old[-1].key))
        return placed(situation, span, wording.message("\n\n".join(texts)), Acceptance(self.only_if_shorter))

    def _round(
        self, texts: list[str], wording: Wording, situation: Situation
    ) -> Generator[Requests, Replies, tuple[list[str], str]]:
        chunks = self._chunks(texts, situation)
        made: list[str] = []
        for at in range(0, len(chunks), self.at_a_time):
            replies = yield tuple(wording.request("\n".join(chunk)) for chunk in chunks[at : at + self.at_a_time])
            for reply in replies:
                if refused := Acceptance().refusal(reply):
                    return [], refused
                made.append(reply.text.strip())
        return made, ""

    def _chunks(self, texts: list[str], situation: Situation) -> list[list[str]]:
        chunks: list[list[str]] = []
        room = 0
        for text in texts:
            tokens = text_tokens(text, situation.counter)
            if not chunks or tokens > room:
                chunks.append([])
                room = self.chunk_tokens
            if tokens > self.chunk_tokens:
                chunks[-1].append(clipped(text, len(text) * self.chunk_tokens // tokens))
            else:
                chunks[-1].append(text)
            room -= tokens
        return chunks
