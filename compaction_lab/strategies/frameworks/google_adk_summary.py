"""Google ADK's EventsCompactionConfig: a token threshold, or every few invocations with overlap."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Placed
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.base import Compaction, Occasion, Situation, Steps
from compaction_lab.strategies.pins import unpinned
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import Entries, is_summary, leading_system, result_units
from compaction_lab.strategies.summaries import (
    INSTRUCTION,
    Acceptance,
    Span,
    Wording,
    continuing,
    summarized,
)
from compaction_lab.strategies.triggers import anchored_tokens


@dataclass(frozen=True, slots=True)
class _Event:
    """One event: a message, or the results of one batch together, with its invocation, calls and answers."""

    entries: tuple[Placed, ...]
    invocation: int
    calls: frozenset[str]
    answers: frozenset[str]


@register("google_adk/events_compaction_token", semantics=1)
@dataclass(frozen=True, slots=True)
class TokenThreshold:
    """Summarise all but the newest events once a token threshold is reached (google-adk 2.13.0).

    The range ends where no call is left open, and is refused when it cannot save more than the last summary cost. An
    earlier summary is read again in front and replaced. The instruction is not part of the events.

    Parameters
    ----------
    token_threshold
        Act when the last prompt (as reported, else estimated) has at least this many tokens.
    event_retention_size
        Newest events that stay; results of one batch are one event.
    prompt
        ``None``: the lab's own.
    """

    token_threshold: int
    event_retention_size: int
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "token_threshold", 1)
        at_least(self, "event_retention_size", 0)

    @property
    def default_when(self) -> Occasion:
        """Compaction runs when an invocation is over."""
        return "after_turn"

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when the threshold is reached."""
        return continuing(self._compact, situation)

    def _compact(self, situation: Situation) -> Compaction | Steps:
        entries = _without_instruction(situation)
        if self._tokens(situation, entries) < self.token_threshold:
            return Compaction()
        events = _events(entries, situation.context.log)
        fresh = [event for event in events if not is_summary(event.entries[0].message)]
        if len(fresh) <= self.event_retention_size:
            return Compaction()
        old = fresh if not self.event_retention_size else fresh[: _safe_split(fresh, self.event_retention_size)]
        old = self_contained(old, situation)
        if not old:
            return Compaction()
        earlier = [entry for entry in entries if is_summary(entry.message)]
        hidden = (*earlier, *(entry for event in old for entry in event.entries))
        return _summarized(situation, entries, hidden, earlier[-1:], self.prompt)

    def _tokens(self, situation: Situation, entries: Entries) -> int:
        """Return the last prompt's tokens as reported; without a report those of the contents, instruction left out."""
        if situation.usage is not None:
            return anchored_tokens(situation)
        return sum(situation.counter.message(entry.message) for entry in entries)


@register("google_adk/events_compaction_interval", semantics=1)
@dataclass(frozen=True, slots=True)
class Interval:
    """Summarise every few invocations, together with some of those before them (mechanism M23; google-adk 2.13.0).

    The summaries overlap and stay side by side; the summariser reads the original events of the overlap.

    Parameters
    ----------
    compaction_interval
        Invocations since the last summary that start the next.
    overlap_size
        Earlier invocations that it reads again.
    prompt
        ``None``: the lab's own.
    """

    compaction_interval: int
    overlap_size: int
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "compaction_interval", 1)
        at_least(self, "overlap_size", 0)

    @property
    def default_when(self) -> Occasion:
        """Compaction runs when an invocation is over."""
        return "after_turn"

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when enough invocations have gone by."""
        return continuing(self._compact, situation)

    def _compact(self, situation: Situation) -> Compaction | Steps:
        log, stop = situation.context.log, situation.context.stop
        if log.turn_at(stop) + 1 < self.compaction_interval:
            return Compaction()  # at once, and not after reading a long history: it is asked at every overflow
        entries = _without_instruction(situation)
        covered = max((entry.key[0] for entry in entries if is_summary(entry.message)), default=-1)
        whole = [Placed((at, 0), message) for at, message in enumerate(log.messages[:stop])]
        events = _events(whole[leading_system(whole) :], log)
        invocations = list(dict.fromkeys(event.invocation for event in events))
        newest = {event.invocation: event.entries[-1].key[0] for event in events}
        new = [number for number in invocations if newest[number] > covered]
        if len(new) < self.compaction_interval:
            return Compaction()
        first = invocations[max(0, invocations.index(new[0]) - self.overlap_size)]
        old = self_contained([event for event in events if first <= event.invocation <= new[-1]], situation)
        if not old:
            return Compaction()
        read = tuple(entry for event in old for entry in event.entries)
        reach = {entry.key for entry in read}
        # A summary whose whole range the new one covers goes with it.
        known = situation.memory if isinstance(situation.memory, tuple) else ()
        covers = (read[0].key[0], read[-1].key[0])
        inside = {stop for start, stop in known if covers[0] <= start and stop <= covers[1]}
        gone = [e for e in entries if e.key in reach or (is_summary(e.message) and e.key[0] in inside)]
        ranges = (*(known_range for known_range in known if known_range[1] not in inside), covers)
        return _remembering(ranges, _summarized(situation, entries, tuple(gone), (), self.prompt, read))


def _remembering(ranges: tuple[tuple[int, int], ...], acting: Compaction | Steps) -> Steps:
    """Keep the log ranges that the visible summaries cover."""
    done = acting if isinstance(acting, Compaction) else (yield from acting)
    return replace(done, memory=ranges) if done.edits else done


def _summarized(
    situation: Situation,
    entries: Entries,
    hidden: tuple[Placed, ...],
    seed: Entries,
    prompt: str | None,
    read: tuple[Placed, ...] | None = None,
) -> Compaction | Steps:
    count = situation.counter.message
    known = [entry for entry in entries if is_summary(entry.message)]
    hidden = tuple(sorted(unpinned(situation.context, hidden), key=lambda entry: entry.key))
    if not hidden:
        return Compaction()
    last = count(known[-1].message) if known else 0
    if sum(count(entry.message) for entry in hidden) <= last:
        return Compaction(outcome="rejected: the range saves no more than the last summary cost")
    going = {entry.key for entry in hidden}
    following = next((e.key for e in entries if e.key > hidden[-1].key and e.key not in going), None)
    shown = read if read is not None else (*seed, *(entry for entry in hidden if not is_summary(entry.message)))
    instruction = prompt or INSTRUCTION
    wording = Wording(instruction, instruction, "", role="assistant", max_summary_tokens=None)
    return summarized(situation, Span(hidden, following, shown), wording, Reading(), Acceptance(only_if_shorter=False))


def _without_instruction(situation: Situation) -> list[Placed]:
    entries = list(situation.context.entries())
    return entries[leading_system(entries) :]


def _events(entries: Entries, log: Log) -> list[_Event]:
    events = []
    for start, stop in result_units(entries):
        unit = tuple(entries[start:stop])
        messages: list[Message] = [entry.message for entry in unit]
        calls = frozenset(call.id for message in messages for call in message.calls if call.id)
        answers = frozenset(message.call_id for message in messages if message.role == "tool" and message.call_id)
        events.append(_Event(unit, log.turns[max(unit[0].key[0], 0)], calls, answers))
    return events


def _safe_split(events: list[_Event], retained: int) -> int:
    """Return where the retained events begin, moved earlier so that no answer among them lacks its call."""
    unmatched: set[str] = set()
    for at in range(len(events) - 1, -1, -1):
        unmatched |= events[at].answers
        unmatched -= events[at].calls
        if not unmatched and at <= len(events) - retained:
            return at
    return 0


def self_contained(events: list[_Event], situation: Situation) -> list[_Event]:
    """Return the longest prefix at whose end no call is open.

    Where a call that nothing can answer any more stands in the way, it is ignored in a second pass: nothing answers it
    in the whole log, and it is not of the newest invocation.
    """
    safe = _balanced(events, frozenset())
    if safe == len(events):
        return events
    if safe and events[safe - 1].invocation != events[safe].invocation:
        return events[:safe]
    log, stop = situation.context.log, situation.context.stop
    whole = _events([Placed((at, 0), message) for at, message in enumerate(log.messages[:stop])], log)
    answered = frozenset().union(*(event.answers for event in whole))
    newest = whole[-1].invocation
    dead = frozenset().union(*(event.calls for event in events if event.invocation != newest)) - answered
    return events[: max(safe, _balanced(events, dead))] if dead else events[:safe]


def _balanced(events: list[_Event], dead: frozenset[str]) -> int:
    open_calls: set[str] = set()
    safe = 0
    for at, event in enumerate(events):
        open_calls -= event.answers
        open_calls |= event.calls - dead
        if not open_calls:
            safe = at + 1
    return safe
