"""What a replay counts and records; the golden file shows a whole unit as rows that diff readably."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given

from compaction_lab.accounting.cache_policy import CachePolicy
from compaction_lab.accounting.prices import Price, Rates
from compaction_lab.arm import Slot
from compaction_lab.conversation.messages import (
    Message,
    Text,
    ToolCall,
    ToolDefinition,
    assistant,
    system,
    tool,
    user,
)
from compaction_lab.conversation.transcript import Probe, Transcript
from compaction_lab.errors import ModelError, SummarizerMissing
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.recording import Accounts
from compaction_lab.records import Row, UnitResult
from compaction_lab.replay import MAX_STEPS_PER_TURN, Cast, replay_recorded, run_live
from compaction_lab.scenarios.base import LiveTool, RubricScore, Scenario, Turn
from compaction_lab.strategies.registry import PlacedStrategy, strategy
from tests.conversations import conversations
from tests.strategies.harness import O200K

GOLDEN = Path(__file__).parent / "golden" / "replay.jsonl"
PRICE = Price("example", "", "", "override", date(2026, 1, 1), (Rates(0, 1.0, 0.1, 1.25, 2.0, 4.0, 4.0),))
TOOLS = (ToolDefinition("look", "Look a name up.", {"properties": {"name": {"type": "string"}}}),)
LONG = "The parser is in src/parser.py, its tests in tests/test_parser.py; both were changed last week by Zoë."


class Named:
    """A model from a function, for the parts that a replay casts."""

    simulated = True

    def __init__(self, name: str, answer: object) -> None:
        self.name = name
        self.answer = answer
        self.requests: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        reply = self.answer(request) if callable(self.answer) else self.answer
        return reply if isinstance(reply, ModelReply) else ModelReply(reply)


def look(call_id: str, text: str = LONG) -> list[Message]:
    return [assistant("", ToolCall(call_id, "look", '{"name": "parser"}')), tool(call_id, text)]


def session() -> Transcript:
    messages = [
        system("You help with code."),
        user("Where is the parser?"),
        *look("a"),
        assistant("In src/parser.py."),
        user("And who changed it?"),
        *look("b"),
        assistant("Zoë did, last week."),
        user("Thanks, run the tests."),
        *look("c", "3 passed"),
    ]
    probe = Probe("where", "fact", "Which file holds the parser?", ("src/parser.py",), ("src/parser.py, its",), 8, 3)
    return Transcript("small", tuple(messages), TOOLS, (probe,))


def slots(*placed: PlacedStrategy) -> tuple[Slot, ...]:
    overhead = O200K.tools(TOOLS) + O200K.request_overhead
    return tuple(Slot(one.run, one.when, one.history, O200K, overhead) for one in placed)


def accounts(**changes: object) -> Accounts:
    return replace(Accounts(O200K, PRICE), **changes)


def replayed(transcript: Transcript, *placed: PlacedStrategy, **cast: object) -> UnitResult:
    return replay_recorded(transcript, Cast(slots(*placed), **cast), accounts())


def agent(result: UnitResult) -> list[Row]:
    return [row for row in result.calls if row["purpose"] == "agent"]


def test_a_whole_unit_is_what_it_was() -> None:
    """Refresh after an intended change with ``UPDATE_GOLDEN=1 pytest tests/test_replay.py``, and read the diff."""
    result = replayed(
        session(),
        strategy("hybrid", mask_keep_last=0, every=2),
        summarizer=Named("scribe", "The parser is in src/parser.py."),
        reader=Named("reader", lambda request: request.messages[-2].text),
    )
    lines = [
        json.dumps({"table": table, **row}, ensure_ascii=False, sort_keys=False)
        for table in ("calls", "compactions", "probes")
        for row in getattr(result, table)
    ]
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
    assert text.splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()


def test_every_answer_is_a_call_and_an_open_end_is_one_without_output() -> None:
    rows = agent(replayed(session(), strategy("none")))
    assert [row["call"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["turn"] for row in rows] == [1, 1, 2, 2, 3, 3]
    assert [row["tool_calls"] for row in rows] == [1, 0, 1, 0, 1, 0]
    assert rows[-1]["output_tokens"] == 0
    assert all(row["output_tokens"] > 0 for row in rows[:-1])


def test_answers_that_share_a_response_id_are_one_call_whose_output_is_their_sum() -> None:
    pieces = [
        Message("assistant", (Text("I look."),), response_id="r"),
        Message("assistant", (), (ToolCall("a", "look", "{}"),), response_id="r"),
        tool("a", "x"),
        Message("assistant", (), (ToolCall("b", "look", "{}"),), response_id="r"),
        tool("b", "y"),
        assistant("Done."),
    ]
    rows = agent(replayed(Transcript("t", (user("go"), *pieces)), strategy("none")))
    assert len(rows) == 2
    assert rows[0]["output_tokens"] == sum(O200K.output(pieces[at]) for at in (0, 1, 3))
    assert rows[0]["tool_calls"] == 2
    assert rows[1]["stop"] == 6


def test_what_precedes_the_first_user_message_is_turn_0() -> None:
    rows = agent(
        replayed(Transcript("t", (system("s"), assistant("Hello!"), user("hi"), assistant("How?"))), strategy("none"))
    )
    assert [row["turn"] for row in rows] == [0, 1]


@given(conversations(most_turns=3, most_steps=3))
def test_the_uncompacted_arm_sends_every_message_tools_and_overhead(messages: list[Message]) -> None:
    result = replayed(Transcript("t", tuple(messages), TOOLS), strategy("none"))
    for row in agent(result):
        expected = O200K.request(messages[: row["stop"]], TOOLS)
        assert row["input_tokens"] == row["context_tokens_before"] == row["context_tokens_after"] == expected
        assert not row["compacted"]
    assert result.compactions == []
    assert len(result.log) == len(messages)


def test_tokens_before_are_the_stored_history_and_after_what_was_sent() -> None:
    messages = session().messages
    rows = agent(replayed(session(), strategy("observation_masking", keep_last=0)))
    fourth = rows[3]
    assert fourth["context_tokens_before"] == O200K.request(messages[:8], TOOLS)
    saved = O200K.message(messages[3]) - O200K.message(messages[3].replaced("[tool result removed]", "placeholder"))
    assert fourth["context_tokens_after"] == fourth["context_tokens_before"] - saved
    assert [row["compacted"] for row in rows] == [False, False, True, False, True, False]


def test_the_first_changed_token_is_where_the_previous_prompt_stops_being_a_prefix() -> None:
    rows = agent(replayed(session(), strategy("observation_masking", keep_last=0)))
    (first, *_), unchanged = (
        [row["first_changed_token"] for row in rows if row["compacted"]],
        [row["first_changed_token"] for row in rows if not row["compacted"]],
    )
    before = sum(map(O200K.message, session().messages[:3])) + O200K.tools(TOOLS)
    assert before <= first <= before + O200K.message(session().messages[3])
    assert set(unchanged) == {None}


def test_a_summary_is_a_call_of_its_own_with_tokens_and_cost_at_the_call_it_belongs_to() -> None:
    scribe = Named("scribe", "Short.")
    result = replayed(session(), strategy("semantic_kernel/summarization", every=2), summarizer=scribe)
    (summary,) = [row for row in result.calls if row["purpose"] == "summarizer"]
    (request,) = scribe.requests
    assert summary["turn"] == 2
    assert summary["call"] == 4
    assert summary["input_tokens"] == O200K.request(request.messages)
    assert summary["output_tokens"] > 0
    assert summary["cost_uncached_usd"] == pytest.approx(
        summary["input_tokens"] * 1e-6 + summary["output_tokens"] * 4e-6
    )
    assert agent(result)[4]["context_tokens_before"] < agent(result)[3]["context_tokens_before"]


def test_a_failed_summary_is_recorded_with_its_cost_and_changes_nothing() -> None:
    failing = Named("scribe", ModelReply("", calls=(ToolCall("x", "look", "{}"),)))
    result = replayed(session(), strategy("summarization", every=2), summarizer=failing)
    (fired,) = result.compactions
    assert fired["outcome"].startswith("rejected")
    assert fired["edits"] == []
    assert [row["input_tokens"] for row in agent(result)] == [
        row["input_tokens"] for row in agent(replayed(session(), strategy("none")))
    ]
    assert sum(row["purpose"] == "summarizer" for row in result.calls) == 1


def test_a_strategy_that_summarises_needs_a_summarizer() -> None:
    with pytest.raises(SummarizerMissing, match="summarizer="):
        replayed(session(), strategy("summarization", every=1))


def test_a_probe_is_asked_where_it_says_and_leaves_no_trace() -> None:
    reader = Named("reader", "It is in src/parser.py.")
    masking = strategy("observation_masking", keep_last=0)
    with_probe = replayed(session(), masking, reader=reader)
    without = replayed(replace(session(), probes=()), masking)
    (request,) = reader.requests
    assert request.tools == ()
    assert [m.text for m in request.messages[-3:]] == ["", LONG, "Which file holds the parser?"]
    assert request.messages[3].text == "[tool result removed]"
    (row,) = with_probe.probes
    assert (row["turn"], row["score"], row["evidence_visible"], row["age_turns"]) == (2, 1.0, 1.0, 1)
    assert agent(with_probe) == agent(without)
    assert with_probe.compactions == without.compactions


def test_a_probe_without_a_place_is_asked_after_the_last_message() -> None:
    late = replace(session().probes[0], after_message=None)
    reader = Named("reader", "?")
    replayed(replace(session(), probes=(late,)), strategy("none"), reader=reader)
    assert reader.requests[0].messages[:-1] == session().messages


def test_a_reader_that_fails_leaves_the_unit_owed() -> None:
    with pytest.raises(ModelError, match="reader"):
        replayed(session(), strategy("none"), reader=Named("reader", ModelReply(error="timeout")))


def test_what_overflows_the_window_goes_through_every_strategy_and_is_told() -> None:
    """The stored truncation is placed after turns; an overflow within a turn reaches it all the same."""
    placed = strategy("truncation", max_tokens=120, placement={"when": "after_turn", "history": "stored"})
    roomy = replayed(session(), placed, window_tokens=10_000)
    tight = replayed(session(), placed, window_tokens=125)
    none = replayed(session(), strategy("none"), window_tokens=125)
    assert (roomy.outcome, tight.outcome, none.outcome) == ("ok", "ok", "overflow")
    assert "overflow" not in {row["when"] for row in roomy.compactions}
    assert "overflow" in {row["when"] for row in tight.compactions}
    assert max(row["input_tokens"] for row in agent(tight)) <= 125
    for row in agent(tight):
        assert row["compacted"] == any(
            fired["call"] == row["call"] for fired in tight.compactions if fired["when"] != "after_turn"
        )


def test_a_rewrite_before_the_turn_counts_for_its_first_call() -> None:
    placed = strategy("sliding_window", keep_last=0, placement={"when": "before_turn", "history": "turn"})
    result = replayed(session(), placed)
    assert [row["compacted"] for row in agent(result)] == [False, False, True, False, True, False]
    assert [fired["call"] for fired in result.compactions] == [3, 5]


def test_a_recorded_bill_belongs_to_the_arm_that_was_billed() -> None:
    billed = replace(assistant("In src/parser.py."), latency_s=2.5, cost_usd=0.01)
    transcript = Transcript("t", (user("Where?"), billed))
    cast = Cast(slots(strategy("none")))
    (own,) = replay_recorded(transcript, cast, accounts(recorded_bill=True)).calls
    (other,) = replay_recorded(transcript, cast, accounts()).calls
    assert (own["latency_s"], own["latency_source"], own["cost_billed_usd"]) == (2.5, "recorded", 0.01)
    assert (other["latency_source"], other["cost_billed_usd"]) == ("modelled", None)


def test_a_simulated_cache_splits_the_input_and_its_buckets_add_up() -> None:
    policy = CachePolicy("automatic")
    result = replay_recorded(session(), Cast(slots(strategy("none"))), accounts(cache_policy=policy))
    for row in result.calls:
        parts = [row[f"{part}_tokens"] for part in ("fresh_input", "cache_read", "cache_write")]
        assert sum(parts) == row["input_tokens"]
    assert result.calls[0]["cache_read_tokens"] == 0
    assert result.calls[1]["cache_read_tokens"] >= result.calls[0]["input_tokens"] - O200K.request_overhead


def test_two_replays_write_equal_rows() -> None:
    def once() -> str:
        result = replayed(
            session(), strategy("hybrid", every=1), summarizer=Named("s", "Short."), reader=Named("r", "?")
        )
        return json.dumps([result.calls, result.compactions, result.probes, result.messages, result.log])

    assert once() == once()


class TestLive:
    def scenario(self) -> Scenario:
        definition = TOOLS[0]
        tools = (LiveTool(definition, lambda arguments: f"{arguments['name']}: {LONG}"),)
        judged = Turn("Where is it?", lambda answer: RubricScore(float("parser.py" in answer), 1, 1))
        probe = Probe("p", "fact", "Which file?", ("src/parser.py",), ("src/parser.py",))
        return Scenario("s", "en", (system("s"),), tools, (judged, Turn("Thanks.")), {1: (probe,)})

    def agent(self, request: ModelRequest) -> ModelReply:
        if request.purpose == "probe" or request.messages[-1].role == "tool" or request.messages[-1].text == "Thanks.":
            return ModelReply("In src/parser.py.")
        return ModelReply("", (ToolCall("c", "look", '{"name": "parser"}'),))

    def test_tools_run_turns_end_and_the_rubric_judges(self) -> None:
        model = Named("live", self.agent)
        cast = Cast(slots(strategy("semantic_kernel/observation_masking")), reader=model)
        result = run_live(self.scenario(), model, cast, accounts())
        assert [(row["turn"], row["purpose"]) for row in result.calls] == [
            (1, "agent"), (1, "agent"), (1, "probe"), (2, "agent")
        ]  # fmt: skip
        assert [(row["kind"], row["score"]) for row in result.probes] == [("rubric", 1.0), ("fact", 1.0)]
        assert [row["turn"] for row in result.compactions] == [1]
        assert [m.text for m in model.requests[-1].messages if m.role == "tool"] == ["[TOOL_OBSERVATION_MASKED]"]
        assert all(row["simulated"] for row in result.calls)

    def test_what_the_model_gets_wrong_comes_back_to_it_as_an_error_result(self) -> None:
        replies = iter(
            [
                ModelReply("", (ToolCall("1", "fly", "{}"),)),
                ModelReply("", (ToolCall("2", "look", "[1]"),)),
                ModelReply("", (ToolCall("3", "look", "{"),)),
                ModelReply("I give up."),
            ]
        )
        model = Named("live", lambda _: next(replies))
        scenario = replace(self.scenario(), turns=(Turn("go"),), probes={})
        run_live(scenario, model, Cast(slots(strategy("none"))), accounts())
        results = [message for message in model.requests[-1].messages if message.role == "tool"]
        assert all(message.is_error for message in results)
        assert len(results) == 3

    def test_a_turn_that_never_ends_is_ended_and_says_so(self) -> None:
        model = Named("live", ModelReply("", (ToolCall("c", "look", '{"name": "x"}'),)))
        result = run_live(self.scenario(), model, Cast(slots(strategy("none"))), accounts())
        last_calls = [row for row in result.calls if row["error"]]
        assert len(last_calls) == len(self.scenario().turns)
        assert last_calls[0]["error"] == f"the turn was ended after {MAX_STEPS_PER_TURN} calls"
        assert result.outcome == "ok"
