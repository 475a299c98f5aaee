"""OpenHands' condensers that ask a model: head, summary, tail; the structured one; ranking; and the SDK's own cut."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from compaction_lab.conversation.context import Edit, Placed
from compaction_lab.conversation.messages import Reasoning, user
from compaction_lab.errors import ConfigurationError
from compaction_lab.models.base import ModelRequest
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.pins import unpinned
from compaction_lab.strategies.reading import Reading, rendered
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import Entries, is_summary, leading_system
from compaction_lab.strategies.summaries import (
    INSTRUCTION,
    UPDATE_INSTRUCTION,
    Acceptance,
    Span,
    Wording,
    continuing,
    summarized,
)

STATE_FIELDS = (
    "user_context",
    "completed_tasks",
    "pending_tasks",
    "current_state",
    "files_modified",
    "function_changes",
    "data_structures",
    "tests_written",
    "tests_passing",
    "failing_tests",
    "error_messages",
    "branch_created",
    "branch_name",
    "commits_made",
    "pr_created",
    "pr_status",
    "dependencies",
    "other_relevant_context",
)
"""What the structured summary asks for, in the order of the framework's tool."""
RANKING = (
    "The next message lists the parts of an agent's session, each with its number. Sort the numbers by how much the "
    'parts matter for the next step, the most important first. Answer with JSON alone: {"ids": [...]}.'
)


def _check_sizes(max_size: int, keep_first: int) -> None:
    if keep_first < 0 or max_size < 1 or keep_first >= max_size // 2:
        raise ConfigurationError(
            f"openhands: keep_first={keep_first} with max_size={max_size}; expected 0 <= keep_first < max_size // 2"
        )


@register("openhands/llm_summarizing", semantics=1)
@dataclass(frozen=True, slots=True)
class LLMSummarizing:
    """Keep the head, fold the middle into one summary, keep the tail (openhands-ai 0.59.0; a message is an event).

    An earlier summary is shown apart and replaced.

    Parameters
    ----------
    max_size
        Act when more messages than this are visible; half of them remain.
    keep_first
        Messages at the start that stay.
    max_event_length
        Characters of one message that the summariser sees.
    prompt
        ``None``: the lab's own.
    """

    max_size: int = 100
    keep_first: int = 1
    max_event_length: int = 10_000
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        _check_sizes(self.max_size, self.keep_first)

    def __call__(self, situation: Situation) -> Steps:
        """Condense when there are too many messages."""
        return continuing(self._condense, situation)

    def _condense(self, situation: Situation) -> Compaction | Steps:
        wording = Wording(self.prompt or INSTRUCTION, self.prompt or UPDATE_INSTRUCTION, "", max_summary_tokens=None)
        return _folded(situation, self.max_size, self.keep_first, wording, self.max_event_length)


@register("openhands/structured_summary", semantics=1)
@dataclass(frozen=True, slots=True)
class StructuredSummary:
    """As llm_summarizing, with the summary as fields that the model fills by calling a tool (openhands-ai 0.59.0).

    A model that answers in text instead is taken at its word.
    """

    max_size: int = 100
    keep_first: int = 1
    max_event_length: int = 10_000
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        _check_sizes(self.max_size, self.keep_first)

    def __call__(self, situation: Situation) -> Steps:
        """Condense when there are too many messages."""
        return continuing(self._condense, situation)

    def _condense(self, situation: Situation) -> Compaction | Steps:
        wording = Wording(
            self.prompt or INSTRUCTION,
            self.prompt or UPDATE_INSTRUCTION,
            "",
            max_summary_tokens=None,
            fields=STATE_FIELDS,
            forced_tool="create_state_summary",
        )
        return _folded(situation, self.max_size, self.keep_first, wording, self.max_event_length)


def _folded(
    situation: Situation, max_size: int, keep_first: int, wording: Wording, max_event_length: int
) -> Compaction | Steps:
    """Fold what lies between head and tail; an earlier summary is shown apart and replaced."""
    view = list(situation.context.entries())
    if len(view) <= max_size:
        return Compaction()
    tail = max_size // 2 - keep_first - 1
    middle = view[keep_first : len(view) - tail] if tail else []
    forgotten = [entry for entry in unpinned(situation.context, middle) if not is_summary(entry.message)]
    if not forgotten:
        return Compaction(outcome="rejected: nothing lies between head and tail")
    earlier = [entry for entry in view if is_summary(entry.message)]
    known = wording.bare(view[keep_first].message) if is_summary(view[keep_first].message) else ""
    hidden = tuple(sorted((*forgotten, *earlier), key=lambda entry: entry.key))
    # The summary stands at the offset keep_first: before whatever pinned message the middle holds.
    going = {entry.key for entry in hidden}
    following = next((entry.key for entry in view[keep_first:] if entry.key not in going), None)
    reading = Reading(item_characters=max_event_length)
    span = Span(hidden, following, tuple(forgotten), known)
    return summarized(situation, span, wording, reading, Acceptance(only_if_shorter=False))


@register("openhands/llm_attention", semantics=1)
@dataclass(frozen=True, slots=True)
class LLMAttention:
    """Let a model rank the messages and keep the best (mechanism M30; openhands-ai 0.59.0; a message is an event).

    What is ranked is single messages, so calls and results are torn apart unless ``repair`` is on; then whole groups
    are kept, and the newest user message always.

    Parameters
    ----------
    max_size, keep_first
        As in llm_summarizing; half of ``max_size`` remains. Too short a ranking is filled up with the newest messages.
    repair
        Keep whole groups, and the newest user message.
    """

    max_size: int = 100
    keep_first: int = 1
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        _check_sizes(self.max_size, self.keep_first)

    def __call__(self, situation: Situation) -> Steps:
        """Rank when there are too many messages."""
        return continuing(self._condense, situation)

    def _condense(self, situation: Situation) -> Steps:
        view = list(situation.context.entries())
        if len(view) <= self.max_size:
            return Compaction()
        listed = "\n".join(f"<id>{at}</id> {rendered(entry.message)}" for at, entry in enumerate(view))
        request = ModelRequest((user(RANKING), user(listed)), "summarizer")
        (reply,) = yield (request,)
        if reply.error:
            return Compaction(outcome=f"rejected: ranking failed ({reply.error})")
        ranked = _ids(reply.text)
        if ranked is None:
            return Compaction(outcome="rejected: the ranking is not a JSON object with a list of ids")
        room = self.max_size // 2 - self.keep_first
        kept = [at for at in ranked if self.keep_first <= at < len(view)][:room]
        for at in range(len(view) - 1, -1, -1):
            if len(kept) >= room:
                break
            if at not in kept:
                kept.append(at)
        staying = {*kept, *range(self.keep_first)}
        if self.repair:
            staying = _whole(situation, view, staying)
        gone = tuple(e.key for e in unpinned(situation.context, (e for at, e in enumerate(view) if at not in staying)))
        return Compaction((Edit("dropped", gone),) if gone else (), reason=f"{len(gone)} messages ranked out")


@register("openhands_sdk/llm_summarizing", semantics=1)
@dataclass(frozen=True, slots=True)
class SDKLLMSummarizing:
    """Keep head and tail, fold the middle, cut only between atomic units (openhands-sdk 1.58.2).

    A message with several calls is as many events. Too many events are a soft reason: where no cut makes enough
    progress nothing happens. Too many tokens and a request are hard: then everything but the system prompt is
    summarised, with ever shorter events as attempts fail.

    Parameters
    ----------
    max_size, max_tokens
        Most events and tokens; half of either remains.
    keep_first
        Events at the start that stay.
    minimum_progress
        Smallest share of the events that must go.
    hard_context_reset_max_retries, hard_context_reset_context_scaling
        Attempts of the hard reset, and how much shorter each event becomes at the next one.
    prompt
        ``None``: the lab's own.
    """

    max_size: int = 240
    max_tokens: int | None = None
    keep_first: int = 2
    minimum_progress: float = 0.1
    hard_context_reset_max_retries: int = 5
    hard_context_reset_context_scaling: float = 0.8
    prompt: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_size", 1)
        at_least(self, "keep_first", 0)
        if self.max_size // 2 - self.keep_first - 1 <= 0:
            raise ConfigurationError(
                f"openhands_sdk: keep_first={self.keep_first} must be less than max_size // 2 - 1 "
                f"({self.max_size // 2 - 1}), or nothing is left to condense"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Condense for whatever reasons there are."""
        return continuing(self._condense, situation)

    def _condense(self, situation: Situation) -> Steps:
        view = list(situation.context.entries())
        events = [at for at, entry in enumerate(view) for _ in range(max(1, len(entry.message.calls)))]
        weights = _event_tokens(view, events, situation)
        requested = situation.occasion in ("requested", "overflow")
        tokens = self.max_tokens is not None and situation.tokens(situation.context) > self.max_tokens
        tails = []
        if requested:
            tails.append(len(events) // 2 - self.keep_first - 1)
        if len(events) > self.max_size:
            tails.append(self.max_size // 2 - self.keep_first - 1)
        if tokens and self.max_tokens is not None:
            surplus = situation.tokens(situation.context) - self.max_tokens // 2
            tails.append(_suffix(weights[self.keep_first :], surplus))
        if not tails:
            return Compaction()
        start, stop = self._range(view, events, min(tails))
        forgotten = list(unpinned(situation.context, view[start:stop]))
        size = sum(max(1, len(entry.message.calls)) for entry in forgotten)
        hard = requested or tokens
        if not forgotten or size < len(events) * self.minimum_progress:
            if not hard:
                return Compaction(outcome="rejected: no cut between atomic units makes enough progress")
            return (yield from self._reset(situation, view))
        done = yield from self._summarized(situation, view, forgotten, None)
        if not done.edits and hard:
            return (yield from self._reset(situation, view))
        return done

    def _range(self, view: Entries, events: Sequence[int], tail: int) -> tuple[int, int]:
        """Return the messages to forget: from the first cut behind the head to the first behind the naive end."""
        cuts = _cuts(view)
        first = max(self.keep_first, sum(max(1, len(e.message.calls)) for e in view[: leading_system(view)][:1]))
        return _next_cut(cuts, events, first), _next_cut(cuts, events, len(events) - tail)

    def _reset(self, situation: Situation, view: list[Placed]) -> Steps:
        everything = list(unpinned(situation.context, view[min(1, leading_system(view)) :]))
        if not everything:
            return Compaction(outcome="rejected: only the system prompt is left")
        limit: int | None = None
        done = Compaction()
        for _ in range(self.hard_context_reset_max_retries):
            done = yield from self._summarized(situation, view, everything, limit)
            if done.edits:
                break
            longest = max(len(rendered(entry.message)) for entry in view) if limit is None else limit
            limit = int(longest * self.hard_context_reset_context_scaling)
        return done

    def _summarized(
        self, situation: Situation, view: list[Placed], forgotten: list[Placed], limit: int | None
    ) -> Steps:
        prompt = self.prompt or INSTRUCTION
        wording = Wording(prompt, prompt, "", max_summary_tokens=None)
        going = {entry.key for entry in forgotten}
        at = next(at for at, entry in enumerate(view) if entry.key in going)
        following = next((entry.key for entry in view[at:] if entry.key not in going), None)
        return summarized(
            situation,
            Span(tuple(forgotten), following),
            wording,
            Reading(item_characters=limit),
            Acceptance(only_if_shorter=False),
        )


def _ids(text: str) -> list[int] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    ids = found.get("ids") if isinstance(found, dict) else None
    if not isinstance(ids, list):
        return None
    return [number for number in ids if isinstance(number, int)]


def _whole(situation: Situation, view: Entries, staying: set[int]) -> set[int]:
    """Return indices with their groups completed, and the newest user message."""
    log = situation.context.log
    kept = {log.groups[view[at].key[0]] for at in staying if view[at].key[1] == 0}
    newest = log.turn_starts[log.turn_at(situation.context.stop)]
    return {
        at
        for at, entry in enumerate(view)
        if at in staying or (entry.key[1] == 0 and (log.groups[entry.key[0]] in kept or entry.key[0] == newest))
    }


def _event_tokens(view: Entries, events: Sequence[int], situation: Situation) -> list[int]:
    """Return the tokens of each event; a message of several is counted at its first."""
    count = situation.counter.message
    return [count(view[at].message) if not place or events[place - 1] != at else 0 for place, at in enumerate(events)]


def _suffix(weights: Sequence[int], surplus: int) -> int:
    """Return how many of the newest events may stay when more than ``surplus`` tokens of the oldest must go."""
    if surplus <= 0:
        return len(weights)
    gone = 0
    for place, tokens in enumerate(weights):
        gone += tokens
        if gone > surplus:
            return len(weights) - place - 1
    return 0


def _cuts(view: Entries) -> list[int]:
    """Return where the list may be cut: not between a call and its results, not inside a thinking tool loop."""
    inside = [False] * (len(view) + 1)
    made: dict[str, int] = {}
    loop = -1
    for at, entry in enumerate(view):
        message = entry.message
        made.update((call.id, at) for call in message.calls)
        if message.role == "tool" and message.call_id in made:
            for between in range(made.pop(message.call_id) + 1, at + 1):
                inside[between] = True
        thinks = any(isinstance(part, Reasoning) for part in message.parts)
        if message.calls and thinks:
            loop = at
        elif not message.calls and message.role != "tool":
            loop = -1
        elif loop >= 0:
            for between in range(loop + 1, at + 1):
                inside[between] = True
    return [at for at, held in enumerate(inside) if not held]


def _next_cut(cuts: Sequence[int], events: Sequence[int], event: int) -> int:
    """Return the first cut at or behind an event, as an index of the message list."""
    size = events[-1] + 1 if events else 0
    for cut in cuts:
        place = next((number for number, at in enumerate(events) if at == cut), len(events))
        if place >= event:
            return cut
    return size
