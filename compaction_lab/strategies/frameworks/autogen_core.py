"""AutoGen's model contexts, as autogen-core 0.7.5 behaves; the results of one batch are one message there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_lab.strategies.mechanisms.head_and_tail import HeadAndTail
from compaction_lab.strategies.mechanisms.middle_out import MiddleOut
from compaction_lab.strategies.mechanisms.tail_window import TailWindow
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register


@register("autogen_core/buffered_chat_completion_context", semantics=1)
@dataclass(frozen=True, slots=True)
class Buffered(Window):
    """Keep the last messages; results at the front are dropped (mechanism M2).

    Parameters
    ----------
    buffer_size
        Messages kept, the system's among them.
    repair
        Drop calls and results that lose their other half.
    """

    buffer_size: int
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "buffer_size", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep the tail."""
        return TailWindow(self.buffer_size, unit="batch", protect=()).choose(shown)


@register("autogen_core/head_and_tail_chat_completion_context", semantics=1)
@dataclass(frozen=True, slots=True)
class HeadAndTailContext(Window):
    """Keep the first and the last messages with a note in the gap (mechanism M4).

    Parameters
    ----------
    head_size, tail_size
        Messages kept at either end.
    repair
        Drop calls and results that lose their other half.
    """

    head_size: int
    tail_size: int
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "head_size", 1)
        at_least(self, "tail_size", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Keep both ends."""
        return HeadAndTail(self.head_size, self.tail_size, unit="batch").choose(shown)


@register("autogen_core/token_limited_chat_completion_context", semantics=1)
@dataclass(frozen=True, slots=True)
class TokenLimited(Window):
    """Drop the message in the middle until the rest fits (mechanism M6).

    Parameters
    ----------
    token_limit
        Tokens that may be left, tools included; the model's window when not given.
    repair
        Drop calls and results that lose their other half.
    """

    token_limit: int | None = None
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.token_limit is not None:
            at_least(self, "token_limit", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Drop from the middle."""
        return MiddleOut(self.token_limit, unit="batch").choose(shown)
