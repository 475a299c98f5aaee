"""pydantic-ai-harness' FallbackCompaction: strategies in order, the next one when the one before failed."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, Steps, Strategy, steps
from compaction_lab.strategies.composition import Fallback
from compaction_lab.strategies.frameworks.pydantic_ai_harness_window import DEFAULT_WINDOW_TOKENS, token_limit
from compaction_lab.strategies.registry import register


@register("pydantic_ai_harness/fallback_compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class FallbackCompaction:
    """Beyond a limit try the strategies in order until one does not fail (composition C4; 0.36.0).

    Parameters
    ----------
    fallback_chain
        The strategies.
    max_tokens, max_fraction
        Tokens, or share of the window, beyond which it acts by itself; with neither, only when it is asked to.
    context_window, fallback_context_window
        Window that ``max_fraction`` is taken of: given, or assumed when the run's is unknown.
    """

    fallback_chain: tuple[Strategy, ...]
    max_tokens: int | None = None
    max_fraction: float | None = None
    context_window: int | None = None
    fallback_context_window: int = DEFAULT_WINDOW_TOKENS

    def __post_init__(self) -> None:
        """Check the parameters as the harness does."""
        if not self.fallback_chain:
            raise ConfigurationError("FallbackCompaction: fallback_chain must not be empty")
        if self.max_tokens is not None and self.max_fraction is not None:
            raise ConfigurationError("FallbackCompaction: both max_tokens and max_fraction are set; set at most one")

    def __call__(self, situation: Situation) -> Steps:
        """Run the chain when the limit is exceeded or compaction was asked for."""
        limit = token_limit(
            situation, self.max_tokens, self.max_fraction, self.context_window, self.fallback_context_window
        )
        asked = situation.occasion == "requested"
        if not asked and (limit is None or situation.tokens(situation.context) <= limit):
            return Compaction(base="history" if situation.last is None else "last")
        return (yield from steps(Fallback(self.fallback_chain), situation))
