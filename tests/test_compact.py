"""``lab.compact``: what it promises to somebody's own agent loop."""

from __future__ import annotations

import copy
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import compaction_lab as lab
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.wire import to_openai
from compaction_lab.errors import SummarizerMissing, TranscriptError
from compaction_lab.strategies.registry import PlacedStrategy
from tests.conversations import conversations, messy_conversations

Wire = dict[str, JSON]


def call(*ids: str) -> Wire:
    calls = [{"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(call_id: str, text: str = "a long result that says the same thing over and over again, at length") -> Wire:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def said(role: str, text: str) -> Wire:
    return {"role": role, "content": text}


SESSION: list[Wire] = [
    said("system", "You help.") | {"x_note": "kept"},
    said("user", "Find it.") | {"metadata": {"who": "Zoë"}},
    call("a"),
    answer("a") | {"x_timing": 3},
    call("b"),
    answer("b"),
    said("assistant", "Found."),
]
MASK_ALL = lab.strategy("observation_masking", keep_last=0)

strategies = st.one_of(
    st.builds(
        lambda k, unit: lab.strategy("observation_masking", keep_last=k, unit=unit),
        st.integers(0, 3),
        st.sampled_from(["step", "turn", "result"]),
    ),
    st.builds(
        lambda k, unit: lab.strategy("sliding_window", keep_last=k, unit=unit),
        st.integers(0, 3),
        st.sampled_from(["turn", "step", "group", "message"]),
    ),
    st.builds(
        lambda most, history: lab.strategy(
            "truncation", max_tokens=most, target_tokens=most // 2, placement={"history": history}
        ),
        st.sampled_from([60, 200]),
        st.sampled_from(["view", "stored"]),
    ),
    st.builds(
        lambda every, unit: lab.strategy("summarization", every=every, unit=unit),
        st.integers(1, 3),
        st.sampled_from(["turn", "step"]),
    ),
    st.builds(
        lambda order: lab.strategy("hybrid", mask_keep_last=1, every=2, unit="step", order=order),
        st.sampled_from(["mask_first", "summarize_first"]),
    ),
    st.just(lab.strategy("observation_masking", keep_last=0, trigger={"tokens_exceed": 150})),
    st.just(lab.strategy("semantic_kernel/hybrid", every=2)),
)


def summary(messages: list[Wire]) -> str:
    return f"{len(str(messages[-1]['content']))} characters."


def compacted(messages: list[Wire], s: PlacedStrategy, memory: JSON = None) -> object:
    return lab.compact(messages, s, tokenizer="characters", summarizer=summary, memory=memory)


def test_the_masked_list_is_the_input_but_for_the_results_that_were_read() -> None:
    c = lab.compact(SESSION, MASK_ALL)
    assert c.changed
    assert [m["content"] for m in c.messages if m["role"] == "tool"] == ["[tool result removed]"] * 2
    assert [m for m in c.messages if m["role"] != "tool"] == [m for m in SESSION if m["role"] != "tool"]
    assert c.tokens_after < c.tokens_before
    assert [(edit.kind, edit.keys) for edit in c.edits] == [("masked", ((3, 0),)), ("masked", ((5, 0),))]
    assert {finding.rule for finding in c.findings if finding.is_error} == {"V13"}  # the keys that nobody knows


def test_keys_that_the_lab_does_not_know_are_kept_even_on_what_it_replaces() -> None:
    c = lab.compact(SESSION, MASK_ALL)
    assert c.messages[0]["x_note"] == "kept"
    assert c.messages[1]["metadata"] == {"who": "Zoë"}
    assert c.messages[3]["x_timing"] == 3


@given(st.one_of(conversations(), messy_conversations()), strategies)
def test_the_input_is_left_as_it_was(messages: list[Message], s: PlacedStrategy) -> None:
    wire = [to_openai(message) for message in messages]
    kept = copy.deepcopy(wire)
    compacted(wire, s)
    assert wire == kept


@given(st.one_of(conversations(), messy_conversations()), strategies, st.data())
def test_extending_the_old_list_or_the_result_comes_to_the_same(
    messages: list[Message], s: PlacedStrategy, data: st.DataObject
) -> None:
    """An agent may keep the whole list, or go on from what it was given back, or now the one and now the other."""
    wire = [to_openai(message) for message in messages]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=4)))
    stops = [0, *cuts, len(wire)]
    whole: list[Wire] = []
    carried: list[Wire] = []
    mixed: list[Wire] = []
    memories: list[JSON] = [None, None, None]
    for start, stop in pairwise(stops):
        new = wire[start:stop]
        whole, carried, mixed = whole + new, carried + new, mixed + new
        lists = (whole, carried, mixed)
        results = [compacted(given, s, memory) for given, memory in zip(lists, memories, strict=True)]
        for result in results[1:]:
            assert result.messages == results[0].messages
            assert result.tokens_after == results[0].tokens_after
            assert result.edits == results[0].edits
        memories = [json.loads(json.dumps(result.memory)) for result in results]
        carried = results[1].messages
        mixed = results[2].messages if data.draw(st.booleans()) else mixed


def test_any_other_list_starts_afresh() -> None:
    s = lab.strategy("summarization", every=1)
    first = lab.compact(SESSION, s, summarizer=lambda _: "Sum.")
    other = [said("user", "Another matter, told at some length."), said("assistant", "I see, and answer at length.")]
    assert lab.compact(other, s, summarizer=lambda _: "Sum.", memory=first.memory).messages == [
        said("user", "Summary of the conversation so far: Sum.")
    ]


def test_the_memory_of_another_strategy_starts_afresh() -> None:
    first = lab.compact(SESSION, lab.strategy("hybrid", every=1), summarizer=lambda _: "Sum.")
    alone = lab.compact(SESSION, MASK_ALL)
    assert lab.compact(SESSION, MASK_ALL, memory=first.memory).messages == alone.messages


def test_a_summary_is_made_once_and_stays() -> None:
    asked: list[list[Wire]] = []

    def summarizer(messages: list[Wire]) -> str:
        asked.append(messages)
        return "They found it."

    s = lab.strategy("summarization", every=1)
    first = lab.compact(SESSION, s, summarizer=summarizer)
    assert [m["role"] for m in first.messages] == ["system", "user"]
    assert "Find it." in str(asked[0][-1]["content"])
    again = lab.compact(SESSION, s, summarizer=summarizer, memory=first.memory)
    assert again.messages == first.messages
    assert not again.changed
    assert len(asked) == 1


def test_a_summary_asked_for_without_a_summarizer_is_an_error_that_says_what_to_give() -> None:
    with pytest.raises(SummarizerMissing, match="summarizer="):
        lab.compact(SESSION, lab.strategy("summarization", every=1))


def test_orphans_are_accepted_and_reported() -> None:
    c = lab.compact([answer("nobody"), said("user", "Hi")], MASK_ALL)
    assert len(c.messages) == 2
    assert [(finding.rule, finding.message_index) for finding in c.findings if finding.rule == "V1"] == [("V1", 0)]


def test_tools_are_counted_and_may_pull_the_trigger() -> None:
    tools = [{"type": "function", "function": {"name": "look", "description": "Look it up. " * 200}}]
    s = lab.strategy("sliding_window", keep_last=0, unit="step", trigger={"tokens_exceed": 400})
    without, with_tools = lab.compact(SESSION, s), lab.compact(SESSION, s, tools=tools)
    assert not without.changed
    assert with_tools.changed
    assert with_tools.tokens_before > without.tokens_before + 400


def test_a_strategy_may_count_by_its_own_rule() -> None:
    s = lab.strategy("truncation", max_tokens=60, tokenizer="characters")
    assert lab.compact(SESSION, s).tokens_before == lab.compact(SESSION, MASK_ALL).tokens_before


def test_what_is_no_message_is_refused_with_its_place() -> None:
    with pytest.raises(TranscriptError, match=r"messages\[1\]"):
        lab.compact([said("user", "Hi"), {"role": "robot", "content": "?"}], MASK_ALL)


def test_nothing_in_nothing_out() -> None:
    c = lab.compact([], MASK_ALL)
    assert (c.messages, c.changed) == ([], False)
