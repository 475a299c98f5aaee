"""Summarising strategies keep what the frameworks kept: frozen answers, and facts observed on one session."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.registry import strategy
from tests.strategies.fixture_f18 import f18

ORACLES = Path(__file__).parents[2] / "oracles"
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*_summaries.jsonl"))


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_frozen_answers_of_the_frameworks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ORACLES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    from summary_cases import ours

    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 20
    for row in rows:
        assert ours(row["case"]) == row["kept"]


class Approximate:
    """The framework's own approximation: characters of content, role, calls and ids over four, and three."""

    def message(self, message: Message) -> int:
        characters = len(message.text) + len(message.role) + len(message.call_id)
        if message.calls:
            calls = [
                {"name": c.name, "args": json.loads(c.arguments), "id": c.id, "type": "tool_call"}
                for c in message.calls
            ]
            characters += len(repr(calls))
        return -(-characters // 4) + 3


class Content:
    """Four characters of content a token."""

    def message(self, message: Message) -> int:
        return -(-len(message.text) // 4)


APPROXIMATE, CONTENT, CHARACTERS = Approximate(), Content(), TokenCounter(tokenizer("characters"))


def kept(
    name: str,
    *,
    when: str = "before_call",
    counter: object = CHARACTERS,
    window: int | None = None,
    text: str = "S",
    **parameters: object,
) -> tuple[str, int]:
    """Return what a strategy keeps of the session, by index, and how many summaries it asked for."""
    placed = strategy(name, **parameters)
    log = Log(f18())
    arm = ArmRun(log, (Slot(placed.run, when, placed.history, counter),), (), window)
    occurring = arm.occasion(when, len(log))
    asked: list[ModelRequest] = []
    try:
        requests = next(occurring)
        while True:
            asked += requests
            requests = occurring.send(tuple(ModelReply(text) for _ in requests))
    except StopIteration as end:
        context = end.value
    placed_at = zip(context.keys, context.messages, strict=True)
    marks = ("S" if message.source == "summary" else str(key[0]) for key, message in placed_at)
    return " ".join(marks), len(asked)


FIVE = {"messages": 5}
FACTS = [
    ("langchain/summarization_middleware", {"trigger": FIVE, "keep": {"messages": 3}}, "0 S 14 15 16 17"),
    ("langchain/summarization_middleware", {"trigger": FIVE, "keep": FIVE}, "0 S 12 13 14 15 16 17"),
    (
        "langchain/summarization_middleware",
        {"trigger": FIVE, "keep": {"tokens": 150}, "counter": APPROXIMATE},
        "0 S 14 15 16 17",
    ),
    (
        "langmem/summarize_messages",
        {"max_tokens": 600, "max_tokens_before_summary": 300, "counter": APPROXIMATE},
        "0 S 9 10 11 12 13 14 15 16 17",
    ),
    ("inspect_ai/compaction_summary", {"threshold": 100}, "0 1 S"),
    (
        "llama_index/chat_summary_memory_buffer",
        {"token_limit": 200, "system_in_history": True, "counter": CONTENT},
        "S 11 12 13 14 15 16 17",
    ),
    (
        "memory_blocks",
        {"token_limit": 400, "token_flush_size": 100, "fact_block": False, "archive_block": False, "counter": CONTENT},
        "0 11 12 13 14 15 16 17",
    ),
    ("openhands_sdk/llm_summarizing", {"max_size": 12, "keep_first": 2}, "0 1 S 16 17"),
    ("openhands_sdk/llm_summarizing", {"max_size": 10, "keep_first": 1}, "0 S 16 17"),
    ("openhands_sdk/llm_summarizing", {"max_size": 100, "when": "requested"}, "0 1 S 12 13 14 15 16 17"),
    ("strands/summarizing_conversation_manager", {"window": 1}, "0 S 6 7 8 9 10 11 12 13 14 15 16 17"),
    (
        "strands/summarizing_conversation_manager",
        {"window": 1, "summary_ratio": 0.8, "preserve_recent_messages": 2},
        "0 S 14 15 16 17",
    ),
    ("semantic_kernel/chat_history_summarization", {"target_count": 4}, "0 S 12 13 14 15 16 17"),
    ("crewai/summarize_messages", {"window": 1, "context_window": 100_000}, "0 S"),
    ("kimi_cli/simple_compaction", {"window": 100}, "0 S 16 17"),
    (
        "pydantic_ai_harness/summarizing_compaction",
        {"max_messages": 1, "max_tokens": None, "keep_messages": 4},
        "0 S 1 14 15 16 17",
    ),
    *(
        (
            "google_adk/events_compaction_token",
            {"token_threshold": 1, "event_retention_size": retained, "when": "after_turn"},
            f"0 S {' '.join(map(str, range(first, 18)))}",
        )
        for retained, first in ((2, 16), (3, 14), (5, 12), (8, 9))
    ),
]


@pytest.mark.parametrize(("name", "parameters", "expected"), FACTS)
def test_facts_observed_on_the_packages(name: str, parameters: dict[str, object], expected: str) -> None:
    assert kept(name, **parameters)[0] == expected


def test_the_second_look_into_a_summary_buffer_costs_no_call() -> None:
    log = Log(f18())
    placed = strategy("llama_index/chat_summary_memory_buffer", token_limit=200)
    arm = ArmRun(log, (Slot(placed.run, "before_call", "stored", CONTENT),))
    occurring = arm.occasion("before_call", len(log))
    next(occurring)
    with pytest.raises(StopIteration):
        occurring.send((ModelReply("S"),))
    with pytest.raises(StopIteration):
        next(arm.occasion("before_call", len(log)))


def exchange(rounds: int) -> list[Message]:
    """A user message and rounds of one call and its result: ids 0, 1, 2, ... as in OpenHands' own example."""
    task, call, result = f18()[1:4]
    return [task, *(message for _ in range(rounds) for message in (call, result))]


def openhands(name: str, reply: str) -> tuple[list[int], list[int]]:
    placed = strategy(name, max_size=8, keep_first=1)
    log = Log(exchange(6))
    arm = ArmRun(log, (Slot(placed.run, "before_call", "stored", CHARACTERS),))
    occurring = arm.occasion("before_call", len(log))
    next(occurring)
    with pytest.raises(StopIteration) as end:
        occurring.send((ModelReply(reply),))
    context = end.value.value
    visible = [index for index, rank in context.keys if rank == 0]
    summaries = [at for at, message in enumerate(context.messages) if message.source == "summary"]
    return [index for index in range(len(log)) if index not in visible], summaries


@pytest.mark.parametrize("name", ["openhands/llm_summarizing", "openhands/structured_summary"])
def test_openhands_forgets_one_to_ten_and_puts_the_summary_at_offset_one(name: str) -> None:
    assert openhands(name, "S") == (list(range(1, 11)), [1])


def test_openhands_keeps_what_the_model_ranks_and_tears_calls_from_results() -> None:
    forgotten, _ = openhands("openhands/llm_attention", '{"ids": [2, 4, 6, 8]}')
    assert forgotten == [1, 3, 5, 7, 8, 9, 10, 11, 12]


def test_ranking_repaired_keeps_whole_groups_and_the_newest_user_message() -> None:
    forgotten, _ = openhands("rank_messages", '{"ids": [2, 4, 6, 8]}')
    assert forgotten == [7, 8, 9, 10, 11, 12]
