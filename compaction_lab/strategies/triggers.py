"""When to start: conditions on a situation, to be combined with ``all`` and ``any``."""

from __future__ import annotations

from dataclasses import dataclass

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
