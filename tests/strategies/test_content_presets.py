"""Every preset that changes content: what it promises holds, and what it says it breaks is all it breaks."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Reasoning, Text, ToolCall, assistant, tool, user
from compaction_lab.conversation.validity import check
from compaction_lab.strategies.registry import PlacedStrategy, build, preset
from tests.conversations import conversations, messy_conversations, shown
from tests.strategies.harness import every_occasion, slot

PROMISED = ("V1", "V2", "V3", "V4", "V5", "V8", "V13", "V16")
NEVER = {"trigger": None}
EAGER: dict[str, dict[str, object]] = {
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
"""Parameters with which each preset acts on conversations of a few dozen short messages."""


def eager(name: str) -> PlacedStrategy:
    return build({**preset(name), **EAGER[name]})


def own_violations(about: Mapping[str, object]) -> set[str]:
    return set(re.findall(r"\bV\d+\b", str(about.get("violates", ""))))


@pytest.mark.parametrize("name", EAGER)
def test_the_preset_says_all_that_a_user_asks(name: str) -> None:
    node = preset(name)
    about = node["about"]
    assert isinstance(about, Mapping)
    for key in (
        "description",
        "mechanism",
        "mirrors",
        "parity",
        "unit",
        "cache",
        "keeps_task",
        "violates",
        "configure",
    ):
        assert key in about, key
    assert about["needs_llm"] is False
    assert re.match(r"faithful|approximate \(|interface only \(", str(about["parity"]))
    own = set(node) - {"kind", "preset", "about", "trigger", "tokenizer", "placement"}
    assert own <= set(about["parameters"])  # type: ignore[arg-type]


@given(conversations(), st.sampled_from(sorted(EAGER)))
def test_what_was_valid_stays_valid_but_for_what_the_preset_says(messages: list[Message], name: str) -> None:
    about = preset(name)["about"]
    assert isinstance(about, Mapping)
    rules = tuple(rule for rule in PROMISED if rule not in own_violations(about))
    log = Log(messages)
    for _, stop, context, _ in every_occasion(messages, slot(eager(name))):
        found = check(context.messages, before=log.messages[:stop], rules=rules)
        assert not found, (name, found, shown(log.messages[:stop]), shown(context.messages))


@given(st.one_of(conversations(), messy_conversations()), st.sampled_from(sorted(EAGER)))
def test_pinned_messages_stay_and_nothing_is_ever_lost_from_the_log(messages: list[Message], name: str) -> None:
    copies = list(messages)
    for _, stop, context, _ in every_occasion(messages, slot(eager(name))):
        for at, message in enumerate(messages[:stop]):
            assert not message.pinned or context.get((at, 0)) is message, (name, shown([message]))
    assert all(left is right for left, right in zip(messages, copies, strict=True))


@pytest.mark.parametrize("name", sorted(set(EAGER) - {"sweagent/closed_window_history"}))
def test_each_preset_acts(name: str) -> None:
    long = "a line of the result of a long command\n" * 30
    messages: list[Message] = []
    for turn in range(4):
        messages.append(user(f"turn {turn}"))
        for step in range(3):
            call = ToolCall(f"c{turn}{step}", "look", '{"at": "' + "x" * 40 + '"}')
            thought = Message("assistant", (Reasoning("hm"), Text("thinking aloud, " * 5)), (call,))
            messages += [thought, tool(call.id, long, name="look")]
        messages.append(assistant("answer"))
    fired = sum(len(arm.firings) for _, _, _, arm in every_occasion(messages, slot(eager(name))))
    if name == "sweagent/tag_tool_call_observations":
        assert fired == 0  # labels are no part of a prompt
    else:
        assert fired > 0
