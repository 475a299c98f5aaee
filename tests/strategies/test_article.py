"""The article's three strategies (SemanticKernelContextManagement, April 2026), exactly as its code behaves."""

from __future__ import annotations

import pytest

from compaction_lab.conversation.messages import Message, ToolCall, assistant, system, tool, user
from compaction_lab.strategies.registry import PlacedStrategy, strategy
from tests.strategies.harness import O200K, Scribe, every_occasion, sent, slot

PLACEHOLDER = "[TOOL_OBSERVATION_MASKED]"
TURNS = 30
FIRES_AFTER = [10, 19, 28]


def shop(turns: int = TURNS) -> list[Message]:
    """A system prompt, and turns in which the assistant looks something up and answers."""
    messages = [system("You sell laptops.")]
    for turn in range(1, turns + 1):
        messages += [
            user(f"Question {turn}?"),
            assistant("", ToolCall("c", "GetDetails", f'{{"name": "Model {turn}"}}')),
            tool("c", f"Model {turn} costs {1000 + turn} and weighs 1.{turn} kg"),
            assistant(f"Answer {turn}."),
        ]
    return messages


def after_turns(preset: PlacedStrategy, scribe: Scribe, turns: int = TURNS) -> list[tuple[Message, ...]]:
    """Return the history as it stands after each turn."""
    occasions = every_occasion(shop(turns), slot(preset), ask=scribe)
    return [context.messages for occasion, _, context, _ in occasions if occasion == "after_turn"]


def fired_after(preset: PlacedStrategy) -> list[int]:
    scribe = Scribe()
    counts = []
    for occasion, *_ in every_occasion(shop(), slot(preset), ask=scribe):
        if occasion == "after_turn":
            counts.append(len(scribe.requests))
    return [turn for turn, (old, new) in enumerate(zip([0, *counts], counts, strict=False), start=1) if new > old]


def test_the_placeholder_is_nine_tokens() -> None:
    assert strategy("semantic_kernel/observation_masking").parameters["placeholder"] == PLACEHOLDER
    assert O200K.tokenizer.count(PLACEHOLDER) == 9


def test_after_every_answer_all_results_are_masked_and_the_calls_stay() -> None:
    for turn, history in enumerate(after_turns(strategy("semantic_kernel/observation_masking"), Scribe(), 5), start=1):
        assert [message.text for message in history if message.role == "tool"] == [PLACEHOLDER] * turn
        assert [call.arguments for message in history for call in message.calls] == [
            f'{{"name": "Model {number}"}}' for number in range(1, turn + 1)
        ]


def test_within_a_turn_the_fresh_result_is_read_before_it_is_masked() -> None:
    calls = sent(shop(3), slot(strategy("semantic_kernel/observation_masking")))
    assert [m.text for m in calls[-1] if m.role == "tool"] == [
        PLACEHOLDER,
        PLACEHOLDER,
        "Model 3 costs 1003 and weighs 1.3 kg",
    ]


def test_even_a_result_shorter_than_the_placeholder_is_masked() -> None:
    messages = [user("?"), assistant("", ToolCall("c", "f", "{}")), tool("c", "ok"), assistant("Done.")]
    *_, (_, _, context, _) = every_occasion(messages, slot(strategy("semantic_kernel/observation_masking")))
    assert context.messages[2].text == PLACEHOLDER


@pytest.mark.parametrize("name", ["summarization", "hybrid"])
def test_the_summary_counts_as_a_user_message_so_that_they_fall_after_turns_10_19_and_28(name: str) -> None:
    assert fired_after(strategy(f"semantic_kernel/{name}")) == FIRES_AFTER


def test_the_history_becomes_the_system_message_and_one_user_summary_without_a_tail() -> None:
    scribe = Scribe()
    history = after_turns(strategy("semantic_kernel/summarization"), scribe)
    for number, turn in enumerate(FIRES_AFTER, start=1):
        system_message, summary = history[turn - 1]
        assert system_message.text == "You sell laptops."
        assert (summary.role, summary.source) == ("user", "summary")
        assert summary.text == f"Summary of the conversation so far: so far {number}"
    assert [m.role for m in history[10]] == ["system", "user", "user", "assistant", "tool", "assistant"]


def test_the_next_summary_reads_the_last_one_and_what_came_since() -> None:
    scribe = Scribe()
    after_turns(strategy("semantic_kernel/summarization"), scribe, 19)
    first, second = scribe.read
    assert "Question 1?" in first
    assert "Model 10 costs 1010" in first
    assert "user: Summary of the conversation so far: so far 1" in second
    assert "Question 10?" not in second
    assert "Question 11?" in second
    assert "Model 19 costs 1019" in second


def test_the_summarizer_is_not_offered_the_system_message_as_material() -> None:
    scribe = Scribe()
    after_turns(strategy("semantic_kernel/summarization"), scribe, 10)
    assert "You sell laptops." not in scribe.read[0]


def test_the_hybrid_masks_first_so_that_the_summarizer_sees_no_tool_output() -> None:
    scribe = Scribe()
    after_turns(strategy("semantic_kernel/hybrid"), scribe)
    assert len(scribe.read) == 3
    for read in scribe.read:
        assert PLACEHOLDER in read
        assert "costs" not in read


def test_summarizing_first_the_summarizer_reads_every_original_result() -> None:
    scribe = Scribe()
    after_turns(strategy("semantic_kernel/hybrid", order="summarize_first"), scribe)
    for read, turns in zip(scribe.read, [range(1, 11), range(11, 20), range(20, 29)], strict=True):
        assert PLACEHOLDER not in read
        assert all(f"Model {turn} costs {1000 + turn}" in read for turn in turns)


@pytest.mark.parametrize("order", ["mask_first", "summarize_first"])
def test_either_order_sends_the_same_between_summaries(order: str) -> None:
    scribe = Scribe()
    history = after_turns(strategy("semantic_kernel/hybrid", order=order), scribe)
    masked = after_turns(strategy("semantic_kernel/observation_masking"), Scribe())
    assert [m.wire for m in history[8]] == [m.wire for m in masked[8]]
    assert [m.role for m in history[9]] == ["system", "user"]
    assert {m.text for m in history[18 - 1] if m.role == "tool"} == {PLACEHOLDER}


def test_the_plain_hybrid_in_either_order_differs_in_what_the_summarizer_sees_alone() -> None:
    reads = {}
    for order in ("mask_first", "summarize_first"):
        scribe = Scribe()
        preset = strategy("hybrid", mask_keep_last=0, every=10, order=order, placeholder="(gone)")
        history = after_turns(preset, scribe, 12)
        reads[order] = (scribe.read[0], [m.wire for m in history[-1]])
    masked, original = reads["mask_first"], reads["summarize_first"]
    assert "(gone)" in masked[0]
    assert "Model 3 costs 1003" in original[0]
    assert "(gone)" not in original[0]
    assert masked[1] == original[1]
