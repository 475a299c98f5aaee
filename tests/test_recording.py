"""Rows of a unit: whose number a call bears, what is kept of messages, what a firing says."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given

from compaction_lab.accounting.latency import LatencyModel
from compaction_lab.conversation.context import Context, Placed
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Message, Text, system, user
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.conversation.wire import canonical_json
from compaction_lab.importers.lab import message_from_lab
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.recording import Accounts, Recorder
from compaction_lab.records import CALL_COLUMNS, COMPACTION_COLUMNS, PROBE_COLUMNS, UnitResult
from compaction_lab.replay import Cast, replay_recorded
from compaction_lab.strategies.base import Strategy
from compaction_lab.strategies.plain import NoCompaction
from tests.conversations import conversations
from tests.strategies.harness import O200K, Scribe, every_occasion, slot, standing
from tests.strategies.test_invariants import histories, own_occasion, plain

SCRIBE = type("S", (Scribe,), {"name": "scribe", "simulated": True})


def unit(messages: list[Message], strategy: Strategy, history: str) -> UnitResult:
    cast = Cast((slot(strategy, own_occasion(strategy), history),), SCRIBE())
    return replay_recorded(Transcript("t", tuple(messages)), cast, Accounts(O200K))


def kept(result: UnitResult, digest: str) -> Message:
    return message_from_lab(result.messages[digest])


def edited(context: Context, edits: list[dict[str, JSON]], result: UnitResult) -> Context:
    """Apply edits as they are written: what a reader of a run folder does."""
    visible = {entry.key: entry.message for entry in context.entries()}
    for edit in edits:
        for index, rank in edit["keys"]:
            if edit["kind"] == "restored":
                visible[index, rank] = context.log.messages[index]
            else:
                del visible[index, rank]
        if edit["new"]:
            visible[tuple(edit["new"]["key"])] = kept(result, edit["new"]["sha256"])
    return Context.of(context.log, context.stop, [Placed(key, visible[key]) for key in sorted(visible)])


@given(conversations(most_turns=3, most_steps=3), plain, histories)
def test_every_row_has_the_contracts_columns(messages: list[Message], strategy: Strategy, history: str) -> None:
    result = unit(messages, strategy, history)
    for row in result.calls:
        assert set(CALL_COLUMNS) - {"cost_usd", "cost_kind"} <= row.keys()
    for row in result.compactions:
        assert set(COMPACTION_COLUMNS) <= row.keys()
    numbers = [row["call"] for row in result.calls if row["purpose"] == "agent"]
    assert numbers == list(range(1, len(numbers) + 1))
    assert set(PROBE_COLUMNS) >= {"turn", "probe", "kind"}


@given(conversations(most_turns=3, most_steps=3), plain, histories)
def test_the_written_edits_rebuild_what_was_sent(messages: list[Message], strategy: Strategy, history: str) -> None:
    """From messages and compactions alone: each firing continues the last result, or starts from the history."""
    result = unit(messages, strategy, history)
    log = Log(kept(result, digest) for digest in result.log)
    assert [message.wire for message in log.messages] == [message.wire for message in messages]
    placed = slot(strategy, own_occasion(strategy), history)
    written = iter(result.compactions)
    for _, stop, _, arm in every_occasion(messages, placed, ask=SCRIBE()):
        for firing in arm.firings:
            row = next(written)
            assert row["stop"] == stop
            assert row["outcome"] == firing.outcome
            before = Context.of(log, stop, firing.before.entries())
            assert standing(edited(before, row["edits"], result)) == standing(firing.after)
            assert row["tokens_after"] - row["tokens_before"] == sum(
                edit["tokens_after"] - edit["tokens_before"] for edit in row["edits"]
            )
    assert next(written, None) is None


def test_a_message_is_kept_once_by_the_hash_of_its_canonical_json() -> None:
    recorder = Recorder(Accounts(O200K))
    digest = recorder.message(user("hi"))
    assert digest == recorder.message(user("hi"))
    assert list(recorder.result.messages) == [digest]
    text = canonical_json(recorder.result.messages[digest])
    assert digest == hashlib.sha256(text.encode()).hexdigest()


def test_a_lone_surrogate_can_be_kept() -> None:
    assert Recorder(Accounts(O200K)).message(user("\udcb2"))


@pytest.mark.parametrize("blocking", [True, False])
def test_a_summary_that_is_waited_for_delays_the_call_it_precedes(blocking: bool) -> None:  # noqa: FBT001
    accounts = Accounts(O200K, latency=LatencyModel())
    waiting = Recorder(accounts, summaries_block=blocking)
    request = ModelRequest((system("sum up"), user("x")), "summarizer")
    log = Log([user("q")])
    for _, stop, sent, arm in every_occasion(log.messages, slot(NoCompaction())):
        waiting.request(1, request, ModelReply("s", latency_s=7.0), model="m", simulated=False, before_call=True)
        waiting.agent_call(1, stop, arm, sent, (Message("assistant", (Text("a"),)),), model="m", simulated=False)
        break
    summary, call = waiting.result.calls
    assert (summary["latency_s"], summary["latency_source"], summary["call"]) == (7.0, "measured", call["call"])
    assert (call["latency_s"] > 7.0) is blocking
