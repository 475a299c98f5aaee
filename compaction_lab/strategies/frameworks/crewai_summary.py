"""CrewAI's respect_context_window: everything but system messages is summarised in chunks into one user message."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compaction_lab.conversation.context import Placed
from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.pins import unpinned
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import register
from compaction_lab.strategies.summaries import INSTRUCTION, Acceptance, Span, Wording, continuing, placed
from compaction_lab.strategies.triggers import Overflow, known_window

USABLE = 0.85
SPLIT = 0.75
AT_A_TIME = 4
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
PREFIX = "What has been done so far, in summary:\n"


@register("crewai/summarize_messages", semantics=1)
@dataclass(frozen=True, slots=True)
class SummarizeMessages:
    """On overflow, summarise all but the system messages chunk by chunk (mechanism M24; crewai 1.15.30).

    Nothing recent survives verbatim; at most four chunks are summarised at a time.

    Parameters
    ----------
    context_window
        Usable tokens of one summary request; ``None``: 85 % of the run's window.
    prompt
        ``None``: the lab's own.
    always
        Act whenever asked, as the function does.
    """

    context_window: int | None = None
    prompt: str | None = None
    always: bool = False

    def __call__(self, situation: Situation) -> Steps:
        """Summarise on overflow."""
        return continuing(self._summarize, situation)

    def _summarize(self, situation: Situation) -> Steps:
        if not (self.always or Overflow()(situation)):
            return Compaction()
        entries = list(situation.context.entries())
        work = tuple(e for e in entries if e.message.role != "system" or not is_system(e.message))
        work = unpinned(situation.context, work)
        if not work:
            return Compaction()
        window = self.context_window
        if window is None:
            window = int(known_window(situation, None, "crewai/summarize_messages") * USABLE)
        wording = Wording(self.prompt or INSTRUCTION, prefix=PREFIX, max_summary_tokens=None)
        chunks = self._chunks(work, wording, window, situation)
        if chunks is None:
            return Compaction(outcome="rejected: the summary prompt alone exceeds the window")
        texts: list[str] = []
        accepts = Acceptance(only_if_shorter=False)
        for at in range(0, len(chunks), AT_A_TIME):
            requests = tuple(wording.request(_text(chunk, situation)) for chunk in chunks[at : at + AT_A_TIME])
            replies = yield requests
            for reply in replies:
                if refused := accepts.refusal(reply):
                    return Compaction(outcome=refused)
                found = _SUMMARY.search(reply.text)
                texts.append((found[1] if found else reply.text).strip())
        return placed(situation, Span(work), wording.message("\n\n".join(texts)), accepts)

    def _chunks(
        self, work: tuple[Placed, ...], wording: Wording, window: int, situation: Situation
    ) -> list[list[Message]] | None:
        """Pack messages greedily; one too long for a request of its own is cut to pieces."""
        count = situation.counter.message

        def tokens(chunk: list[Message]) -> int:
            return sum(map(count, wording.request(_text(chunk, situation)).messages))

        if tokens([]) > window:
            return None
        chunks: list[list[Message]] = []
        current: list[Message] = []
        for entry in work:
            message = entry.message
            if tokens([*current, message]) <= window:
                current.append(message)
                continue
            if current:
                chunks.append(current)
                current = []
            for piece in _pieces(message, tokens([message]), tokens([]), window):
                if current and tokens([*current, piece]) > window:
                    chunks.append(current)
                    current = []
                current.append(piece)
        if current:
            chunks.append(current)
        return chunks


def _text(chunk: list[Message], situation: Situation) -> str:
    return Reading().transcript(chunk, situation.counter).text


def _pieces(message: Message, tokens: int, base: int, window: int) -> list[Message]:
    """Return a message whole, or cut into pieces that take 75 % of the room."""
    if tokens <= window or not message.text or tokens <= base:
        return [message]
    room = max(1, int((window - base) * SPLIT))
    length = max(1, len(message.text) * room // (tokens - base))
    text = message.text
    return [
        Message(message.role, (Text(text[at : at + length]),), call_id=message.call_id, name=message.name)
        for at in range(0, len(text), length)
    ]
