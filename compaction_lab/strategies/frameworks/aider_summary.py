"""Aider's ChatSummary: the head of the finished messages is summarised, again and again until all of it fits."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from compaction_lab.conversation.context import Edit, Key, Placed
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.strategies.base import Compaction, Replies, Requests, Situation, Steps
from compaction_lab.strategies.pins import outside, unpinned
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import leading_system
from compaction_lab.strategies.summaries import INSTRUCTION, Acceptance, Wording, answer, continuing, free_keys

FEWEST_MESSAGES = 4
DEEPEST = 3
RESERVE = 512
UNKNOWN_WINDOW = 4096
PREFIX = "Of what we spoke about before, I note: "


@register("aider/chat_summary", semantics=1)
@dataclass(frozen=True, slots=True)
class ChatSummary:
    """Summarise the head so that summary and tail stay below ``max_tokens`` (aider-chat 0.86.2).

    The tail is what fits in half the budget, the head ends with an assistant message, and the summariser is shown the
    texts of user and assistant only. Head messages beyond its window are lost unread.

    Parameters
    ----------
    max_tokens
        Act when the messages have more tokens; the framework gives 1,024 for small models.
    max_input_tokens
        The summarising model's window, 512 tokens of which are reserved; ``None``: the run's window, else 4,096.
    prompt
        ``None``: the lab's own.
    repair
        Show the summariser the head clipped evenly instead of dropping what is beyond its window.
    """

    max_tokens: int = 1024
    max_input_tokens: int | None = None
    prompt: str | None = None
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_tokens", 1)

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when the messages are too big."""
        return continuing(self._summarize, situation)

    def _summarize(self, situation: Situation) -> Steps:
        every = list(situation.context.entries())
        entries = unpinned(situation.context, every[leading_system(every) :])
        count = situation.counter.message
        if sum(count(entry.message) for entry in entries) <= self.max_tokens:
            return Compaction()
        work = _Work(entries)
        outcome = yield from self._reduce(work, situation)
        if outcome:
            return Compaction(outcome=outcome)
        kept = {entry.key for entry in work.entries}
        hidden = tuple(entry.key for entry in entries if entry.key not in kept)
        new = [entry.message for entry in work.entries if entry.key == _NEW]
        following = next((entry.key for entry in work.entries if entry.key != _NEW), None)
        (key,) = free_keys(situation.context, hidden, outside(situation.context, following), 1)
        edits = [Edit("summarised", hidden, Placed(key, new[0]))]
        if work.entries[-1].message.role != "assistant":
            edits.append(Edit("inserted", (), self._okay(situation, key)))
        reason = f"{len(hidden)} messages summarised"
        if work.unread:
            reason += f", {work.unread} of them unread by the summarizer"
        return Compaction(tuple(edits), reason=reason)

    def _reduce(self, work: _Work, situation: Situation) -> Generator[Requests, Replies, str]:
        count = situation.counter.message
        for depth in range(DEEPEST + 2):
            entries = work.entries
            split = _split(entries, [count(entry.message) for entry in entries], self.max_tokens // 2)
            if len(entries) <= FEWEST_MESSAGES or depth > DEEPEST or split <= FEWEST_MESSAGES:
                return (yield from self._written(work, entries, (), situation))
            window = (self.max_input_tokens or situation.window_tokens or UNKNOWN_WINDOW) - RESERVE
            head, left = [], window
            for entry in entries[:split]:
                left -= count(entry.message)
                if left < 0 and not self.repair:
                    break
                head.append(entry)
            work.unread += split - len(head)
            outcome = yield from self._written(work, tuple(head), entries[split:], situation)
            if outcome or sum(count(entry.message) for entry in work.entries) < self.max_tokens:
                return outcome
        return ""

    def _written(
        self, work: _Work, head: tuple[Placed, ...], tail: tuple[Placed, ...], situation: Situation
    ) -> Generator[Requests, Replies, str]:
        prompt = self.prompt or INSTRUCTION
        wording = Wording(prompt, prompt, PREFIX, max_summary_tokens=None)
        window = (self.max_input_tokens or situation.window_tokens or UNKNOWN_WINDOW) - RESERVE
        reading = Reading(outputs=False, calls=False, input_tokens=window if self.repair else None, fit="middle_out")
        shown = [entry.message for entry in head if entry.message.role in ("user", "assistant")]
        request = wording.request(reading.transcript(shown, situation.counter).text)
        text, outcome = yield from answer(request, Acceptance(only_if_shorter=False))
        work.entries = (Placed(_NEW, wording.message(text)), *tail)
        return outcome

    def _okay(self, situation: Situation, summary: Key) -> Placed:
        context = situation.context
        key = max(context.free_key(context.stop - 1), (summary[0], summary[1] + 1))
        return Placed(key, Message("assistant", (Text("Ok."),), source="injected"))


_NEW: Key = (-2, 0)
"""Stands for the summary until its place is known."""


@dataclass(slots=True)
class _Work:
    """The list while it is being reduced, and how many of its messages no summariser has read."""

    entries: tuple[Placed, ...]
    unread: int = 0


def _split(entries: tuple[Placed, ...], tokens: list[int], budget: int) -> int:
    """Return where the tail begins: what fits in the budget, the head moved back to end with an assistant message."""
    at, used = len(entries), 0
    while at and used + tokens[at - 1] < budget:
        at -= 1
        used += tokens[at]
    while at > 1 and entries[at - 1].message.role != "assistant":
        at -= 1
    return at
