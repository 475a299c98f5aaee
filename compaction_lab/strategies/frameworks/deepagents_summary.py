"""deepagents' SummarizationMiddleware: LangChain's cut with thresholds from the model's profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compaction_lab.conversation.messages import JSON
from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.frameworks.langchain_summary import SummarizationMiddleware as LangChainMiddleware
from compaction_lab.strategies.registry import register


@register("deepagents/summarization_middleware", semantics=1)
@dataclass(frozen=True, slots=True)
class SummarizationMiddleware:
    """Summarise at 85 % of the window down to 10 %, else at 170,000 tokens down to 6 messages (deepagents 0.7.32).

    The framework also writes the whole history to a file and shortens old write arguments first
    (``deepagents/truncate_args``).

    Parameters
    ----------
    trigger, keep
        As in ``langchain/summarization_middleware``; ``None``: from the window, when it is known.
    summary_prompt, trim_tokens_to_summarize
        As there.
    """

    trigger: object = None
    keep: Mapping[str, JSON] | None = None
    summary_prompt: str | None = None
    trim_tokens_to_summarize: int | None = 4000

    def __post_init__(self) -> None:
        """Check trigger and keep."""
        LangChainMiddleware(self.trigger, self.keep)

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when due."""
        known = situation.window_tokens is not None
        trigger = self.trigger or ({"fraction": 0.85} if known else {"tokens": 170_000})
        keep: Mapping[str, JSON] = self.keep or ({"fraction": 0.1} if known else {"messages": 6})
        inner = LangChainMiddleware(trigger, keep, self.summary_prompt, self.trim_tokens_to_summarize)
        return inner(situation)
