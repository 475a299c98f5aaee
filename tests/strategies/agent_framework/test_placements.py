"""Where the framework lets compaction act, and the placements of the lab that equal it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from compaction_lab.arm import ArmRun, Slot, occasions
from compaction_lab.conversation.log import Log
from compaction_lab.strategies.base import History, Occasion
from tests.strategies.agent_framework.shorthand import conversation, strategy, written
from tests.strategies.harness import CHARACTERS, Scribe, answered

TALK = "U:u1 A:a1 U:u2 A:a2 U:u3 A:a3 U:u4 A:a4"


def sent(text: str, *slots: tuple[str, Occasion, History], ask: Any = None) -> dict[int, str]:
    """Return what is sent with each call, by the number of messages there are."""
    log = Log(conversation(text))
    arm = ArmRun(log, tuple(Slot(strategy(name), when, history, CHARACTERS) for name, when, history in slots))
    scribe = ask or Scribe("S")
    shown = {}
    for occasion, stop, _ in occasions(log):
        context = answered(arm.occasion(occasion, stop), scribe)
        if occasion == "before_call":
            shown[stop] = written(list(context.messages))
    return shown


def last_call(text: str, name: str) -> str:
    shown: Sequence[str] = list(sent(text, (name, "before_call", "turn")).values())
    return shown[-1]


def test_a_before_strategy_does_not_see_the_new_input() -> None:
    shown = sent(TALK, ("SW(k=2)", "before_turn", "turn"))
    assert shown[7] == "U:u3 A:a3 U:u4"


def test_a_before_strategy_summarises_the_whole_history_anew_every_turn() -> None:
    scribe = Scribe("S")
    shown = sent(TALK, ("Sum(t=2,th=0)", "before_turn", "turn"), ask=scribe)
    assert shown[5] == "«S 1» U:u2 A:a2 U:u3"
    assert shown[7] == "«S 2» U:u3 A:a3 U:u4"
    assert scribe.read[1].splitlines()[0] == "1. [user] u1"


def test_an_after_strategy_rewrites_what_is_stored() -> None:
    scribe = Scribe("S")
    shown = sent(TALK, ("Sum(t=2,th=0)", "after_turn", "stored"), ask=scribe)
    assert shown[5] == "«S 1» U:u2 A:a2 U:u3"
    assert shown[7] == "«S 2» U:u3 A:a3 U:u4"
    assert scribe.read[1].splitlines()[0] == "1. [assistant] S 1"


def test_an_agents_strategy_starts_over_with_every_run() -> None:
    scribe = Scribe("S")
    shown = sent(TALK, ("Sum(t=2,th=0)", "before_call", "turn"), ask=scribe)
    assert shown[5] == "«S 2» A:a2 U:u3"
    assert scribe.read[1].splitlines()[0] == "1. [user] u1"


def test_summaries_gather_inside_one_run() -> None:
    text = "U:u1 C:1/w T:1=L:~sunny C:2/w T:2=P:~sunny C:3/w T:3=x"
    assert (
        last_call(text, "TRes(keep=1)") == "U:u1 «[Tool results: w: L: sunny]» «[Tool results: w: P: sunny]» C:3 T:3=x"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tr(max=6,to=4)", "C:c3 T:c3 C:c4 T:c4"),
        ("Sel(keep=0)", "U:u0 A:a0 U:u1"),
        ("TRes(keep=0)", "U:u0 A:a0 U:u1 " + " ".join(["«[Tool results: tool: ok]»"] * 4)),
    ],
    ids=["the current request is gone", "no result is ever seen", "the request ends in an assistant message"],
)
def test_what_the_framework_does_in_its_tool_loop(name: str, expected: str) -> None:
    text = "U:u0 A:a0 U:u1 " + " ".join(f"C:c{n} T:c{n}" for n in (1, 2, 3, 4))
    assert last_call(text, name) == expected


def test_before_and_after_work_on_one_history() -> None:
    text = "U:u1 C:a/w T:a A:a1 U:u2 C:b/w T:b A:a2 U:u3 A:a3"
    shown = sent(text, ("SW(k=3)", "before_turn", "turn"), ("TRes(keep=1)", "after_turn", "stored"))
    assert shown[9] == "U:u2 C:b T:b A:a2 U:u3"
    alone = sent(text, ("TRes(keep=1)", "after_turn", "stored"))
    assert alone[9] == "U:u1 «[Tool results: w: ok]» A:a1 U:u2 C:b T:b A:a2 U:u3"
