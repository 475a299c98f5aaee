"""OpenHands' condensers that drop events, as openhands-ai 0.59.0 behaves; a message is an event here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Occasion
from compaction_lab.strategies.mechanisms.hysteresis import Hysteresis
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window, in_order
from compaction_lab.strategies.registry import at_least, register


@register("openhands/recent_events", semantics=1)
@dataclass(frozen=True, slots=True)
class RecentEvents(Window):
    """Keep the first and the last events (mechanism M2).

    Parameters
    ----------
    keep_first
        Events at the head.
    max_events
        Events in all. A shorter history gets its head twice, and a head of this size everything besides.
    repair
        Show nothing twice, and drop calls and results that lose their other half.
    """

    keep_first: int = 1
    max_events: int = 100
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_first", 0)
        at_least(self, "max_events", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep both ends."""
        every = range(len(shown.messages))
        head = every[: self.keep_first]
        tail = max(0, self.max_events - len(head))
        return in_order(shown.messages, [*head, *every[-tail if tail else 0 :]])


@register("openhands/amortized_forgetting", semantics=1)
@dataclass(frozen=True, slots=True)
class AmortizedForgetting(Window):
    """Beyond a size, forget the middle until half of it is left, for good (mechanism M5).

    Parameters
    ----------
    max_size
        Events beyond which it forgets.
    keep_first
        Events at the head that stay.
    repair
        Drop calls and results that lose their other half.
    """

    persists: ClassVar[bool] = True

    max_size: int = 100
    keep_first: int = 1
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters as OpenHands does."""
        at_least(self, "max_size", 1)
        at_least(self, "keep_first", 0)
        if self.keep_first >= self.max_size // 2:
            msg = f"forgetting: keep_first={self.keep_first}; expected less than half of max_size ({self.max_size})"
            raise ConfigurationError(msg)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Forget the middle."""
        return Hysteresis(self.max_size, keep_first=self.keep_first, protect=(), boundary="raw").choose(shown)


@register("openhands/conversation_window", semantics=1)
@dataclass(frozen=True, slots=True)
class ConversationWindow(Window):
    """When a request did not fit, keep system and first user message and the newest half of the rest (M5, trigger T8).

    Without a user message nothing is forgotten, so that the request does not fit the next time either.
    """

    persists: ClassVar[bool] = True

    @property
    def default_when(self) -> Occasion:
        """Only when asked, or the model refused the request."""
        return "overflow"

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Forget the older half."""
        messages = shown.messages
        user = next((at for at, message in enumerate(messages) if message.role == "user"), None)
        if user is None:
            return None
        system = next((at for at, message in enumerate(messages) if message.role == "system"), None)
        essential = {at for at in (system, user) if at is not None}
        start = len(messages) - max(1, (len(messages) - len(essential)) // 2)
        while start < len(messages) and messages[start].role == "tool":
            start += 1
        return [at for at in range(len(messages)) if at >= start or at in essential]
