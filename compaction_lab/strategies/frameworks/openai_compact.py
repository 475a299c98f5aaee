"""OpenAI's server-side compaction: an encrypted item stands for what came before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.opaque_compaction import OpaqueCompaction
from compaction_lab.strategies.registry import at_least, register


@register("openai/compact", semantics=1)
@dataclass(frozen=True, slots=True)
class Compact:
    """Let the provider compact (mechanism M28); nothing is imitated.

    Parameters
    ----------
    source
        ``recorded`` items take effect where the conversation holds them; ``endpoint``: the summariser is one.
    compact_threshold
        Rendered tokens at which the provider compacts.
    """

    source: Literal["recorded", "endpoint"] = "recorded"
    compact_threshold: int = 200_000

    def __post_init__(self) -> None:
        """Check the threshold."""
        at_least(self, "compact_threshold", 1)

    def __call__(self, situation: Situation) -> Steps:
        """Play back or ask."""
        return OpaqueCompaction(self.source, "openai", self.compact_threshold)(situation)
