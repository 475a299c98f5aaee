"""``PipelineCompactionStrategy`` and ``ContextWindowCompactionStrategy``: several strategies on one index."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.agent_framework_dotnet.base import IndexStrategy, Work
from compaction_lab.strategies.agent_framework_dotnet.index import MessageIndex, Update
from compaction_lab.strategies.agent_framework_dotnet.tool_result import ToolResult
from compaction_lab.strategies.agent_framework_dotnet.triggers import IndexTrigger
from compaction_lab.strategies.agent_framework_dotnet.truncation import Truncation
from compaction_lab.strategies.base import Strategy
from compaction_lab.strategies.registry import at_least, register


@register("agent_framework_dotnet/pipeline", semantics=1)
@dataclass(frozen=True, slots=True)
class Pipeline(IndexStrategy):
    """Run every strategy, each when its own trigger holds, one after the other on one index (composition C1).

    Parameters
    ----------
    strategies
        Strategies of this flavour, with their own triggers.
    """

    strategies: tuple[Strategy, ...]
    update: Update = "content"

    def __post_init__(self) -> None:
        """Check that all strategies work on a message index."""
        for strategy in self.strategies:
            if not isinstance(strategy, IndexStrategy):
                msg = (
                    f"agent_framework_dotnet/pipeline: strategies holds {type(strategy).__name__}; expected strategies "
                    "of agent_framework_dotnet; wrap any other in agent_framework_dotnet/chat_reducer"
                )
                raise ConfigurationError(msg)

    def work(self, index: MessageIndex, reached: IndexTrigger) -> Work:  # noqa: ARG002 - there is no early stop
        """Run all children."""
        done = False
        for strategy in self.strategies:
            if isinstance(strategy, IndexStrategy):
                done = (yield from strategy.compact(index)) or done
        return done


@register("agent_framework_dotnet/context_window", semantics=1)
@dataclass(frozen=True, slots=True)
class ContextWindow(IndexStrategy):
    """Collapse tool calls from one share of the input budget on, truncate from another (mechanisms M11, M5).

    Parameters
    ----------
    max_context_window_tokens, max_output_tokens
        The input budget is their difference.
    tool_eviction_threshold, truncation_threshold
        Shares of the budget beyond which each step acts, and down to which it goes.
    """

    max_context_window_tokens: int
    max_output_tokens: int
    tool_eviction_threshold: float = 0.5
    truncation_threshold: float = 0.8
    update: Update = "content"

    def __post_init__(self) -> None:
        """Check sizes and thresholds as the framework does."""
        at_least(self, "max_context_window_tokens", 1)
        at_least(self, "max_output_tokens", 0)
        if self.max_output_tokens >= self.max_context_window_tokens:
            msg = (
                f"ContextWindow: max_output_tokens={self.max_output_tokens}; expected less than "
                f"max_context_window_tokens ({self.max_context_window_tokens}), the rest is the input budget"
            )
            raise ConfigurationError(msg)
        for name in ("tool_eviction_threshold", "truncation_threshold"):
            if not 0 < getattr(self, name) <= 1:
                msg = f"ContextWindow: {name}={getattr(self, name)}; expected a share above 0 and at most 1"
                raise ConfigurationError(msg)
        if self.truncation_threshold < self.tool_eviction_threshold:
            msg = (
                f"ContextWindow: truncation_threshold={self.truncation_threshold}; expected at least "
                f"tool_eviction_threshold ({self.tool_eviction_threshold}), since truncation is the last resort"
            )
            raise ConfigurationError(msg)

    def work(self, index: MessageIndex, reached: IndexTrigger) -> Work:
        """Run both steps."""
        budget = self.max_context_window_tokens - self.max_output_tokens
        collapse = ToolResult({"tokens_exceed": int(budget * self.tool_eviction_threshold)}, 2)
        truncate = Truncation({"tokens_exceed": int(budget * self.truncation_threshold)}, 2)
        return (yield from Pipeline((collapse, truncate)).work(index, reached))
