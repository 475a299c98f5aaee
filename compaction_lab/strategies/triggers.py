"""When to start: conditions on a situation, to be combined with ``all`` and ``any``."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from compaction_lab.conversation.messages import Media
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation, Trigger
from compaction_lab.strategies.registry import register_trigger


@register_trigger("always")
@dataclass(frozen=True, slots=True)
class Always:
    """At every occasion (T13)."""

    def __call__(self, situation: Situation) -> bool:  # noqa: ARG002 - the protocol's shape
        """Act."""
        return True


@register_trigger("never")
@dataclass(frozen=True, slots=True)
class Never:
    """At no occasion."""

    def __call__(self, situation: Situation) -> bool:  # noqa: ARG002 - the protocol's shape
        """Do not act."""
        return False


@register_trigger("tokens_exceed")
@dataclass(frozen=True, slots=True)
class TokensExceed:
    """When the request (tools and overhead included) has more than ``tokens`` tokens (T1)."""

    tokens: int

    def __call__(self, situation: Situation) -> bool:
        """Compare the request's tokens."""
        return situation.tokens(situation.context) > self.tokens


@register_trigger("tokens_below")
@dataclass(frozen=True, slots=True)
class TokensBelow:
    """When the request has fewer than ``tokens`` tokens."""

    tokens: int

    def __call__(self, situation: Situation) -> bool:
        """Compare the request's tokens."""
        return situation.tokens(situation.context) < self.tokens


@register_trigger("messages_exceed")
@dataclass(frozen=True, slots=True)
class MessagesExceed:
    """When more than ``messages`` messages are visible (T5)."""

    messages: int

    def __call__(self, situation: Situation) -> bool:
        """Compare the number of visible messages."""
        return len(situation.context) > self.messages


@register_trigger("turns_exceed")
@dataclass(frozen=True, slots=True)
class TurnsExceed:
    """When more than ``turns`` user messages are visible, summaries not counted (T6)."""

    turns: int

    def __call__(self, situation: Situation) -> bool:
        """Count the visible user messages."""
        return sum(m.role == "user" and m.source != "summary" for m in situation.context.messages) > self.turns


@register_trigger("groups_exceed")
@dataclass(frozen=True, slots=True)
class GroupsExceed:
    """When more than ``groups`` groups are visible, system messages included (T5)."""

    groups: int

    def __call__(self, situation: Situation) -> bool:
        """Count the visible groups."""
        log = situation.context.log
        seen = {(log.groups[index], 0) if rank == 0 else (index, rank) for index, rank in situation.context.keys}
        return len(seen) > self.groups


@register_trigger("has_tool_calls")
@dataclass(frozen=True, slots=True)
class HasToolCalls:
    """When a visible message calls a tool."""

    def __call__(self, situation: Situation) -> bool:
        """Look for a tool call."""
        return any(message.calls for message in situation.context.messages)


@register_trigger("calls_exceed")
@dataclass(frozen=True, slots=True)
class CallsExceed:
    """When more than ``calls`` tool calls are visible (T5)."""

    calls: int

    def __call__(self, situation: Situation) -> bool:
        """Count the visible tool calls."""
        return sum(len(message.calls) for message in situation.context.messages) > self.calls


@register_trigger("any")
@dataclass(frozen=True, slots=True)
class AnyOf:
    """When at least one of the triggers would act."""

    triggers: tuple[Trigger, ...]

    def __call__(self, situation: Situation) -> bool:
        """Ask them in order."""
        return any(trigger(situation) for trigger in self.triggers)


@register_trigger("all")
@dataclass(frozen=True, slots=True)
class AllOf:
    """When every trigger would act."""

    triggers: tuple[Trigger, ...]

    def __call__(self, situation: Situation) -> bool:
        """Ask them in order."""
        return all(trigger(situation) for trigger in self.triggers)


@register_trigger("window_fraction_exceeds")
@dataclass(frozen=True, slots=True)
class WindowFractionExceeds:
    """When the request has more than ``fraction`` of the model's window (T2).

    ``window`` stands for a window that is not known; without either the trigger refuses. ``inclusive``: reaching it is
    enough.
    """

    fraction: float
    window: int | None = None
    inclusive: bool = False

    def __post_init__(self) -> None:
        """Check the share."""
        if not 0 < self.fraction <= 1:
            msg = f"window_fraction_exceeds: fraction={self.fraction!r}; expected a share above 0 and at most 1"
            raise ConfigurationError(msg)

    def __call__(self, situation: Situation) -> bool:
        """Compare the request's tokens with the window's share."""
        limit = int(known_window(situation, self.window, "window_fraction_exceeds") * self.fraction)
        return _beyond(situation.tokens(situation.context), limit, inclusive=self.inclusive)


@register_trigger("window_reserve")
@dataclass(frozen=True, slots=True)
class WindowReserve:
    """When fewer than ``reserve`` tokens of the window are left (T3).

    A reserve that is as large as the window would fire for ever; it is an error.
    """

    reserve: int
    window: int | None = None
    inclusive: bool = False

    def __call__(self, situation: Situation) -> bool:
        """Compare the request's tokens with what the reserve leaves."""
        window = known_window(situation, self.window, "window_reserve")
        if self.reserve >= window:
            msg = (
                f"window_reserve: a reserve of {self.reserve} tokens leaves nothing of a window of {window}, so it "
                "would fire at every call; give a smaller reserve or a share (window_fraction_exceeds)"
            )
            raise ConfigurationError(msg)
        return _beyond(situation.tokens(situation.context), window - self.reserve, inclusive=self.inclusive)


@register_trigger("usage_exceeds")
@dataclass(frozen=True, slots=True)
class UsageExceeds:
    """When what the provider reported for the last call, and an estimate of what came since, exceed ``tokens`` (T4).

    The last call's own prompt counts, never a sum over calls. Without a report, or where the history was compacted
    since, the estimate alone decides.
    """

    tokens: int

    def __call__(self, situation: Situation) -> bool:
        """Anchor the estimate to the report."""
        return anchored_tokens(situation) > self.tokens


@register_trigger("every_turns")
@dataclass(frozen=True, slots=True)
class EveryTurns:
    """When ``turns`` complete turns have gone by since the newest visible summary (T6)."""

    turns: int

    def __call__(self, situation: Situation) -> bool:
        """Count turns whose user message stands behind the newest summary."""
        log, stop = situation.context.log, situation.context.stop
        since = _newest_summary(situation)
        complete = log.turn_at(stop) - (0 if situation.turn_is_over else 1)
        before = log.turns[since] if since >= 0 else 0
        return complete - before >= self.turns


@register_trigger("every_steps")
@dataclass(frozen=True, slots=True)
class EverySteps:
    """When ``steps`` model calls have been made since the newest visible summary (T7)."""

    steps: int

    def __call__(self, situation: Situation) -> bool:
        """Count calls that stand behind the newest summary."""
        log, stop = situation.context.log, situation.context.stop
        calls = bisect_left(log.calls, stop) - bisect_left(log.calls, _newest_summary(situation) + 1)
        return calls >= self.steps


@register_trigger("overflow")
@dataclass(frozen=True, slots=True)
class Overflow:
    """When the provider refused a request as too long, or would refuse this one (T8).

    In a replay nothing is refused: a request beyond the window, ``window`` standing for one that is not known, counts.
    """

    window: int | None = None

    def __call__(self, situation: Situation) -> bool:
        """Look at the occasion, then at the window."""
        if situation.occasion == "overflow":
            return True
        window = situation.window_tokens or self.window
        return window is not None and situation.tokens(situation.context) > window


@register_trigger("requested")
@dataclass(frozen=True, slots=True)
class Requested:
    """When compaction was asked for: by the user, the agent or a hook (T9)."""

    def __call__(self, situation: Situation) -> bool:
        """Look at the occasion."""
        return situation.occasion == "requested"


@register_trigger("idle_exceeds")
@dataclass(frozen=True, slots=True)
class IdleExceeds:
    """When more than ``seconds`` lie between the newest two moments known: the provider's cache is cold anyway (T10).

    Without timestamps it never fires.
    """

    seconds: float

    def __call__(self, situation: Situation) -> bool:
        """Compare the present, or the newest message, with the message before."""
        log, stop = situation.context.log, situation.context.stop
        now, messages = situation.now_s, log.messages[:stop]
        call = log.last_call(stop)
        then = messages[call].timestamp_s if call >= 0 else None
        if now is None and messages:
            now = messages[-1].timestamp_s
        return now is not None and then is not None and now - then > self.seconds


@register_trigger("images_exceed")
@dataclass(frozen=True, slots=True)
class ImagesExceed:
    """When more than ``images`` images are visible (T11)."""

    images: int

    def __call__(self, situation: Situation) -> bool:
        """Count the visible images."""
        parts = (part for message in situation.context.messages for part in message.parts)
        return sum(isinstance(part, Media) and part.kind == "image" for part in parts) > self.images


@register_trigger("work_exceeds")
@dataclass(frozen=True, slots=True)
class WorkExceeds:
    """When the calls since the newest visible summary were sent more than ``tokens`` tokens in all (T12).

    What they were sent is what stands before them now, tools and overhead included.
    """

    tokens: int

    def __call__(self, situation: Situation) -> bool:
        """Add up the prompts of the calls behind the newest summary."""
        context, counter = situation.context, situation.counter
        calls = set(context.log.calls)
        newest = _newest_summary(situation)
        sent, work = situation.overhead_tokens, 0
        for entry in context.entries():
            index, rank = entry.key
            if rank == 0 and index > newest and index in calls:
                work += sent
            sent += counter.message(entry.message)
        return work > self.tokens


@register_trigger("result_exceeds")
@dataclass(frozen=True, slots=True)
class ResultExceeds:
    """When a tool result that no call has read yet has more than ``tokens`` tokens (T14)."""

    tokens: int

    def __call__(self, situation: Situation) -> bool:
        """Look at what has just come."""
        newest = situation.context.entries((situation.unread_from, 0))
        counter = situation.counter
        return any(e.message.role == "tool" and counter.message(e.message) > self.tokens for e in newest)


@register_trigger("not")
@dataclass(frozen=True, slots=True)
class Not:
    """When the trigger would not act."""

    trigger: Trigger

    def __call__(self, situation: Situation) -> bool:
        """Ask it."""
        return not self.trigger(situation)


def known_window(situation: Situation, fallback: int | None, who: str) -> int:
    """Return the model's window, or what stands for one that is not known.

    Raises
    ------
    ConfigurationError
        Neither is known.
    """
    window = situation.window_tokens or fallback
    if window is None:
        msg = f"{who}: the model's window is not known; give window=... for the run, or a window of the trigger's own"
        raise ConfigurationError(msg)
    return window


def anchored_tokens(situation: Situation) -> int:
    """Return the request's tokens: the provider's count of the last call and an estimate of what came since."""
    context, counter = situation.context, situation.counter
    estimate = situation.tokens(context)
    if situation.usage is None:
        return estimate
    call = context.log.last_call(context.stop)
    if call < 0 or _newest_summary(situation) >= call:
        return estimate
    since = estimate - situation.overhead_tokens - context.tokens_before((call, 0), counter)
    return situation.usage.input_tokens + since


def _newest_summary(situation: Situation) -> int:
    """Return the log index behind which the newest visible summary stands, or -1."""
    return max((e.key[0] for e in situation.context.entries() if e.message.source == "summary"), default=-1)


def _beyond(tokens: int, limit: int, *, inclusive: bool) -> bool:
    return tokens >= limit if inclusive else tokens > limit
