"""Haystack's SummarizationCompactor: four tiers, the fewest oldest messages at a time, until the target is met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Edit
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.pins import held
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import Entries, is_summary, last_where, leading_system
from compaction_lab.strategies.summaries import INSTRUCTION, Acceptance, Span, Wording, continuing, summarized
from compaction_lab.strategies.triggers import known_window


@register("haystack/summarization_compactor", semantics=1)
@dataclass(frozen=True, slots=True)
class SummarizationCompactor:
    """Summarise from ``compact_at`` of the window down to ``compact_to`` (haystack-ai 3.4.1, with its CompactionHook).

    First complete turns before the newest user message, then their summaries, then steps of the current task, then
    their summaries; always as few of the oldest as make room for a summary of the expected size. A summary that does
    not shrink the conversation ends the round.

    Parameters
    ----------
    context_window
        ``None``: the run's window.
    compact_at, compact_to
        Shares of the window at which it starts and to which it goes.
    min_keep_steps
        Newest steps of the current task that always stay.
    approximate_summary_tokens
        How long a summary is expected to be.
    summary_instruction
        ``None``: the lab's own.
    """

    context_window: int | None = None
    compact_at: float = 0.7
    compact_to: float = 0.4
    min_keep_steps: int = 1
    approximate_summary_tokens: int = 1024
    summary_instruction: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "min_keep_steps", 0)
        at_least(self, "approximate_summary_tokens", 1)
        if not 0 < self.compact_to < self.compact_at <= 1:
            raise ConfigurationError(
                f"haystack: compact_at={self.compact_at} and compact_to={self.compact_to}; expected "
                "0 < compact_to < compact_at <= 1"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Summarise tier by tier once the threshold is reached."""
        return continuing(self._compact, situation)

    def _compact(self, situation: Situation) -> Steps:
        window = self.context_window or known_window(situation, None, "haystack/summarization_compactor")
        if situation.tokens(situation.context) < window * self.compact_at:
            return Compaction()
        target = max(int(window * self.compact_to) - situation.overhead_tokens, 0)
        context, outcome = situation.context, "ok"
        edits: list[Edit] = []
        reasons: list[str] = []
        while context.tokens(situation.counter) > target:
            entries = list(context.entries())
            chosen = self._next(entries, target, situation)
            if not chosen:
                break
            now = replace(situation, context=context)
            done = yield from self._summarized(now, entries, chosen)
            if not done.edits:
                outcome = done.outcome
                break
            edits.extend(done.edits)
            reasons.append(done.reason)
            context = context.apply(done.edits)
        return Compaction(tuple(edits), reason="; ".join(reasons), outcome=outcome)

    def _summarized(self, situation: Situation, entries: Entries, chosen: list[int]) -> Steps:
        prompt = self.summary_instruction or INSTRUCTION
        wording = Wording(
            prompt, prompt, "<conversation_summary>\n", "\n</conversation_summary>", max_summary_tokens=None
        )
        old = tuple(entries[at] for at in chosen)
        # The summary stands where the oldest of them stood, though others may lie between.
        going = {entry.key for entry in old}
        first = next((e.key for e in entries[chosen[0] :] if e.key not in going), None)
        return summarized(situation, Span(old, first), wording, Reading(), Acceptance(only_if_shorter=True))

    def _next(self, entries: Entries, target: int, situation: Situation) -> list[int]:
        system = leading_system(entries)
        task = last_where(entries, lambda message: message.role == "user" and not is_summary(message))
        end = task if task >= 0 else system
        turns = _turns(entries, system, end)
        if turns:
            return self._fewest(entries, turns, target, situation)
        summaries = _summaries(entries, system, end)
        if len(summaries) > 1:
            taken = self._fewest(entries, [[at] for at in summaries], target, situation)
            return summaries[: max(len(taken), 2)]
        steps = _steps(entries, task + 1 if task >= 0 else system)
        eligible = steps[: max(len(steps) - self.min_keep_steps, 0)]
        if eligible:
            return self._fewest(entries, eligible, target, situation)
        summaries = _summaries(entries, task + 1 if task >= 0 else system, len(entries))
        if len(summaries) > 1:
            taken = self._fewest(entries, [[at] for at in summaries], target, situation)
            return summaries[: max(len(taken), 2)]
        return []

    def _fewest(self, entries: Entries, groups: Iterable[list[int]], target: int, situation: Situation) -> list[int]:
        count = situation.counter.message
        left = sum(count(entry.message) for entry in entries)
        chosen: list[int] = []
        for group in groups:
            free = [at for at in group if not held(situation.context, entries[at].key)]
            chosen.extend(free)
            left -= sum(count(entries[at].message) for at in free)
            if left + self.approximate_summary_tokens <= target:
                break
        return chosen


def _turns(entries: Entries, start: int, end: int) -> list[list[int]]:
    """Return complete turns of real users, each up to the next."""
    users = [
        at for at in range(start, end) if entries[at].message.role == "user" and not is_summary(entries[at].message)
    ]
    return [list(range(at, after)) for at, after in zip(users, [*users, end][1:], strict=True)]


def _summaries(entries: Entries, start: int, end: int) -> list[int]:
    return [at for at in range(start, end) if is_summary(entries[at].message)]


def _steps(entries: Entries, start: int) -> list[list[int]]:
    """Return assistant messages with the results that follow directly."""
    steps: list[list[int]] = []
    at = start
    while at < len(entries):
        if entries[at].message.role != "assistant":
            at += 1
            continue
        end = at + 1
        while end < len(entries) and entries[end].message.role == "tool":
            end += 1
        steps.append(list(range(at, end)))
        at = end
    return steps
