from collections.abc import Sequence
from dataclasses import replace

import pytest

from compaction_lab.conversation.messages import (
    Message,
    Reasoning,
    Text,
    ToolCall,
    assistant,
    system,
    tool,
    user,
)
from compaction_lab.conversation.profiles import PROFILES
from compaction_lab.conversation.validity import RULES, check
from compaction_lab.errors import ConfigurationError


def call(*ids: str) -> Message:
    return assistant("", *(ToolCall(call_id, "look", "{}") for call_id in ids))


GOOD = [
    system("be brief", pinned=True),
    user("find the port"),
    call("a", "b"),
    tool("a", "8417"),
    tool("b", "nothing"),
    assistant("8417"),
    user("thanks, and the host?"),
]


def broken(messages: Sequence[Message], before: Sequence[Message] | None = None, **options: object) -> set[str]:
    return {finding.rule for finding in check(messages, before=before, **options)}  # type: ignore[arg-type]


def test_a_sound_conversation_breaks_no_rule_under_any_profile() -> None:
    for profile in PROFILES:
        assert check(GOOD, before=GOOD, profile=profile, apply=list) == []


SIGNED = Message("assistant", (Reasoning("so", "signature"),), (ToolCall("a", "look", "{}"),))
ONE_CALL = [user("go"), SIGNED, tool("a", "1")]

ALONE = {
    "V1": [user("go"), call("a"), tool("a", "1"), assistant("so"), tool("a", "late"), user("?")],
    "V2": [user("go"), call("a"), user("?")],
    "V3": [user("go"), call("a"), tool("a", "1"), tool("a", "again")],
    "V4": [user("go"), call("a", "b"), tool("a", "1"), user("?")],
    "V5": [user("go"), Message("assistant", (Reasoning("so", "signature"),)), user("?")],
    "V6": [user("go"), system("late rule"), user("?")],
    "V7": [system("be brief"), assistant("hello"), user("go")],
    "V8": [user("go"), assistant("done"), user("  ")],
    "V9": [user("go"), user("now")],
    "V10": [system("be brief")],
    "V11": [user("go"), assistant("done")],
    "V13": [replace(user("go"), extra={"agent": "main"})],
}


@pytest.mark.parametrize("rule", ALONE)
def test_a_message_list_that_breaks_the_rule(rule: str) -> None:
    assert rule in broken(ALONE[rule])


@pytest.mark.parametrize(
    ("rule", "after", "before"),
    [
        ("V4", [user("go"), call("b", "a"), tool("b", "1"), tool("a", "2")], [*GOOD[1:2], *GOOD[2:5]]),
        ("V4", [user("go"), call("b"), tool("b", "1")], GOOD[1:5]),
        ("V4", [user("go"), GOOD[2], GOOD[4], GOOD[3]], GOOD[1:5]),
        ("V5", [user("go"), replace(SIGNED, parts=()), tool("a", "1")], ONE_CALL),
        ("V12", GOOD[5:], GOOD),
        ("V14", [*GOOD[:5], assistant("a longer answer than there was"), GOOD[6]], GOOD),
        ("V16", GOOD[1:], GOOD),
        ("V16", [replace(GOOD[0], parts=(Text("be verbose"),)), *GOOD[1:]], GOOD),
        ("V17", [*GOOD[:3], tool("a", "[gone]"), *GOOD[4:]], GOOD),
    ],
)
def test_a_compaction_that_breaks_the_rule(rule: str, after: list[Message], before: list[Message]) -> None:
    assert rule in broken(after, before)


def test_idempotence_needs_the_strategy_and_is_skipped_without_it() -> None:
    assert "V15" not in broken(GOOD)
    assert "V15" in broken(GOOD, apply=lambda messages: messages[:-1])


def test_a_pending_last_batch_is_allowed() -> None:
    assert broken([user("go"), call("a", "b"), tool("b", "1")]) == set()


def test_an_id_used_again_is_judged_with_its_own_call() -> None:
    assert broken([user("go"), call("a"), tool("a", "1"), call("a"), tool("a", "2")]) == set()


def test_one_response_in_several_messages_is_one_batch() -> None:
    first, second = (replace(call(name), response_id="r1") for name in "ab")
    messages = [user("go"), first, second, tool("a", "1"), tool("b", "2")]
    assert broken(messages) == set()


def test_cleared_reasoning_of_an_earlier_turn_is_no_loss() -> None:
    before = [*ONE_CALL, assistant("1"), user("next")]
    after = [before[0], replace(SIGNED, parts=()), *before[2:]]
    assert "V5" not in broken(after, before)


def test_a_tool_may_answer_nothing() -> None:
    assert broken([user("go"), call("a"), tool("a", "")]) == set()
    assert "V8" in broken([user("go"), call("a"), Message("tool", call_id="a")])


def test_first_changed_place_is_reported_and_never_an_error() -> None:
    for profile in PROFILES:
        (finding,) = check(GOOD[:2] + GOOD[5:], before=GOOD, profile=profile, rules=["V17"])
        assert (finding.message_index, finding.is_error) == (2, False)


def test_profiles_differ_in_what_they_refuse() -> None:
    late_system = [user("go"), system("late rule"), user("?")]
    errors = {
        name: {finding.rule for finding in check(late_system, profile=name) if finding.is_error} for name in PROFILES
    }
    assert errors == {"openai": set(), "anthropic": {"V6"}, "gemini": {"V6"}, "lenient": set()}


def test_every_rule_is_named_once_and_an_unknown_profile_is_refused() -> None:
    assert list(RULES) == [f"V{number}" for number in range(1, 18)]
    assert all(profile.errors <= set(RULES) for profile in PROFILES.values())
    with pytest.raises(ConfigurationError, match="openai, anthropic, gemini, lenient"):
        check(GOOD, profile="opneai")
