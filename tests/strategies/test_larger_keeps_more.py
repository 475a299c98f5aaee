"""A larger window never keeps less: for every preset whose size says how much stays, on the same conversations."""

from __future__ import annotations

from functools import cache

import pytest

from compaction_lab.conversation.context import Key
from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.registry import PlacedStrategy, build, preset
from tests.strategies.eager import EAGER
from tests.strategies.harness import answered
from tests.strategies.test_every_preset import PINNED, VALID, arm_on, moments, reply

SIZES = {
    "ag2/history_limiter": "max_events",
    "ag2/tail_window_compact": "target",
    "ag2/token_limiter": "max_tokens",
    "agent_framework/sliding_window": "keep_last_groups",
    "agents/session_settings": "limit",
    "agno/num_history_runs": "num_history_runs",
    "anthropic/clear_tool_uses": "keep",
    "autogen/message_history_limiter": "max_messages",
    "autogen/message_token_limiter": "max_tokens",
    "autogen_core/buffered_chat_completion_context": "buffer_size",
    "autogen_core/head_and_tail_chat_completion_context": "tail_size",
    "autogen_core/token_limited_chat_completion_context": "token_limit",
    "clear_results": "keep_last",
    "collapse_calls": "keep_last",
    "google_adk/context_filter_plugin": "num_invocations_to_keep",
    "goose/oldest_first": "context_limit",
    "inspect_ai/compaction_edit": "keep_tool_uses",
    "jetbrains/observation_masking": "n",
    "langchain/clear_tool_uses_edit": "keep",
    "langchain_core/trim_messages": "max_tokens",
    "llama_index/chat_memory_buffer": "token_limit",
    "llama_index/memory": "token_limit",
    "observation_masking": "keep_last",
    "openhands/observation_masking": "attention_window",
    "openhands/recent_events": "max_events",
    "pydantic_ai_harness/clear_tool_results": "keep_pairs",
    "pydantic_ai_harness/sliding_window_compaction": "keep_messages",
    "qwen_code/microcompact": "tool_results_num_to_keep",
    "semantic_kernel/chat_history_truncation": "target_count",
    "sliding_window": "keep_last",
    "strands/sliding_window_conversation_manager": "window_size",
    "sweagent/last_n_observations": "n",
    "tail_window": "keep",
    "truncation": "max_tokens",
}
"""The parameter of each preset that says how much stays."""
STEPS = (1, 2, 5)
CONVERSATIONS = [messages for messages in (*VALID, *PINNED) if any(m.role == "assistant" for m in messages)]


@cache
def sized(name: str, more: int) -> PlacedStrategy:
    """Return a preset whose size is ``more`` than the eager one's."""
    chosen = {**preset(name), **EAGER[name]}
    size = chosen[SIZES[name]]
    assert isinstance(size, int)
    return build({**chosen, SIZES[name]: size + more})


def kept(name: str, messages: list[Message], more: int) -> set[Key]:
    """Return where messages stand as they were said, by a preset of that size."""
    placed = sized(name, more)
    arm = arm_on(messages, placed)
    occasion, stop = moments(arm.log, placed)[-1]
    context = answered(arm.occasion(occasion, stop), reply)
    return {entry.key for entry in context.entries() if entry.message is messages[entry.key[0]]}


@pytest.mark.parametrize("name", SIZES)
def test_a_larger_size_never_keeps_less(name: str) -> None:
    for messages in CONVERSATIONS:
        smallest = kept(name, messages, 0)
        for more in STEPS:
            assert not (lost := smallest - kept(name, messages, more)), (more, lost)
