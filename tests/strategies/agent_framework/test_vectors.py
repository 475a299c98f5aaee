"""Cases with known answers: what agent-framework-core 1.23.0 made of them when it was run."""

from __future__ import annotations

import pytest

from compaction_lab.conversation.context import Context
from compaction_lab.conversation.log import Log
from compaction_lab.strategies.agent_framework.contents import facets
from compaction_lab.strategies.agent_framework.grouping import spans
from compaction_lab.strategies.agent_framework.ledger import Ledger
from tests.strategies.agent_framework.shorthand import acted, conversation, vectors


@pytest.mark.parametrize(("case", "text", "groups"), vectors("grouping_vectors.txt"))
def test_grouping(case: str, text: str, groups: str) -> None:
    messages = conversation(text)
    ledger = Ledger.fresh(Context(Log(messages), len(messages)), len(messages))
    numbers = {group_id: number for number, group_id in enumerate(dict.fromkeys(e.group_id for e in ledger.entries))}
    found = [f"{numbers[entry.group_id]}{entry.kind[0]}" for entry in ledger.entries]
    assert found == groups.replace("*", "").split(), case


@pytest.mark.parametrize(
    ("case", "text", "hidden", "strategy", "survivors", "changed"), vectors("strategy_vectors.txt")
)
def test_strategies(case: str, text: str, hidden: str, strategy: str, survivors: str, changed: str) -> None:
    excluded = [int(index) for index in hidden.split(",") if index]
    found, verdict = acted(strategy, conversation(text), excluded)
    expected = "" if survivors == "(nothing)" else " ".join(survivors.split("  ")).replace("~", " ")
    assert (found, verdict) == (expected, changed == "T"), case


def test_a_list_grouped_message_by_message_splits_two_thoughts_before_a_call() -> None:
    messages = conversation("R R C:c1")
    log = Log(messages)
    ledger = Ledger.fresh(Context(log, 1), 1)
    for stop in (2, 3):
        ledger.continue_log(log, stop)
    assert [entry.group_id for entry in ledger.entries] == ["group_msg_0", "group_msg_1", "group_msg_1"]
    assert len(spans([facets(message) for message in messages])) == 1


def test_ids_are_positions_or_the_next_free_number() -> None:
    from dataclasses import replace

    messages = conversation("U:a A:b U:c")
    messages[1] = replace(messages[1], id="msg_2")
    log = Log(messages)
    whole = Ledger.fresh(Context(log, 3), 3)
    assert [entry.id for entry in whole.entries] == ["msg_0", "msg_2", "msg_3"]

    moved = Log([messages[1], messages[0], messages[2]])
    grown = Ledger.fresh(Context(moved, 2), 2)
    assert [entry.id for entry in grown.entries] == ["msg_2", "msg_1"]
    grown.continue_log(moved, 3)
    assert grown.entries[2].id == "msg_3"


def test_a_late_result_rejoins_its_call_also_when_appended() -> None:
    log = Log(conversation("C:c4 A:x T:c4 A:fin"))
    ledger = Ledger.fresh(Context(log, 2), 2)
    for stop in (3, 4):
        ledger.continue_log(log, stop)
    assert [entry.group_id for entry in ledger.entries] == ["group_msg_0", "group_msg_1", "group_msg_0", "group_msg_3"]


@pytest.mark.parametrize(
    ("text", "call", "comes_back"),
    [("C:c5 A:wait T:c5", 0, True), ("A:x C:c5 T:c5", 1, False)],
    ids=["a linked group is shown again", "an adjacent result does not bring its call back"],
)
def test_excluded_calls_whose_results_arrive(text: str, call: int, comes_back: bool) -> None:  # noqa: FBT001
    log = Log(conversation(text))
    ledger = Ledger.fresh(Context(log, 2), 2)
    group = ledger.entries[call].group
    assert group is not None
    ledger.exclude(group)
    ledger.continue_log(log, 3)
    assert ledger.entries[call].excluded is not comes_back
    assert not ledger.entries[2].excluded
