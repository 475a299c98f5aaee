"""The presets that drop messages against what their frameworks did: frozen answers, known facts, and langchain-core."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Text, ToolCall, assistant, system, tool, user
from compaction_lab.strategies.base import Occasion
from compaction_lab.strategies.registry import strategy
from oracles.window_cases import FRAMEWORKS, case, ours, packed
from tests.strategies.harness import answered

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*_windows.jsonl"))
LIVE_CASES = 500


def f18() -> list[Message]:
    """Eighteen messages: a system prompt, a task, six rounds of tools (the third calls two), two more requests."""
    messages = [system("SYS"), user("TASK: fix bug, never touch db.py")]
    for number in range(6):
        name = "read" if number % 2 == 0 else "bash"
        ids = [f"c{number}a", *(["c2b"] if number == 2 else [])]
        calls = [ToolCall(call_id, name, json.dumps({"p": f"f{number}.py"})) for call_id in ids]
        messages.append(assistant(f"step {number}", *calls))
        messages += [tool(call_id, f"OUT {call_id} " + "x" * 200, name=name) for call_id in ids]
        if number == 3:
            messages.append(user("also run the tests"))
    return [*messages, assistant("done"), user("summarise changes")]


def kept(name: str, messages: Sequence[Message], when: Occasion | None = None, **parameters: object) -> list[int | str]:
    """Return which messages a preset keeps, what it changed or added as text."""
    placed = strategy(name, **parameters)
    counting = counting_rule(placed.tokenizer or "characters")
    arm = ArmRun(Log(messages), (Slot(placed.run, when or placed.when, placed.history, counting),))
    context = answered(arm.occasion(when or placed.when, len(messages)))
    own = {id(message): at for at, message in enumerate(messages)}
    return [own.get(id(message), message.text) for message in context.messages]


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_frozen_answers_of_the_frameworks(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines
    for number, line in enumerate(lines):
        frozen = json.loads(line)
        mine = packed(frozen["case"], ours(frozen["case"]))
        assert mine == frozen["kept"], (number, frozen["case"]["kind"], frozen["case"]["parameters"])


def test_langchain_core_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_core.messages", reason="langchain-core is not installed (it is part of [test])")
    monkeypatch.syspath_prepend(str(ROOT / "oracles"))
    bridge = importlib.import_module("langchain_core_windows")
    dropped = 0
    for number in range(10_000, 10_000 + LIVE_CASES):
        made = case("langchain_core", number)
        theirs = bridge.answer(made)
        dropped += len(theirs[0]) < len(made["messages"])
        assert ours(made) == theirs, (number, made["parameters"])
    assert dropped > LIVE_CASES // 2


def test_every_framework_with_cases_has_frozen_answers() -> None:
    assert {file.stem.removesuffix("_windows") for file in GOLDEN} == FRAMEWORKS.keys()


TAIL_11 = [0, *range(11, 18)]
FACTS = [
    ("langchain_core/trim_messages", {"max_tokens": 5, "token_counter": "len"}, [13, 14, 15, 16, 17]),
    (
        "langchain_core/trim_messages",
        {"max_tokens": 5, "token_counter": "len", "start_on": "human", "include_system": True},
        [0, 17],
    ),
    ("langchain_core/trim_messages", {"max_tokens": 400, "start_on": "human", "include_system": True}, TAIL_11),
    ("inspect_ai/compaction_trim", {"preserve": 0.8, "trigger": "always"}, [0, 1, *range(6, 18)]),
    ("inspect_ai/compaction_trim", {"preserve": 0.5, "trigger": "always"}, [0, 1, *range(11, 18)]),
    ("inspect_ai/compaction_trim", {"preserve": 0.35, "trigger": "always"}, [0, 1, *range(12, 18)]),
    ("pydantic_ai_harness/sliding_window_compaction", {"max_messages": 1, "keep_messages": 3}, [0, 1, 14, 15, 16, 17]),
    ("pydantic_ai_harness/sliding_window_compaction", {"max_messages": 1, "keep_messages": 4}, [0, 1, 14, 15, 16, 17]),
    ("pydantic_ai_harness/sliding_window_compaction", {"max_messages": 1, "keep_messages": 6}, [0, 1, *range(12, 18)]),
    ("pydantic_ai_harness/sliding_window_compaction", {"max_messages": 1, "keep_tokens": 120}, [0, 1, *range(12, 18)]),
    ("llama_index/chat_memory_buffer", {"token_limit": 400, "tokenizer": "characters"}, [*range(18)]),
    ("llama_index/chat_memory_buffer", {"token_limit": 200, "tokenizer": "characters"}, [*range(11, 18)]),
    ("llama_index/chat_memory_buffer", {"token_limit": 100, "tokenizer": "characters"}, [17]),
    (
        "llama_index/memory",
        {"token_limit": 400, "token_flush_size": 100, "tokenizer": "characters"},
        [*range(11, 18)],
    ),
    ("autogen_core/buffered_chat_completion_context", {"buffer_size": 5}, [14, 15, 16, 17]),
    ("autogen_core/buffered_chat_completion_context", {"buffer_size": 3}, [16, 17]),
    (
        "autogen_core/head_and_tail_chat_completion_context",
        {"head_size": 3, "tail_size": 3},
        [0, 1, "Skipped 11 messages.", 16, 17],
    ),
    (
        "autogen_core/head_and_tail_chat_completion_context",
        {"head_size": 2, "tail_size": 4},
        [0, 1, "Skipped 11 messages.", 14, 15, 16, 17],
    ),
    ("autogen/message_history_limiter", {"max_messages": 5}, [14, 15, 16, 17]),
    ("autogen/message_history_limiter", {"max_messages": 5, "keep_first_message": True}, [0, 14, 15, 16, 17]),
    ("autogen/message_history_limiter", {"max_messages": 11}, [*range(8, 18)]),
    ("autogen/message_history_limiter", {"max_messages": 10}, [*range(9, 18)]),
    ("autogen/message_token_limiter", {"max_tokens": 200}, [17]),
    ("agents/session_settings", {"limit": 6, "counts_input": True}, [0, 13, 14, 15, 16, 17]),
    ("google_adk/context_filter_plugin", {"num_invocations_to_keep": 1}, [0, 17]),
    ("google_adk/context_filter_plugin", {"num_invocations_to_keep": 2}, TAIL_11),
    ("google_adk/context_filter_plugin", {"num_invocations_to_keep": 1, "remove_amount": 3}, [*range(18)]),
    ("strands/sliding_window_conversation_manager", {"window_size": 4}, [0, 17]),
    ("strands/sliding_window_conversation_manager", {"window_size": 6}, [0, 17]),
    ("strands/sliding_window_conversation_manager", {"window_size": 8}, TAIL_11),
    ("strands/sliding_window_conversation_manager", {"window_size": 4, "pin_first": 1}, [0, 1, 17]),
    ("semantic_kernel/chat_history_truncation", {"target_count": 3}, [0, 16, 17]),
    ("semantic_kernel/chat_history_truncation", {"target_count": 4}, [0, *range(12, 18)]),
    ("semantic_kernel/chat_history_truncation", {"target_count": 7, "threshold_count": 3}, TAIL_11),
    ("semantic_kernel/chat_history_truncation", {"target_count": 10}, [0, *range(2, 18)]),
    ("semantic_kernel/chat_history_truncation", {"target_count": 1}, [0]),
    (
        "haystack/sliding_window_compactor",
        {"context_window": 1000, "compact_at": 0.41, "omission_note": "gone {num_removed}"},
        [0, "gone 10", *range(11, 18)],
    ),
    (
        "haystack/sliding_window_compactor",
        {"context_window": 125, "omission_note": "gone {num_removed}"},
        [0, "gone 16", 17],
    ),
]


@pytest.mark.parametrize(("name", "parameters", "expected"), FACTS, ids=lambda value: str(value)[:60])
def test_known_facts(name: str, parameters: dict[str, object], expected: list[int | str]) -> None:
    assert kept(name, f18(), **parameters) == expected


def test_a_window_over_a_tool_loop_leaves_the_system_message_alone() -> None:
    parameters = {"max_tokens": 3, "token_counter": "len", "start_on": "human", "include_system": True}
    assert kept("langchain_core/trim_messages", f18()[:-2], **parameters) == [0]


def test_a_message_that_is_cut_may_leave_a_fragment_of_a_result_in_front() -> None:
    """ag2's token limiter (bug list B103): 20 tokens a message, 100 in all."""
    found = kept("autogen/message_token_limiter", f18(), max_tokens_per_message=20, max_tokens=100)
    assert (len(found), found[0]) == (11, "OUT c")


def events() -> list[Message]:
    """A user message and six rounds of an action and its observation."""
    rounds = [(assistant("", ToolCall(f"a{n}", "run", "{}")), tool(f"a{n}", f"result {n}")) for n in range(6)]
    return [user("task"), *(message for pair in rounds for message in pair)]


def test_openhands_condensers() -> None:
    assert kept("openhands/recent_events", events(), max_events=5) == [0, 9, 10, 11, 12]
    assert kept("openhands/amortized_forgetting", events(), max_size=8) == [0, 10, 11, 12]
    assert kept("openhands/conversation_window", events(), when="overflow") == [0, *range(7, 13)]


def test_a_short_history_gets_its_head_twice_unless_repaired() -> None:
    """OpenHands RecentEvents (bug list B104)."""
    short = events()[:3]
    assert kept("openhands/recent_events", short, max_events=20) == [0, 0, 1, 2]
    assert kept("openhands/recent_events", short, max_events=20, repair=True) == [0, 1, 2]
    assert len(kept("openhands/recent_events", events(), max_events=1)) == 14


def test_results_without_their_call_can_be_repaired_away() -> None:
    """LangChain (B1), autogen (B5), LlamaIndex (B7), the Agents SDK (B8), ag2 (B103)."""
    window = {"max_tokens": 5, "token_counter": "len"}
    assert kept("langchain_core/trim_messages", f18(), repair=True, **window) == [14, 15, 16, 17]
    middle = kept("autogen_core/token_limited_chat_completion_context", f18(), token_limit=400)
    assert {6, 7} - set(middle)
    assert not {6, 7, 8} <= set(middle)
    mended = kept("autogen_core/token_limited_chat_completion_context", f18(), token_limit=400, repair=True)
    assert not {6, 7, 8} & set(mended)
    assert kept("agents/session_settings", f18(), limit=6, counts_input=True, repair=True) == [0, 14, 15, 16, 17]
    assert kept("autogen/message_history_limiter", f18(), max_messages=11, repair=True) == [*range(9, 18)]
    loop = [user("task"), *events()[1:]]
    lone = kept("llama_index/chat_memory_buffer", loop, token_limit=1, tokenizer="characters")
    assert lone == [12]
    assert kept("llama_index/chat_memory_buffer", loop, token_limit=1, tokenizer="characters", repair=True) == []


def test_the_task_is_what_semantic_kernel_drops_first() -> None:
    """Bug list B23: a target of ten on eighteen messages removes the task alone."""
    found = kept("semantic_kernel/chat_history_truncation", f18(), target_count=10)
    assert set(range(18)) - set(found) == {1}


def test_an_overflow_clips_only_the_oldest_result() -> None:
    """Strands (bug list B101): a small oldest result is left, and messages go instead of the large newest result."""
    messages = [user("a"), assistant("", ToolCall("c1", "f", "{}")), tool("c1", "small"), user("b")]
    messages += [assistant("", ToolCall("c2", "f", "{}")), tool("c2", "x" * 50_000)]
    name = "strands/sliding_window_conversation_manager"
    assert kept(name, messages, when="overflow") == [3, 4, 5]
    large = [*messages[:2], Message("tool", (Text("y" * 1_000),), call_id="c1"), *messages[3:]]
    clipped = kept(name, large, when="overflow")
    assert len(clipped) == 6
    assert str(clipped[2]).startswith("y" * 200 + "...")
    assert "600 chars removed" in str(clipped[2])
