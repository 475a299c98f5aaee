"""Agent Framework's ``ContextWindowCompactionStrategy``: first collapse tool results, then truncate."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.agent_framework.acting import Acts
from compaction_lab.strategies.agent_framework.checks import refuse
from compaction_lab.strategies.agent_framework.ledger import Ledger
from compaction_lab.strategies.agent_framework.tokens import CHARACTERS, Tokenizer, resolve
from compaction_lab.strategies.agent_framework.tool_calls import ToolResult
from compaction_lab.strategies.agent_framework.truncation import Truncation
from compaction_lab.strategies.base import Situation
from compaction_lab.strategies.registry import register


@register("agent_framework/context_window", semantics=1)
@dataclass(frozen=True, slots=True)
class ContextWindow(Acts):
    """Collapse old tool results above one share of the input budget, truncate above another (M11, then M5).

    Parameters
    ----------
    max_context_window_tokens, max_output_tokens
        Their difference is the input budget. Instructions and tool definitions are not counted against it.
    tokenizer
        ``None`` (the framework's character estimate), an encoding, or an object with ``count_tokens``.
    tool_eviction_threshold, truncation_threshold
        Shares of the budget; truncation goes down to the first.
    keep_last_tool_call_groups
        Tool-call groups that are not collapsed.
    preserve_first_user_group
        Whether truncation spares the first user group.
    """

    max_context_window_tokens: int
    max_output_tokens: int
    tokenizer: object = None
    tool_eviction_threshold: float = 0.5
    truncation_threshold: float = 0.8
    keep_last_tool_call_groups: int = 4
    preserve_first_user_group: bool = False

    def __post_init__(self) -> None:
        """Check the parameters as the framework does."""
        window, output = self.max_context_window_tokens, self.max_output_tokens
        eviction, truncation = self.tool_eviction_threshold, self.truncation_threshold
        refuse(window <= 0, "max_context_window_tokens must be positive.")
        refuse(not 0 <= output < window, "max_output_tokens must be >= 0 and < max_context_window_tokens.")
        refuse(not 0.0 < eviction <= 1.0, "tool_eviction_threshold must be in (0.0, 1.0].")
        refuse(not 0.0 < truncation <= 1.0, "truncation_threshold must be in (0.0, 1.0].")
        refuse(truncation < eviction, "truncation_threshold must be >= tool_eviction_threshold.")
        ToolResult(self.keep_last_tool_call_groups)
        self._truncation()

    @property
    def input_budget_tokens(self) -> int:
        """Tokens that the messages may have."""
        return self.max_context_window_tokens - self.max_output_tokens

    def counting(self) -> Tokenizer:
        """Return the tokenizer, the framework's estimate by default."""
        return resolve(self.tokenizer) or CHARACTERS

    def act(self, ledger: Ledger, situation: Situation) -> bool:
        """Collapse, count again, and truncate if that was not enough."""
        ledger.count(self.counting())
        changed = False
        if ledger.tokens > int(self.input_budget_tokens * self.tool_eviction_threshold):
            changed = ToolResult(self.keep_last_tool_call_groups).act(ledger, situation)
            ledger.count(self.counting())
        truncated = self._truncation().act(ledger, situation)
        if ledger.tokens > self.input_budget_tokens:
            ledger.reasons.append(f"{ledger.tokens} tokens are left, above the budget of {self.input_budget_tokens}")
        return truncated or changed

    def _truncation(self) -> Truncation:
        return Truncation(
            max_n=int(self.input_budget_tokens * self.truncation_threshold),
            compact_to=int(self.input_budget_tokens * self.tool_eviction_threshold),
            tokenizer=CHARACTERS if self.tokenizer is None else self.tokenizer,
            preserve_first_user_group=self.preserve_first_user_group,
        )
