"""For every preset, parameters with which it acts on conversations of a few dozen short messages."""

from __future__ import annotations

from functools import cache

from compaction_lab.strategies.catalogue import rows
from compaction_lab.strategies.registry import PlacedStrategy, build, preset

NEVER = {"trigger": None}
WINDOW_TOKENS = 300
"""The model's window that these parameters go with."""

CONTENT: dict[str, dict[str, object]] = {
    "agents/tool_output_trimmer": {"recent_turns": 1, "max_output_chars": 30, "preview_chars": 5},
    "agentscope/tool_result_limit": {"max_tokens": 10, "keep_head": 10, "keep_tail": 10},
    "ai/prune_messages": {"reasoning": "before-last-message"},
    "anthropic/clear_thinking": {},
    "anthropic/clear_tool_uses": {"keep": 1, "clear_tool_inputs": True} | NEVER,
    "camel/prune_tool_calls_from_memory": {},
    "cline/deduplicate_file_reads": {"tools": [], "arguments": ["at"]} | NEVER,
    "deepagents/filesystem_middleware": {"tool_token_limit_before_evict": 10},
    "deepagents/truncate_args": {"keep_messages": 2, "max_length": 30, "tools": ["look"]} | NEVER,
    "gemini_cli/tool_output_masking": {"tool_protection_threshold": 10, "min_prunable_tokens_threshold": 5},
    "haystack/tool_result_offload_compactor": {"context_window": 60, "min_tokens": 5, "preview_chars": 5},
    "haystack/tool_result_pruning_compactor": {"context_window": 60, "min_tokens": 5},
    "hermes_agent/prune_old_tool_results": {"protect_last_n": 2} | NEVER,
    "hermes_agent/static_fallback_summary": {"keep_last": 2, "max_characters": 200} | NEVER,
    "inspect_ai/compaction_edit": {"keep_tool_uses": 1} | NEVER,
    "jetbrains/observation_masking": {"n": 2},
    "langchain/clear_tool_uses_edit": {"keep": 1, "clear_tool_inputs": True} | NEVER,
    "minisweagent/observation_limit": {"max_characters": 40, "head": 10, "tail": 10},
    "opencode/prune": {"prune_protect": 10, "prune_minimum": 5, "protect_turns": 1},
    "openhands/browser_output": {"browser_tools": ["look"]},
    "openhands/observation_masking": {"attention_window": 3},
    "pydantic_ai_harness/clamp_oversized_messages": {"max_part_chars": 40, "keep_head_chars": 5, "keep_tail_chars": 5},
    "pydantic_ai_harness/clear_tool_results": {"keep_pairs": 1} | NEVER,
    "pydantic_ai_harness/deduplicate_file_reads": {"read_tools": [], "path_arguments": ["at"]},
    "pydantic_ai_harness/tool_output_limits": {"bands": [{"over": 50, "action": "truncate", "max_characters": 40}]},
    "qwen_code/microcompact": {"tool_results_num_to_keep": 1, "compactable_tools": ["look"]} | NEVER,
    "smolagents/output_limit": {"max_characters": 40, "keep_head": 10, "keep_tail": 10},
    "strands/context_offloader": {"max_result_tokens": 10, "preview_tokens": 2},
    "strands/truncate_results": NEVER,
    "sweagent/closed_window_history": {},
    "sweagent/last_n_observations": {"n": 2, "polling": 2},
    "sweagent/remove_regex": {"remove": ["the "]},
    "sweagent/tag_tool_call_observations": {"function_names": ["look"], "label": "observations"},
}
"""Presets of frameworks that change content."""
MORE_CONTENT: dict[str, dict[str, object]] = {
    "clear_beyond_tokens": {"protect_tokens": 20},
    "clear_inputs": {"keep_last": 2, "max_characters": 10},
    "clear_media": {"keep_last": 0},
    "clear_reasoning": {"keep_last": 0},
    "clear_results": {"keep_last": 1},
    "clear_superseded": {"by": "content"},
    "clip_parts": {"max_characters": 40, "keep_head": 5, "keep_tail": 5},
    "collapse_calls": {"keep_last": 1},
    "digest_prefix": {"keep_last": 1, "unit": "step", "min_messages": 2, "max_characters": 200},
    "limit_results": {"bands": [{"over": 50, "action": "spill"}]},
    "observation_masking": {"keep_last": 1},
    "offload_results": {"min_tokens": None, "min_characters": 40, "head": 5},
    "remove_patterns": {"patterns": ["the "]},
    "semantic_kernel/observation_masking": {},
    "agent_framework/tool_result": {},
    "agent_framework_dotnet/tool_result": {"trigger": "has_tool_calls", "minimum_preserved": 2},
}
SUMMARISING: dict[str, dict[str, object]] = {
    "summarization": {"every": 1, "unit": "step"},
    "summarize": {"keep": 1, "unit": "step"},
    "chunked_summary": {"keep": 1, "unit": "step", "chunk_tokens": 100},
    "langchain/summarization_middleware": {"trigger": {"messages": 5}, "keep": {"messages": 3}},
    "langmem/summarize_messages": {"max_tokens": 300, "max_tokens_before_summary": 100, "max_summary_tokens": 50},
    "deepagents/summarization_middleware": {"trigger": {"messages": 5}, "keep": {"messages": 3}},
    "strands/summarizing_conversation_manager": {"proactive_compression": 0.1, "preserve_recent_messages": 2},
    "semantic_kernel/chat_history_summarization": {"target_count": 4},
    "inspect_ai/compaction_summary": {"threshold": 100},
    "llama_index/chat_summary_memory_buffer": {"token_limit": 200},
    "haystack/summarization_compactor": {"compact_at": 0.5, "compact_to": 0.2, "approximate_summary_tokens": 10},
    "kimi_cli/simple_compaction": {},
    "aider/chat_summary": {"max_tokens": 200},
    "crewai/summarize_messages": {"context_window": 400},
    "google_adk/events_compaction_token": {"token_threshold": 1, "event_retention_size": 3},
    "openhands/llm_summarizing": {"max_size": 8, "keep_first": 1},
    "openhands/structured_summary": {"max_size": 8, "keep_first": 1},
    "openhands_sdk/llm_summarizing": {"max_size": 12},
    "pydantic_ai_harness/summarizing_compaction": {"max_messages": 5, "max_tokens": None, "keep_messages": 3},
    "agno/compaction": {"compact_at_tokens": 100, "uncompacted_tokens": 100},
    "codex/compact": {"model_auto_compact_token_limit": 100, "compact_user_message_max_tokens": 20},
    "gemini_cli/chat_compression": {},
    "pi/compaction": {"reserve_tokens": 200, "keep_recent_tokens": 100},
    "goose/context_compaction": {},
    "letta/compaction": {},
    "roo_code/condense": {},
    "cline/agentic_compaction": {"preserve_recent_tokens": 100},
    "opencode/compact": {"reserved": 200, "tail_turns": 0},
    "vibe/auto_compact": {"auto_compact_threshold": 100},
    "camel/chat_agent_summary": {"token_limit": 1000, "summarize_threshold": 20},
    "agentscope/context_compression": {},
    "hermes_agent/context_compressor": {"protect_first_n": 1, "min_summary_tokens": 10},
    "jetbrains/llm_summary": {"n": 2, "keep_last_m_turns": 1},
}
"""Presets that ask for a summary of what is old."""
MORE_ASKING: dict[str, dict[str, object]] = {
    "hybrid": {"mask_keep_last": 1, "every": 1},
    "jetbrains/hybrid": {"n": 2, "keep_last_m_turns": 1, "window": 1},
    "semantic_kernel/summarization": {"every": 2},
    "semantic_kernel/hybrid": {"every": 2},
    "memory_blocks": {"token_limit": 120, "token_flush_size": 20},
    "overlapping_summaries": {"compaction_interval": 1},
    "google_adk/events_compaction_interval": {"compaction_interval": 1, "overlap_size": 1},
    "rank_messages": {"max_size": 6},
    "openhands/llm_attention": {"max_size": 6},
    "rewrite_results": {"limit": 1},
    "agno/compression_manager": {"compress_tool_results_limit": 1},
    "letta/self_compaction": {"threshold": 0.4},
    "qwen_code/chat_compression": {"auto_compact_threshold": 0.4},
    "agent_framework/summarization": {"target_count": 3, "threshold": 1},
    "agent_framework_dotnet/summarization": {"trigger": {"groups_exceed": 5}, "minimum_preserved": 2},
    "opaque_compaction": {"source": "endpoint", "threshold": 100},
    "anthropic/compact": {},
    "openai/compact": {"source": "endpoint", "compact_threshold": 100},
}
DROPPING: dict[str, dict[str, object]] = {
    "head_and_tail": {"head": 2, "tail": 3},
    "head_window": {"keep": 6},
    "hysteresis": {"high": 8},
    "middle_out": {"budget_tokens": 120},
    "sliding_window": {"keep_last": 1, "unit": "step"},
    "tail_window": {"keep": 4},
    "tool_pair_removal": {"keep_last": 1},
    "truncation": {"max_tokens": 120},
    "ag2/history_limiter": {"max_events": 4},
    "ag2/tail_window_compact": {"target": 4},
    "ag2/token_limiter": {"max_tokens": 100},
    "agent_framework/context_window": {"max_context_window_tokens": 200, "max_output_tokens": 10},
    "agent_framework/selective_tool_call": {},
    "agent_framework/sliding_window": {"keep_last_groups": 3},
    "agent_framework/truncation": {"max_n": 6, "compact_to": 3},
    "agent_framework/token_budget_composed": {
        "token_budget": 300,
        "tokenizer": "characters",
        "strategies": [{"preset": "agent_framework/tool_result"}],
    },
    "agent_framework_dotnet/chat_reducer": {"reducer": {"preset": "tail_window", "keep": 4}},
    "agent_framework_dotnet/context_window": {"max_context_window_tokens": 120, "max_output_tokens": 10},
    "agent_framework_dotnet/pipeline": {
        "strategies": [
            {"preset": "agent_framework_dotnet/tool_result", "trigger": "has_tool_calls", "minimum_preserved": 2},
            {"preset": "agent_framework_dotnet/truncation", "trigger": {"groups_exceed": 5}, "minimum_preserved": 2},
        ]
    },
    "agent_framework_dotnet/sliding_window": {"trigger": {"turns_exceed": 1}},
    "agent_framework_dotnet/truncation": {"trigger": {"groups_exceed": 4}, "minimum_preserved": 2},
    "agents/session_settings": {"limit": 4},
    "agno/num_history_runs": {"num_history_runs": 1},
    "autogen/message_history_limiter": {"max_messages": 4},
    "autogen/message_token_limiter": {"max_tokens_per_message": 20, "max_tokens": 100},
    "autogen_core/buffered_chat_completion_context": {"buffer_size": 4},
    "autogen_core/head_and_tail_chat_completion_context": {"head_size": 2, "tail_size": 3},
    "autogen_core/token_limited_chat_completion_context": {"token_limit": 120},
    "browser_use/max_history_items": {"max_history_items": 6},
    "cline/basic_compaction": {"threshold_ratio": 0.4, "target_ratio": 0.2, "keep_assistant_texts": 1},
    "cline/truncate": {"max_allowed_tokens": 120},
    "codex/drop_oldest": {},
    "google_adk/context_filter_plugin": {"num_invocations_to_keep": 1},
    "goose/oldest_first": {"context_limit": 120},
    "haystack/sliding_window_compactor": {"compact_at": 0.5, "compact_to": 0.2},
    "inspect_ai/compaction_trim": {"preserve": 0.5, "trigger": {"tokens_exceed": 120}},
    "langchain_core/trim_messages": {"max_tokens": 120},
    "llama_index/chat_memory_buffer": {"token_limit": 120},
    "llama_index/memory": {"token_limit": 120, "token_flush_size": 20},
    "openhands/amortized_forgetting": {"max_size": 8},
    "openhands/conversation_window": {},
    "openhands/recent_events": {"max_events": 5},
    "pydantic_ai_harness/sliding_window_compaction": {"max_messages": 6, "keep_messages": 3},
    "roo_code/truncate": {"context_window": 200, "max_tokens": 20},
    "semantic_kernel/chat_history_truncation": {"target_count": 4},
    "strands/sliding_window_conversation_manager": {"window_size": 4, "per_turn": True},
}
COMPOSED: dict[str, dict[str, object]] = {
    "budget_composed": {"token_budget": 120, "strategies": [{"preset": "observation_masking", "keep_last": 1}]},
    "fallback": {"strategies": [{"preset": "summarize", "keep": 1, "unit": "step"}, {"preset": "sliding_window"}]},
    "first_that_acts": {
        "strategies": [{"preset": "observation_masking", "keep_last": 1}, {"preset": "sliding_window"}]
    },
    "guarded": {"strategy": {"preset": "summarize", "keep": 1, "unit": "step"}, "only_if_shorter": True},
    "ladder": {
        "soft_tokens": 80,
        "soft": {"preset": "observation_masking", "keep_last": 1},
        "hard_tokens": 150,
        "hard": {"preset": "sliding_window", "keep_last": 1, "unit": "step"},
    },
    "pipeline": {
        "strategies": [{"preset": "observation_masking", "keep_last": 1}, {"preset": "truncation", "max_tokens": 150}]
    },
    "until_target": {
        "target_tokens": 120,
        "strategies": [{"preset": "observation_masking", "keep_last": 1}, {"preset": "sliding_window", "keep_last": 1}],
    },
    "pydantic_ai_harness/fallback_compaction": {
        "max_tokens": 100,
        "fallback_chain": [{"preset": "summarize", "keep": 1, "unit": "step"}, {"preset": "sliding_window"}],
    },
    "pydantic_ai_harness/tiered_compaction": {
        "target_tokens": 120,
        "strategies": [
            {"preset": "pydantic_ai_harness/clear_tool_results", "keep_pairs": 1, "trigger": None},
            {"preset": "pydantic_ai_harness/sliding_window_compaction", "max_messages": 6, "keep_messages": 3},
        ],
    },
}
LEAVES_ALL = (
    "none",
    "openhands/no_op",
    "strands/null_conversation_manager",
    "autogen_core/unbounded_chat_completion_context",
    "sweagent/cache_control_history",
    "sweagent/tag_tool_call_observations",
)
"""Presets that change nothing that is sent."""
NOT_HERE = {
    "foreign": "someone else's code",
    "token_compression": "needs llmlingua and its weights",
    "llmlingua/prompt_compressor": "needs llmlingua and its weights",
}
EAGER = CONTENT | MORE_CONTENT | SUMMARISING | MORE_ASKING | DROPPING | COMPOSED | {name: {} for name in LEAVES_ALL}
NAMES = [row["strategy"] for row in rows() if row["strategy"] not in NOT_HERE]


@cache
def eager(name: str) -> PlacedStrategy:
    """Return a preset with the parameters above."""
    return build({**preset(name), **EAGER[name]})
