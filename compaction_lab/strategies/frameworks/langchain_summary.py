"""LangChain's SummarizationMiddleware: trigger clauses, cut, and the last tokens that its summariser is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from compaction_lab.conversation.context import Placed
from compaction_lab.conversation.log import is_system
from compaction_lab.conversation.messages import JSON, Message, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import register
from compaction_lab.strategies.spans import Entries, leading_system, reading_only, span
from compaction_lab.strategies.summaries import INSTRUCTION, Acceptance, Wording, continuing, placed, summarized

KINDS = ("tokens", "messages", "fraction")
UNREADABLE = "Previous conversation was too long to summarize."
PREFIX = "Here is a summary of the conversation to date:\n\n"


@register("langchain/summarization_middleware", semantics=1)
@dataclass(frozen=True, slots=True)
class SummarizationMiddleware:
    """Summarise everything before the kept tail once a trigger clause is met (langchain 1.5.2).

    The leading system message is not part of the middleware's history. Tokens are those of the messages, tools and
    overhead not included.

    Parameters
    ----------
    trigger
        ``{tokens: n}``, ``{messages: n}``, ``{fraction: x}``; several keys must all be met, of a list one is enough;
        ``None``: never. Reaching the value suffices.
    keep
        How much stays, in one of the three units; a cut inside a tool run moves back to the message that called.
    summary_prompt
        With ``{messages}``; ``None``: the lab's own.
    trim_tokens_to_summarize
        The summariser sees only the last so many tokens, from a user message on; ``None``: all.
    repair
        What happens when nothing fits: the middleware writes a canned text and the history is gone; repaired, the
        newest messages that fit are shown, user message or not.
    """

    trigger: object = None
    keep: Mapping[str, JSON] | None = None
    summary_prompt: str | None = None
    trim_tokens_to_summarize: int | None = 4000
    repair: bool = False

    def __post_init__(self) -> None:
        """Check trigger and keep as the middleware does."""
        for clause in self._clauses():
            for kind, value in clause.items():
                _check(kind, value, "trigger")
        if len(self._kept()) != 1:
            raise ConfigurationError(f"langchain: keep={self.keep!r}; expected one of {', '.join(KINDS)}")
        for kind, value in self._kept().items():
            _check(kind, value, "keep")

    def __call__(self, situation: Situation) -> Steps:
        """Ask the trigger, find the cut, summarise what is before it."""
        return continuing(self._summarize, situation)

    def _summarize(self, situation: Situation) -> Compaction | Steps:
        every = list(situation.context.entries())
        entries = every[leading_system(every) :]
        if not any(self._met(clause, entries, situation) for clause in self._clauses()):
            return Compaction()
        cut = self._cut(entries, situation)
        if cut <= 0:
            return Compaction()
        old = span(entries, 0, cut)
        prompt = self.summary_prompt or INSTRUCTION
        wording = Wording(prompt, prompt, PREFIX, max_summary_tokens=None)
        accepts = Acceptance(only_if_shorter=False)
        shown = self._trimmed(old.hidden, situation)
        if not shown:
            return placed(situation, old, wording.message(UNREADABLE), accepts, len(old.hidden))
        return summarized(situation, reading_only(old, shown), wording, Reading(), accepts)

    def _clauses(self) -> list[Mapping[str, JSON]]:
        if self.trigger is None:
            return []
        found = self.trigger if isinstance(self.trigger, (list, tuple)) else [self.trigger]
        for clause in found:
            if not isinstance(clause, Mapping) or not clause:
                raise ConfigurationError(f"langchain: trigger={clause!r}; expected {{tokens: 4000}} or a list of such")
        return [cast("Mapping[str, JSON]", clause) for clause in found]

    def _kept(self) -> Mapping[str, JSON]:
        return {"messages": 20} if self.keep is None else self.keep

    def _met(self, clause: Mapping[str, JSON], entries: Entries, situation: Situation) -> bool:
        tokens = sum(situation.counter.message(entry.message) for entry in entries)
        for kind, value in clause.items():
            amount = cast("float", value)
            if kind == "messages":
                if len(entries) < amount:
                    return False
                continue
            if kind == "fraction":
                if situation.window_tokens is None:
                    return False
                amount = max(1, int(situation.window_tokens * amount))
            if tokens < amount and _reported(entries) < amount:
                return False
        return True

    def _cut(self, entries: Entries, situation: Situation) -> int:
        ((kind, value),) = self._kept().items()
        if kind == "messages":
            at = len(entries) - int(cast("int", value))
            return 0 if at <= 0 else _safe(entries, at)
        budget = int(cast("float", value))
        if kind == "fraction":
            if situation.window_tokens is None:
                return _safe(entries, max(0, len(entries) - 20))
            budget = int(situation.window_tokens * cast("float", value))
        return _token_cut(entries, max(1, budget), situation)

    def _trimmed(self, old: tuple[Placed, ...], situation: Situation) -> tuple[Placed, ...]:
        if self.trim_tokens_to_summarize is None:
            return old
        shown = last_tokens(old, self.trim_tokens_to_summarize, situation, start_on="user")
        if not any(not is_system(entry.message) for entry in shown) and self.repair:
            return last_tokens(old, self.trim_tokens_to_summarize, situation, start_on=None)
        return shown


def last_tokens(
    entries: tuple[Placed, ...],
    max_tokens: int,
    situation: Situation,
    *,
    start_on: str | None,
    include_system: bool = True,
) -> tuple[Placed, ...]:
    """Return the newest messages that fit, the oldest of them cut to its last lines, from a role on.

    ``trim_messages(strategy="last", allow_partial=True)`` of langchain-core 1.8.3; a system message in front is kept.
    """
    count = situation.counter.message
    head: tuple[Placed, ...] = ()
    if include_system and entries and entries[0].message.role == "system":
        head, entries = entries[:1], entries[1:]
    budget = max(0, max_tokens - sum(count(entry.message) for entry in head))
    at, left = len(entries), budget
    while at and count(entries[at - 1].message) <= left:
        at -= 1
        left -= count(entries[at].message)
    kept = list(entries[at:])
    if at and (partial := _last_lines(entries[at - 1], left, situation)) is not None:
        kept.insert(0, partial)
    if start_on is not None:
        while kept and kept[0].message.role != start_on:
            kept.pop(0)
    return (*head, *kept)


def _last_lines(entry: Placed, budget: int, situation: Situation) -> Placed | None:
    message = entry.message
    lines = message.text.splitlines(keepends=True) if "\n" in message.text else [message.text]
    for skipped in range(1, len(lines)):
        shorter = Message(
            message.role,
            (Text("".join(lines[skipped:])),),
            message.calls,
            message.call_id,
            name=message.name,
            source=message.source,
        )
        if situation.counter.message(shorter) <= budget:
            return Placed(entry.key, shorter)
    return None


def _reported(entries: Entries) -> int:
    """Return the tokens that the provider reported for the newest assistant message, or -1."""
    for entry in reversed(entries):
        if entry.message.role == "assistant":
            usage = entry.message.usage
            return -1 if usage is None else usage.input_tokens + usage.output_tokens + usage.reasoning_tokens
    return -1


def _token_cut(entries: Entries, budget: int, situation: Situation) -> int:
    counts = [situation.counter.message(entry.message) for entry in entries]
    if sum(counts) <= budget:
        return 0
    cut, total = len(entries), 0
    while cut and total + counts[cut - 1] <= budget:
        cut -= 1
        total += counts[cut]
    if cut >= len(entries):
        if len(entries) == 1:
            return 0
        cut = len(entries) - 1
    return _safe(entries, cut)


def _safe(entries: Entries, cut: int) -> int:
    """Move a cut at a tool result back to the newest message that made one of the run's calls, else past the run."""
    if cut >= len(entries) or entries[cut].message.role != "tool":
        return cut
    end = cut
    ids = set()
    while end < len(entries) and entries[end].message.role == "tool":
        ids.add(entries[end].message.call_id)
        end += 1
    for at in range(cut - 1, -1, -1):
        if any(call.id in ids for call in entries[at].message.calls):
            return at
    return end


def _check(kind: str, value: JSON, where: str) -> None:
    if kind not in KINDS:
        raise ConfigurationError(f"langchain: {where}: {kind!r}; expected one of {', '.join(KINDS)}")
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
    if number <= 0 or (kind == "fraction" and number > 1):
        expected = "a share above 0 and at most 1" if kind == "fraction" else "a number above 0"
        raise ConfigurationError(f"langchain: {where}: {kind}={value!r}; expected {expected}")
