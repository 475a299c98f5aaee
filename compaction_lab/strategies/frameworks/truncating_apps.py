"""The truncations of coding tools that are no Python packages, from their public sources and documentation.

Roo Code hides half of what follows the task, Cline's earlier core a half or three quarters; goose's earlier truncation
and Codex on overflow drop the oldest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal

from compaction_lab.conversation.log import is_system
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Occasion
from compaction_lab.strategies.mechanisms.spans import flat
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register


@register("roo_code/truncate", semantics=1)
@dataclass(frozen=True, slots=True)
class RooTruncate(Window):
    """Over budget, hide the older half of what follows the first message, an even number of messages (mechanism M5).

    Parameters
    ----------
    context_window
        The model's window, in tokens; the run's when not given.
    max_tokens
        Tokens kept free for the answer.
    buffer
        Share of the window kept free besides.
    frac_to_remove
        Share of the messages after the first that is hidden.
    """

    persists: ClassVar[bool] = True

    context_window: int | None = None
    max_tokens: int = 8192
    buffer: float = 0.1
    frac_to_remove: float = 0.5

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_tokens", 0)
        for name in ("buffer", "frac_to_remove"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigurationError(f"RooTruncate: {name}={getattr(self, name)}; expected a share from 0 to 1")

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Hide the older half."""
        situation = shown.situation
        window = situation.window_tokens if self.context_window is None else self.context_window
        if window is None or situation.tokens(shown.context) <= window * (1 - self.buffer) - self.max_tokens:
            return None
        head, units = _conversation(shown)
        count = int((len(units) - 1) * self.frac_to_remove)
        return _without(head, units, 1, count - count % 2)


@register("cline/truncate", semantics=1)
@dataclass(frozen=True, slots=True)
class ClineTruncate(Window):
    """Over budget, drop a half or three quarters of what follows the first exchange, in pairs (mechanism M5).

    Parameters
    ----------
    max_allowed_tokens
        Tokens of a request beyond which it acts; 80 percent of the run's window when not given.
    keep
        How much of the rest stays: ``half``, ``quarter``, or ``auto``: a quarter once a half would not be enough.
    """

    persists: ClassVar[bool] = True

    max_allowed_tokens: int | None = None
    keep: Literal["auto", "half", "quarter"] = "auto"

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.max_allowed_tokens is not None:
            at_least(self, "max_allowed_tokens", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Drop the older part."""
        situation = shown.situation
        allowed = self.max_allowed_tokens
        if allowed is None:
            if situation.window_tokens is None:
                return None
            allowed = int(situation.window_tokens * 0.8)
        found = situation.tokens(shown.context)
        if found <= allowed:
            return None
        quarter = self.keep == "quarter" or (self.keep == "auto" and found / 2 > allowed)
        head, units = _conversation(shown)
        rest = max(0, len(units) - 2)
        count = (rest * 3 // 4) // 2 * 2 if quarter else rest // 4 * 2
        return _without(head, units, 2, count)


@register("goose/oldest_first", semantics=1)
@dataclass(frozen=True, slots=True)
class GooseOldestFirst(Window):
    """Over the limit, drop the oldest messages with their other halves, and begin with a user's text (mechanism M5).

    Parameters
    ----------
    context_limit
        Tokens that may be sent; the run's window when not given.
    """

    persists: ClassVar[bool] = True

    context_limit: int | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.context_limit is not None:
            at_least(self, "context_limit", 1)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Drop from the front."""
        situation = shown.situation
        limit = situation.window_tokens if self.context_limit is None else self.context_limit
        total = situation.tokens(shown.context)
        if limit is None or total <= limit:
            return None
        messages = shown.messages
        head, units = _conversation(shown)
        cut = 0
        while cut < len(units) and (total > limit or messages[units[cut].start].role != "user"):
            total -= sum(shown.tokens[at] for at in units[cut])
            cut += 1
        return _without(head, units, 0, cut)


@register("codex/drop_oldest", semantics=1)
@dataclass(frozen=True, slots=True)
class CodexDropOldest(Window):
    """When a request did not fit, drop the oldest item and its other half (guard G7 of Codex's compaction).

    Parameters
    ----------
    count
        Items dropped each time.
    """

    persists: ClassVar[bool] = True

    count: int = 1

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "count", 1)

    @property
    def default_when(self) -> Occasion:
        """Only when the model refused the request."""
        return "overflow"

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Drop the oldest."""
        messages = shown.messages
        left = [at for at, message in enumerate(messages) if not is_system(message)]
        gone: set[int] = set()
        for _ in range(min(self.count, len(left))):
            oldest = next((at for at in left if at not in gone), None)
            if oldest is None:
                break
            gone.add(oldest)
            for call in messages[oldest].calls:
                # Ids may come again: its own result is the first behind it.
                results = (at for at in left if at > oldest and messages[at].call_id == call.id)
                gone.update(islice((at for at in results if messages[at].role == "tool"), 1))
        return [at for at in range(len(messages)) if at not in gone]


def _conversation(shown: Shown) -> tuple[list[int], list[range]]:
    """Return the positions of system messages, held apart by these tools, and the rest with batches as one message."""
    messages = shown.messages
    head = [at for at, message in enumerate(messages) if is_system(message)]
    return head, [span for span in shown.batches if not is_system(messages[span.start])]


def _without(head: Sequence[int], units: Sequence[range], start: int, count: int) -> list[Item] | None:
    if count <= 0:
        return None
    return [*sorted([*head, *flat(units[:start]), *flat(units[start + count :])])]
