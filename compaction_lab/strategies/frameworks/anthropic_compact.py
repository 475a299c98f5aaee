"""Anthropic's server-side compaction (compact_20260112): an opaque block stands for what came before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.opaque_compaction import OpaqueCompaction
from compaction_lab.strategies.registry import register

LOWEST_TRIGGER = 50_000


@register("anthropic/compact", semantics=1)
@dataclass(frozen=True, slots=True)
class Compact:
    """Let the provider compact (mechanism M28); nothing is imitated.

    Parameters
    ----------
    source
        ``recorded`` blocks take effect where the conversation holds them; ``endpoint``: the summariser is one.
    trigger_input_tokens
        Input tokens at which the provider compacts; it takes no less than 50,000.
    instructions
        Replace the provider's own prompt.
    """

    source: Literal["recorded", "endpoint"] = "recorded"
    trigger_input_tokens: int = 150_000
    instructions: str = ""

    def __post_init__(self) -> None:
        """Check the trigger as the provider does."""
        if self.trigger_input_tokens < LOWEST_TRIGGER:
            raise ConfigurationError(
                f"anthropic/compact: trigger_input_tokens={self.trigger_input_tokens}; expected {LOWEST_TRIGGER} up"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Play back or ask."""
        opaque = OpaqueCompaction(self.source, "anthropic", self.trigger_input_tokens, self.instructions)
        return opaque(situation)
