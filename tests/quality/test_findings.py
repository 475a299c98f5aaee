"""Validity is judged at every call, and checking only changed structures finds what checking every call finds."""

from __future__ import annotations

from collections import Counter

import pytest

from compaction_lab.arm import ArmRun, Slot, occasions
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, ToolCall, assistant, system, tool, user
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.conversation.validity import check
from compaction_lab.quality.findings import RULES, ValidityWatch
from compaction_lab.strategies.registry import strategy

COUNTER = TokenCounter(tokenizer("characters"))


def session(turns: int, steps: int) -> Log:
    messages: list[Message] = [system("Be kind.")]
    for turn in range(turns):
        messages.append(user(f"Task {turn}"))
        for step in range(steps):
            name = f"{turn}-{step}"
            messages += [assistant("", ToolCall(name, "look", "{}")), tool(name, f"found {name} " * 20)]
        messages.append(assistant("Done."))
    return Log(messages)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("none", {}),
        ("observation_masking", {"keep_last": 2}),
        ("sliding_window", {"keep_last": 3, "unit": "step"}),
        ("sliding_window", {"keep_last": 2, "unit": "message"}),
        ("truncation", {"max_tokens": 300}),
    ],
)
def test_skipping_unchanged_structures_changes_no_answer(name: str, parameters: dict[str, object]) -> None:
    log = session(turns=4, steps=4)
    placed = strategy(name, **parameters)
    arm = ArmRun(log, (Slot(placed.run, placed.when, placed.history, COUNTER),))
    watch = ValidityWatch(log)
    task = [log.messages[1]]
    for occasion, stop, _ in occasions(log):
        occurring = arm.occasion(occasion, stop)
        try:
            next(occurring)
        except StopIteration as end:
            sent = end.value
        watch.saw(arm.firings)
        if occasion == "before_call":
            every = Counter(finding.rule for finding in check(sent.messages, before=task, rules=RULES))
            assert watch.at_call(sent) == dict(every), f"call at {stop}"


def test_an_arm_that_drops_the_task_breaks_v7_and_v12_and_the_recording_itself_breaks_nothing() -> None:
    log = session(turns=1, steps=6)
    watch = ValidityWatch(log)
    placed = strategy("sliding_window", keep_last=2, unit="step")
    arm = ArmRun(log, (Slot(placed.run, placed.when, placed.history, COUNTER),))
    with pytest.raises(StopIteration) as end:
        next(arm.occasion("before_call", len(log) - 1))
    watch.saw(arm.firings)
    assert ValidityWatch(log).at_call(arm.shown) == {}
    found = watch.at_call(end.value.value)
    assert found is not None
    assert found.keys() <= {"V7", "V12"}
