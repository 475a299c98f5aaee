"""Haystack's compactors of tool results: prune or offload the oldest large ones until a target is met."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.conversation.context import Placed
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clearing import Clearing
from compaction_lab.strategies.mechanisms.offloading import OffloadResults
from compaction_lab.strategies.mechanisms.recency import recent_edge
from compaction_lab.strategies.mechanisms.rewriting import Draft, Reclaim, rewrite_before
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.triggers import known_window

PLACEHOLDER = "[Tool result removed to free up context. Call `{tool_name}` again if you need it.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hook:
    """The ``CompactionHook`` around a compactor: when it acts, and what it aims at (haystack-ai 3.4.1).

    Parameters
    ----------
    context_window
        The model's window in tokens; null takes the run's.
    compact_at, compact_to
        Shares of the window: reached, the compactor acts; below, it stops.
    min_keep_steps
        Newest steps with tool results that stay.
    min_tokens
        Only results of more tokens are touched.
    """

    context_window: int | None = None
    compact_at: float = 0.7
    compact_to: float = 0.4
    min_keep_steps: int = 1
    min_tokens: int = 200

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not 0 < self.compact_to < self.compact_at <= 1:
            msg = (
                f"haystack: compact_at={self.compact_at} and compact_to={self.compact_to}; expected "
                "0 < compact_to < compact_at <= 1, else the target would lie above the trigger"
            )
            raise ConfigurationError(msg)
        at_least(self, "min_keep_steps", 1)
        at_least(self, "min_tokens", 0)

    def target_tokens(self, situation: Situation) -> int | None:
        """Return what the request should shrink to, tools and overhead included; ``None`` while it is short enough."""
        window = known_window(situation, self.context_window, "haystack")
        if situation.tokens(situation.context) < window * self.compact_at:
            return None
        return int(window * self.compact_to)


@register("haystack/tool_result_pruning_compactor", semantics=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultPruningCompactor(_Hook):
    """Put a placeholder in the place of the oldest large results until the target is met.

    Parameters
    ----------
    placeholder
        Text that stands for a pruned result; may name ``{tool_name}``.
    """

    placeholder: str = PLACEHOLDER

    def __call__(self, situation: Situation) -> Compaction:
        """Prune."""
        target = self.target_tokens(situation)
        if target is None:
            return Compaction(memory=None)
        clearing = Clearing(placeholder=self.placeholder.replace("{tool_name}", "{tool}"), min_tokens=self.min_tokens)

        def rule(draft: Draft, entry: Placed) -> bool:
            return entry.message.role == "tool" and clearing.clear(draft, entry)

        edge = recent_edge(situation.context, "step", self.min_keep_steps)
        return rewrite_before(situation, edge, rule, Reclaim(down_to_tokens=target), reason=f"down to {target} tokens")


@register("haystack/tool_result_offload_compactor", semantics=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultOffloadCompactor(_Hook):
    """Move the oldest large results to a store until the target is met; errors stay.

    Parameters
    ----------
    preview_chars
        Leading characters of a result that stay visible.
    """

    preview_chars: int = 200

    def __post_init__(self) -> None:
        """Check the parameters."""
        _Hook.__post_init__(self)
        at_least(self, "preview_chars", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Offload."""
        target = self.target_tokens(situation)
        if target is None:
            return Compaction(memory=None)
        return OffloadResults(
            min_tokens=self.min_tokens,
            keep_last=self.min_keep_steps,
            down_to_tokens=target,
            head=self.preview_chars,
            handle="compacted_{tool}_{hash}.txt",
            stand_in="Tool result offloaded to text ({characters} characters) at '{handle}'. Preview: {preview}",
            keep_errors=True,
        )(situation)
