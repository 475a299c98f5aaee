"""What frameworks were seen to do on one session of eighteen messages, where no other test of a framework says so."""

from __future__ import annotations

import pytest

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.base import Situation
from compaction_lab.strategies.frameworks.agno_summary import choose_boundary
from compaction_lab.strategies.registry import strategy
from tests.strategies.fixture_f18 import f18
from tests.strategies.harness import CHARACTERS, Scribe, answered, nobody


def arm_on(name: str, counter: object = CHARACTERS, window: int | None = None, **parameters: object) -> ArmRun:
    placed = strategy(name, **parameters)
    return ArmRun(Log(f18()), (Slot(placed.run, placed.when, placed.history, counter),), (), window)


def marks(context: Context) -> str:
    """Return what is kept by index: ``S`` a summary, ``*`` a message whose text has changed."""
    own = context.log.messages
    found = []
    for (index, rank), message in zip(context.keys, context.messages, strict=True):
        changed = rank == 0 and message is not own[index]
        found.append("S" if message.source == "summary" or rank else f"{index}*" if changed else str(index))
    return " ".join(found)


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("truncation", {"max_n": 10, "compact_to": 6}, "0 14 15 16 17"),
        ("truncation", {"max_n": 10, "compact_to": 6, "preserve_first_user_group": True}, "0 1 14 15 16 17"),
        ("sliding_window", {"keep_last_groups": 3}, "0 14 15 16 17"),
        ("selective_tool_call", {}, "0 1 11 14 15 16 17"),
        ("tool_result", {}, "0 1 S S S S 11 S 14 15 16 17"),
        ("summarization", {}, "0 S 14 15 16 17"),
    ],
)
def test_agent_framework(name: str, parameters: dict[str, object], expected: str) -> None:
    arm = arm_on(f"agent_framework/{name}", **parameters)
    context = answered(arm.occasion("before_call", 18), Scribe("S") if name == "summarization" else nobody)
    assert marks(context) == expected


def test_autogen_pops_the_middle_and_tears_exchanges() -> None:
    """Bug list B5: a call without its results, a round gone."""
    arm = arm_on("autogen_core/token_limited_chat_completion_context", token_limit=400)
    assert marks(answered(arm.occasion("before_call", 18))) == "0 1 2 3 4 5 6 11 12 13 14 15 16 17"


def test_semantic_kernels_summariser_reads_user_texts_alone() -> None:
    scribe = Scribe()
    answered(arm_on("semantic_kernel/chat_history_summarization", target_count=4).occasion("before_call", 18), scribe)
    (read,) = scribe.read
    assert "TASK: fix bug" in read
    assert "also run the tests" in read
    assert "OUT c0a" not in read
    assert "step 0" not in read


@pytest.mark.parametrize(
    ("target", "expected"),
    [(400, "0 S 11 12 13 14 15 16 17"), (50, "0 S 17")],
)
def test_haystack_summarises_turn_by_turn(target: int, expected: str) -> None:
    shape = {"context_window": 1000, "compact_at": 0.41, "compact_to": target / 1000, "approximate_summary_tokens": 10}
    arm = arm_on("haystack/summarization_compactor", counting_rule("haystack_approximate"), **shape)
    assert marks(answered(arm.occasion("before_call", 18), Scribe())) == expected


@pytest.mark.parametrize(("target", "cleared"), [(400, [3, 5, 7, 8]), (200, [3, 5, 7, 8, 10, 13])])
def test_haystack_prunes_the_oldest_results_first(target: int, cleared: list[int]) -> None:
    shape = {"context_window": 1000, "compact_at": 0.41, "compact_to": target / 1000, "min_tokens": 20}
    arm = arm_on("haystack/tool_result_pruning_compactor", counting_rule("haystack_approximate"), **shape)
    context = answered(arm.occasion("before_call", 18))
    assert [at for at in range(18) if context.get((at, 0)) is not context.log.messages[at]] == cleared


class Content:
    """Four characters of content a token."""

    def message(self, message: Message) -> int:
        return -(-len(message.text) // 4)


@pytest.mark.parametrize(("keep_tokens", "boundary"), [(20, 16), (60, 14), (120, 11), (200, 9)])
def test_agno_cuts_where_no_exchange_is_parted(keep_tokens: int, boundary: int) -> None:
    log = Log(f18())
    situation = Situation(Context(log, 18), "before_call", Content())
    assert choose_boundary(list(situation.context.entries()), situation, keep_tokens) == boundary


class Hermes:
    """Four characters a token, ten more a message, and every call as it is written down."""

    def message(self, message: Message) -> int:
        written = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.calls
        ]
        return len(message.text) // 4 + 10 + sum(len(str(call)) // 4 for call in written)


@pytest.mark.parametrize(
    ("tail_tokens", "expected"),
    [
        (15_000, "0* 1 2 3 S 14 15 16 17"),
        (60, "0* 1 2 3* S 14 15 16 17"),
        (200, "0* 1 2 3* S 6 7* 8* 9 10* 11 12 13 14 15 16 17"),
    ],
)
def test_hermes_keeps_head_and_tail(tail_tokens: int, expected: str) -> None:
    shape = {"threshold_percent": 0.4, "summary_target_ratio": tail_tokens / 400, "protect_last_n": 3}
    arm = arm_on("hermes_agent/context_compressor", Hermes(), 1000, protect_first_n=2, **shape)
    assert marks(answered(arm.occasion("before_call", 18), Scribe())) == expected


def test_hermes_repaired_leaves_the_system_message_alone() -> None:
    """Bug list B79: a note in the system message costs the whole cached prefix."""
    arm = arm_on("hermes_agent/context_compressor", Hermes(), 1000, repair=True, protect_last_n=3, protect_first_n=2)
    assert marks(answered(arm.occasion("before_call", 18), Scribe())).startswith("0 1 2 3")


@pytest.mark.parametrize(("window", "calls"), [(100_000, 1), (700, 1), (450, 3)])
def test_crewai_splits_what_its_summariser_cannot_read_at_once(window: int, calls: int) -> None:
    """Its own instruction, some 180 tokens, counts towards what fits."""
    arm = arm_on("crewai/summarize_messages", context_window=window, prompt="Sum up. " * 90)
    scribe = Scribe()
    assert marks(answered(arm.occasion("overflow", 18), scribe)) == "0 S"
    assert len(scribe.requests) == calls
