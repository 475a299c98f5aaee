"""Every preset that changes content: what it promises holds, and what it says it breaks is all it breaks."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Reasoning, Text, ToolCall, assistant, tool, user
from compaction_lab.conversation.validity import check
from compaction_lab.strategies.registry import preset
from tests.conversations import conversations, messy_conversations, shown
from tests.strategies.eager import CONTENT, eager
from tests.strategies.harness import every_occasion, slot

PROMISED = ("V1", "V2", "V3", "V4", "V5", "V8", "V13", "V16")


def own_violations(about: Mapping[str, object]) -> set[str]:
    return set(re.findall(r"\bV\d+\b", str(about.get("violates", ""))))


@pytest.mark.parametrize("name", CONTENT)
def test_the_preset_says_all_that_a_user_asks(name: str) -> None:
    node = preset(name)
    about = node["about"]
    assert isinstance(about, Mapping)
    for key in (
        "description",
        "mechanism",
        "mirrors",
        "parity",
        "unit",
        "cache",
        "keeps_task",
        "violates",
        "configure",
    ):
        assert key in about, key
    assert about["needs_llm"] is False
    assert re.match(r"faithful|approximate \(|interface only \(", str(about["parity"]))
    own = set(node) - {"kind", "preset", "about", "trigger", "tokenizer", "placement"}
    assert own <= set(about["parameters"])  # type: ignore[arg-type]


@given(conversations(), st.sampled_from(sorted(CONTENT)))
def test_what_was_valid_stays_valid_but_for_what_the_preset_says(messages: list[Message], name: str) -> None:
    about = preset(name)["about"]
    assert isinstance(about, Mapping)
    rules = tuple(rule for rule in PROMISED if rule not in own_violations(about))
    log = Log(messages)
    for _, stop, context, _ in every_occasion(messages, slot(eager(name))):
        found = check(context.messages, before=log.messages[:stop], rules=rules)
        assert not found, (name, found, shown(log.messages[:stop]), shown(context.messages))


@given(st.one_of(conversations(), messy_conversations()), st.sampled_from(sorted(CONTENT)))
def test_pinned_messages_stay_and_nothing_is_ever_lost_from_the_log(messages: list[Message], name: str) -> None:
    copies = list(messages)
    for _, stop, context, _ in every_occasion(messages, slot(eager(name))):
        for at, message in enumerate(messages[:stop]):
            assert not message.pinned or context.get((at, 0)) is message, (name, shown([message]))
    assert all(left is right for left, right in zip(messages, copies, strict=True))


@pytest.mark.parametrize("name", sorted(set(CONTENT) - {"sweagent/closed_window_history"}))
def test_each_preset_acts(name: str) -> None:
    long = "a line of the result of a long command\n" * 30
    messages: list[Message] = []
    for turn in range(4):
        messages.append(user(f"turn {turn}"))
        for step in range(3):
            call = ToolCall(f"c{turn}{step}", "look", '{"at": "' + "x" * 40 + '"}')
            thought = Message("assistant", (Reasoning("hm"), Text("thinking aloud, " * 5)), (call,))
            messages += [thought, tool(call.id, long, name="look")]
        messages.append(assistant("answer"))
    fired = sum(len(arm.firings) for _, _, _, arm in every_occasion(messages, slot(eager(name))))
    if name == "sweagent/tag_tool_call_observations":
        assert fired == 0  # labels are no part of a prompt
    else:
        assert fired > 0
