"""Deep Agents: huge messages go to files when they arrive, long arguments of older calls are cut."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.base import Compaction, Pipeline, Situation, Steps, Strategy
from compaction_lab.strategies.mechanisms.call_inputs import ClearInputs
from compaction_lab.strategies.mechanisms.offloading import OffloadResults
from compaction_lab.strategies.registry import at_least, register

CHARACTERS_PER_TOKEN = 4


@register("deepagents/filesystem_middleware", semantics=1)
@dataclass(frozen=True, slots=True)
class DeepAgentsEviction:
    """Write huge tool results and huge user messages to files when they arrive (deepagents 0.7.32).

    Parameters
    ----------
    tool_token_limit_before_evict, human_message_token_limit_before_evict
        Size from which a tool result, or a user message, is written out, at four characters a token; null: never.
    """

    tool_token_limit_before_evict: int | None = 20_000
    human_message_token_limit_before_evict: int | None = 50_000

    def _parts(self) -> tuple[Strategy, ...]:
        limits = (
            ("tool", self.tool_token_limit_before_evict, "large_tool_results/{call_id}"),
            ("user", self.human_message_token_limit_before_evict, "conversation_history/{index}"),
        )
        return tuple(
            OffloadResults(
                min_characters=CHARACTERS_PER_TOKEN * limit,
                head=5,
                tail=5,
                preview="lines",
                gap="\n... [lines left out] ...\n",
                ellipsis="",
                handle=handle,
                stand_in="[{characters} characters were saved to /{handle}. First and last lines:]\n{preview}",
                roles=(role,),
            )
            for role, limit, handle in limits
            if limit
        )

    def __call__(self, situation: Situation) -> Steps:
        """Evict."""
        return Pipeline(self._parts())(situation)


@register("deepagents/truncate_args", semantics=1)
@dataclass(frozen=True, slots=True)
class DeepAgentsTruncateArgs:
    """Cut long arguments of older file-writing calls (deepagents 0.7.32, ``truncate_args_settings``).

    Parameters
    ----------
    keep_messages
        Newest messages whose calls stay; with 0 Deep Agents cuts nothing.
    max_length
        Longer text values are cut to their first 20 characters.
    truncation_text
        Put behind a cut value.
    tools
        Tools whose calls are meant.
    """

    keep_messages: int = 20
    max_length: int = 2000
    truncation_text: str = "...(argument truncated)"
    tools: tuple[str, ...] = ("write_file", "edit_file")

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_messages", 0)
        at_least(self, "max_length", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Cut."""
        if not self.keep_messages:
            return Compaction()
        return ClearInputs(
            self.keep_messages,
            "message",
            "shorten",
            self.max_length,
            marker=self.truncation_text,
            only_tools=self.tools,
        )(situation)
