"""langmem's summarize_messages: a running summary that new overflow is merged into, beside an untouched history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from compaction_lab.conversation.context import Edit, Placed
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.frameworks.langchain_summary import last_tokens
from compaction_lab.strategies.memory import remembered
from compaction_lab.strategies.pins import unpinned
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import INSTRUCTION, UPDATE_INSTRUCTION, Acceptance, Answering, Wording, answer

PREFIX = "Summary of the conversation so far: "


@remembered
class Running(NamedTuple):
    """Memory of a running summary: its text, how many messages it covers, and the same as the next call counts them."""

    text: str
    hidden: int
    covered: int


@register("langmem/summarize_messages", semantics=1)
@dataclass(frozen=True, slots=True)
class SummarizeMessages:
    """Merge what overflows into a running summary, shown as a system message (mechanism M22; langmem 0.0.30).

    Parameters
    ----------
    max_tokens
        Tokens that system message, summary and the rest may have after a summary; also what the summariser is shown.
    max_tokens_before_summary
        Tokens of messages not yet summarised that start a summary; ``None``: ``max_tokens``.
    max_summary_tokens
        Room reserved for the summary; not asked of the summariser.
    initial_summary_prompt, existing_summary_prompt
        ``None``: the lab's own.
    """

    max_tokens: int
    max_tokens_before_summary: int | None = None
    max_summary_tokens: int = 256
    initial_summary_prompt: str | None = None
    existing_summary_prompt: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_tokens", 1)
        if self.max_summary_tokens >= self.max_tokens:
            raise ConfigurationError(
                f"langmem: max_summary_tokens={self.max_summary_tokens} must be less than max_tokens={self.max_tokens}"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Show the running summary, merged with what has overflowed since."""
        if self._rests(situation):
            return Compaction(base="last")
        entries = tuple(situation.context.entries())
        count = situation.counter.message
        head = 1 if entries and entries[0].message.role == "system" and entries[0].message.source != "summary" else 0
        rest = entries[head:]
        running = situation.memory if isinstance(situation.memory, Running) else None
        room = self.max_tokens - self.max_summary_tokens - sum(count(entry.message) for entry in entries[:head])
        done = running.covered if running else 0
        stop = self._overflow(rest, done, room, situation)
        outcome = "ok"
        if stop is not None:
            old = _with_results(rest, done, stop)
            text, refused = yield from self._merged(old, running, situation)
            if refused:
                outcome = refused
            else:
                last = rest.index(old[-1]) + 1
                running = Running(text, done + len(old), last)
        if running is None:
            return Compaction(outcome=outcome)
        hidden = running.hidden if stop is not None and outcome == "ok" else running.covered
        return self._shown(unpinned(situation.context, rest[:hidden]), running, outcome)

    def _rests(self, situation: Situation) -> bool:
        """Whether the previous result can stand: too little has come since the last summary for another."""
        last, running = situation.last, situation.memory
        if last is None or (isinstance(running, Running) and running.hidden != running.covered):
            return False
        # What the system message and the summary weigh is counted too: it only means looking more closely sooner.
        before = self.max_tokens if self.max_tokens_before_summary is None else self.max_tokens_before_summary
        return last.tokens(situation.counter) < before

    def _overflow(self, rest: tuple[Placed, ...], done: int, room: int, situation: Situation) -> int | None:
        """Return the index of the message at which enough has come together and what follows fits."""
        count = situation.counter.message
        before = self.max_tokens if self.max_tokens_before_summary is None else self.max_tokens_before_summary
        total = sum(count(entry.message) for entry in rest[done:])
        tokens = 0
        for at in range(done, len(rest)):
            tokens += count(rest[at].message)
            if tokens >= before and total - tokens <= room:
                return at
        return None

    def _merged(self, old: tuple[Placed, ...], running: Running | None, situation: Situation) -> Answering:
        count = situation.counter.message
        initial = self.initial_summary_prompt or INSTRUCTION
        wording = Wording(initial, self.existing_summary_prompt or UPDATE_INSTRUCTION, "", max_summary_tokens=None)
        most = self.max_tokens
        if running is not None:
            most -= count(Wording(role="system", prefix="").message(running.text))
        shown = old
        if sum(count(entry.message) for entry in old) > most:
            shown = last_tokens(old, most, situation, start_on="user", include_system=False) or old
        reading = Reading()
        transcript = reading.transcript(reading.messages(situation.context, shown), situation.counter)
        request = wording.request(transcript.text, running.text if running else "")
        return answer(request, Acceptance(only_if_shorter=False))

    def _shown(self, old: tuple[Placed, ...], running: Running, outcome: str) -> Compaction:
        gone = tuple(entry.key for entry in old)
        if not gone:
            return Compaction(memory=running, outcome=outcome)
        summary = Wording(prefix=PREFIX, role="system").message(running.text)
        new = Placed((gone[-1][0], gone[-1][1] + 1), summary)
        return Compaction((Edit("summarised", gone, new),), running, reason=f"{len(gone)} messages", outcome=outcome)


def _with_results(rest: tuple[Placed, ...], done: int, stop: int) -> tuple[Placed, ...]:
    """Return what is summarised: up to a message, and where that made calls, their results wherever they stand."""
    last = rest[stop].message
    results = {}
    for entry in rest[done:]:
        if entry.message.role == "tool" and entry.message.call_id:
            results[entry.message.call_id] = entry
    answers = [results[call.id] for call in last.calls if last.role == "assistant" and call.id in results]
    return (*rest[done : stop + 1], *answers)
