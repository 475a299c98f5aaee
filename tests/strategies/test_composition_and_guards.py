"""Compositions, guards and triggers act where they say, and record what they reject."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction_lab.arm import ArmRun
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Media, Message, Text, Usage, assistant, system, tool, user
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Situation
from compaction_lab.strategies.registry import build, build_trigger, strategy
from tests.strategies.fixture_f18 import f18
from tests.strategies.harness import CHARACTERS, Scribe, answered, applied, situation, slot

MASK = {"kind": "observation_masking", "keep_last": 0, "unit": "result"}
DROP = {"kind": "sliding_window", "keep_last": 1, "unit": "step"}
SUMMARY = {"kind": "summarize", "keep": 1, "unit": "step"}


def kinds(node: dict[str, object], messages: list[Message] | None = None, ask: object = None) -> set[str]:
    """Return what kinds of edits a composition made."""
    given = f18() if messages is None else messages
    arm = ArmRun(Log(given), (slot(build(node).run, "before_call", "stored"),))
    answered(arm.occasion("before_call", len(given)), ask or Scribe())
    return {edit.kind for firing in arm.firings for edit in firing.edits}


def test_the_first_that_acts_is_the_last_that_is_asked() -> None:
    nothing = {"kind": "truncation", "max_tokens": 10_000}
    assert kinds({"kind": "first_that_acts", "strategies": [nothing, MASK, DROP]}) == {"masked"}


def test_tiers_stop_at_the_target() -> None:
    cheap_is_enough = {"kind": "until_target", "target_tokens": 330, "strategies": [MASK, DROP]}
    assert kinds(cheap_is_enough) == {"masked"}
    assert kinds({**cheap_is_enough, "target_tokens": 100}) == {"masked", "dropped"}
    assert kinds({**cheap_is_enough, "target_tokens": 10_000}) == set()


def test_the_fallback_acts_only_after_a_failure() -> None:
    node = {"kind": "fallback", "strategies": [SUMMARY, DROP]}
    assert kinds(node) == {"summarised"}
    assert kinds(node, ask=Scribe(text="long " * 1000)) == {"dropped"}


def test_a_budget_has_a_last_resort_and_says_when_even_that_is_too_little() -> None:
    assert kinds({"kind": "budget_composed", "token_budget": 100, "strategies": [MASK]}) == {"masked", "dropped"}
    arm = ArmRun(
        Log(f18()), (slot(build({"kind": "budget_composed", "token_budget": 5}).run, "before_call", "stored"),)
    )
    answered(arm.occasion("before_call", 18))
    assert arm.firings[0].outcome.startswith("rejected: ")


def test_the_ladder_warns_once_then_acts_gently_then_hard() -> None:
    node = {"kind": "ladder", "warn_tokens": 40, "soft_tokens": 160, "soft": MASK, "hard_tokens": 300, "hard": DROP}
    log = Log(f18()[:4])
    arm = ArmRun(log, (slot(build(node).run, "before_call", "stored"),))
    rungs = []
    for message in f18()[4:]:
        log.append(message)
        answered(arm.occasion("before_call", len(log)))
        rungs.append(sorted({edit.kind for firing in arm.firings for edit in firing.edits}))
    assert rungs[0] == ["inserted"]
    assert rungs.count(["inserted"]) == 1
    assert ["masked"] in rungs


def test_rungs_must_ascend() -> None:
    with pytest.raises(ConfigurationError, match="must ascend"):
        build({"kind": "ladder", "soft_tokens": 50, "soft": MASK, "hard_tokens": 20, "hard": DROP})


@pytest.mark.parametrize(
    ("guard", "outcome"),
    [
        ({"min_progress": 0.99}, "at least 99% wanted"),
        ({"min_reclaim_tokens": 100_000}, "at least 100000 wanted"),
        ({"floor_tokens": 3}, "tokens may never be touched, 3 are allowed"),
    ],
)
def test_what_gains_too_little_is_rejected_and_recorded(guard: dict[str, object], outcome: str) -> None:
    arm = ArmRun(
        Log(f18()), (slot(build({"kind": "guarded", "strategy": MASK, **guard}).run, "before_call", "stored"),)
    )
    context = answered(arm.occasion("before_call", 18))
    assert context.messages == tuple(f18())
    assert outcome in arm.firings[0].outcome


def test_after_failures_the_latch_acts_instead() -> None:
    node = {"kind": "guarded", "strategy": SUMMARY, "breaker_after": 1, "latch_to": MASK}
    log = Log(f18())
    arm = ArmRun(log, (slot(build(node).run, "before_call", "stored"),))
    answered(arm.occasion("before_call", 18), Scribe(text="" * 3 + "long " * 1000))
    assert arm.firings[0].outcome.startswith("rejected: summary of")
    answered(arm.occasion("before_call", 18))
    assert {edit.kind for edit in arm.firings[0].edits} == {"masked"}


def test_compositions_nest_presets() -> None:
    placed = strategy(
        "until_target", target_tokens=100, strategies=[{"preset": "observation_masking", "keep_last": 0}, DROP]
    )
    assert len(applied(f18(), placed.run)) < 18


def acts(trigger: object, given: Situation) -> bool:
    return build_trigger(trigger)(given)


def test_shares_of_a_window_need_one() -> None:
    now = replace(situation(f18()), window_tokens=1000)
    tokens = now.tokens(now.context)
    assert acts({"window_fraction_exceeds": {"fraction": tokens / 1000 - 0.01}}, now)
    assert not acts({"window_fraction_exceeds": {"fraction": tokens / 1000}}, now)
    assert acts({"window_fraction_exceeds": {"fraction": tokens / 1000, "inclusive": True}}, now)
    assert acts({"window_reserve": 1000 - tokens + 1}, now)
    with pytest.raises(ConfigurationError, match="window is not known"):
        acts({"window_fraction_exceeds": 0.5}, situation(f18()))
    with pytest.raises(ConfigurationError, match="leaves nothing of a window of 1000"):
        acts({"window_reserve": 50_000}, now)


def test_reported_usage_counts_the_last_prompt_and_what_came_since() -> None:
    now = replace(situation(f18()[:6]), usage=Usage(fresh_input_tokens=900))
    since = sum(map(CHARACTERS.message, f18()[4:6]))
    assert acts({"usage_exceeds": 900 + since - 1}, now)
    assert not acts({"usage_exceeds": 900 + since}, now)


def test_turns_and_steps_are_counted_from_the_newest_summary() -> None:
    messages = [system("s"), user("a"), assistant("b"), user("c"), assistant("d")]
    summary = Message("user", (Text("so far"),), source="summary")
    over = situation(messages, "after_turn")
    assert acts({"every_turns": 2}, over)
    assert not acts({"every_turns": 2}, situation([*messages[:3], summary, *messages[3:]], "after_turn"))
    assert acts({"every_steps": 2}, over)
    assert not acts({"every_steps": 2}, situation([*messages[:3], summary, *messages[3:]]))


def test_occasions_idleness_images_work_and_birth() -> None:
    assert acts("requested", situation(f18(), "requested"))
    assert not acts("requested", situation(f18()))
    assert acts("overflow", situation(f18(), "overflow"))
    assert acts({"overflow": 100}, situation(f18()))
    assert not acts({"overflow": 100_000}, situation(f18()))
    timed = [user("a"), replace(assistant("b"), timestamp_s=0.0), replace(user("c"), timestamp_s=3700.0)]
    assert acts({"idle_exceeds": 3600}, situation(timed))
    assert not acts({"idle_exceeds": 3600}, situation(timed[:2]))
    picture = Message("user", (Media("image"), Media("image")))
    assert acts({"images_exceed": 1}, situation([picture]))
    assert acts({"work_exceeds": 500}, situation(f18()))
    assert not acts({"work_exceeds": 5000}, situation(f18()))
    assert acts({"result_exceeds": 40}, situation(f18()[:4]))
    assert not acts({"result_exceeds": 40}, situation(f18()))
    assert acts({"not": "never"}, situation([tool("x", "y")]))
