"""Codex CLI's compaction: user messages stay verbatim up to a budget, everything else becomes a user-role summary."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Situation, Steps
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import TokensExceed, known_window

SHARE = 0.9
PREFIX = "Another model worked on this task before and left this summary of its work:\n"


@register("codex/compact", semantics=1)
@dataclass(frozen=True, slots=True)
class Compact:
    """Replace all work by a summary, keep the newest user messages (mechanism M20).

    Parameters
    ----------
    model_auto_compact_token_limit
        Act when the request has at least this many tokens; ``None``: 90 % of the window.
    compact_user_message_max_tokens
        Tokens of user messages that stay, the newest first, the one on the border clipped.
    compact_prompt
        ``None``: the lab's own.
    """

    model_auto_compact_token_limit: int | None = None
    compact_user_message_max_tokens: int = 20_000
    compact_prompt: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "compact_user_message_max_tokens", 0)

    def __call__(self, situation: Situation) -> Steps:
        """Compact when the limit is reached."""
        limit = self.model_auto_compact_token_limit
        if limit is None:
            limit = int(known_window(situation, None, "codex/compact") * SHARE)
        compacting = Summarize(
            keep=0,
            unit="message",
            user_tokens=self.compact_user_message_max_tokens,
            prompt=self.compact_prompt,
            prefix=PREFIX,
            max_summary_tokens=None,
            input_tokens=situation.window_tokens,
            fit="drop_oldest",
            only_if_shorter=False,
        )
        return when_due(TokensExceed(limit - 1), compacting, situation)
