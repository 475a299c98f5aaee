"""Kimi CLI's SimpleCompaction: the newest user and assistant messages stay, the rest becomes a user-role summary."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.reading import Reading
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import leading_system, span
from compaction_lab.strategies.summaries import INSTRUCTION, Acceptance, Wording, continuing, summarized
from compaction_lab.strategies.triggers import known_window

PREFIX = "<system>Earlier context was compacted. The compaction reads:</system>\n"


@register("kimi_cli/simple_compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class SimpleCompaction:
    """Keep the newest ``max_preserved_messages`` user and assistant messages and what follows them (kimi-cli 1.52.0).

    The summariser sees texts only, no tool arguments.

    Parameters
    ----------
    max_preserved_messages
        User and assistant messages that stay, counted from the end.
    trigger_ratio, reserved_context_size
        Act when the request reaches this share of the window, or leaves no more than this many tokens of it.
    custom_instruction
        Put behind the prompt.
    prompt
        ``None``: the lab's own.
    repair
        The reserve is taken as it is even where it exceeds the window, so that a small model compacts at every call;
        repaired, the ratio alone decides there.
    """

    max_preserved_messages: int = 2
    trigger_ratio: float = 0.85
    reserved_context_size: int = 50_000
    custom_instruction: str = ""
    prompt: str | None = None
    repair: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_preserved_messages", 0)

    def __call__(self, situation: Situation) -> Steps:
        """Summarise when the window runs out."""
        return continuing(self._summarize, situation)

    def due(self, situation: Situation) -> bool:
        """Whether a threshold is reached."""
        window = known_window(situation, None, "kimi_cli/simple_compaction")
        tokens = situation.tokens(situation.context)
        if tokens >= window * self.trigger_ratio:
            return True
        return not (self.repair and self.reserved_context_size >= window) and (
            tokens + self.reserved_context_size >= window
        )

    def _summarize(self, situation: Situation) -> Compaction | Steps:
        if not self.due(situation):
            return Compaction()
        every = list(situation.context.entries())
        entries = every[leading_system(every) :]
        spoken = [at for at, entry in enumerate(entries) if entry.message.role in ("user", "assistant")]
        keep = self.max_preserved_messages
        if keep <= 0 or len(spoken) < keep or not spoken[-keep]:
            return Compaction()
        prompt = self.prompt or INSTRUCTION
        if self.custom_instruction:
            prompt = f"{prompt}\n\n{self.custom_instruction}"
        wording = Wording(prompt, prompt, PREFIX, max_summary_tokens=None)
        old = span(entries, 0, spoken[-keep])
        return summarized(situation, old, wording, Reading(calls=False), Acceptance(only_if_shorter=False))
