"""What went wrong in shipped summarisers, on its smallest conversation: shown where faithful, and mended."""

from __future__ import annotations

import pytest

from compaction_lab.arm import ArmRun
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Opaque, Text, ToolCall, assistant, system, tool, user
from compaction_lab.conversation.validity import check
from compaction_lab.errors import ConfigurationError, StrategyError
from compaction_lab.models.base import ModelReply
from compaction_lab.models.faulty import FaultySummarizer
from compaction_lab.strategies.mechanisms.opaque_compaction import EndpointModel
from compaction_lab.strategies.mechanisms.token_compression import TokenCompression
from compaction_lab.strategies.registry import strategy
from tests.strategies.fixture_f18 import f18
from tests.strategies.harness import CHARACTERS, Scribe, Slot, answered, sent


def once(
    messages: list[Message], name: str, *, ask: object = None, window: int | None = 1000, **parameters: object
) -> tuple[tuple[Message, ...], ArmRun, object]:
    placed = strategy(name, **parameters)
    asked = ask or Scribe()
    arm = ArmRun(Log(messages), (Slot(placed.run, placed.when, placed.history, CHARACTERS),), (), window)
    return answered(arm.occasion(placed.when, len(messages)), asked).messages, arm, asked


def rounds(count: int, size: int = 200) -> list[Message]:
    out = [user("TASK: never touch db.py")]
    for number in range(count):
        out += [assistant("", ToolCall(f"c{number}", "read", "{}")), tool(f"c{number}", "x" * size)]
    return out


def test_b59_without_a_user_message_in_reach_langchain_writes_a_canned_text_and_asks_nobody() -> None:
    task = {"trigger": {"messages": 5}, "keep": {"messages": 2}, "trim_tokens_to_summarize": 200}
    messages, _, scribe = once(rounds(10), "langchain/summarization_middleware", **task)
    assert "too long to summarize" in messages[0].text
    assert not scribe.requests
    messages, _, scribe = once(rounds(10), "langchain/summarization_middleware", repair=True, **task)
    assert "so far 1" in messages[0].text
    assert len(scribe.requests) == 1


def test_b47_a_reserve_beyond_the_window_fires_at_every_call_unless_mended() -> None:
    short = [user("hi"), assistant("hello"), user("again"), assistant("yes"), user("and?")]
    small = {"window": 32_768}
    assert len(once(short, "kimi_cli/simple_compaction", **small)[0]) == 3
    assert len(once(short, "kimi_cli/simple_compaction", repair=True, **small)[0]) == 5
    with pytest.raises(ConfigurationError, match="leaves nothing of a window"):
        once(short, "opencode/compact", reserved=50_000, **small)


def test_b65_what_no_summariser_has_read_is_reported() -> None:
    talk = [message for number in range(8) for message in (user(f"u{number} " + "x" * 400), assistant("y" * 400))]
    tight = {"max_tokens": 600, "max_input_tokens": 512 + 300}
    _, arm, _ = once(talk, "aider/chat_summary", **tight)
    assert "unread by the summarizer" in arm.firings[0].reason
    _, arm, _ = once(talk, "aider/chat_summary", repair=True, **tight)
    assert "unread" not in arm.firings[0].reason


def test_b71_braces_in_a_conversation_are_text() -> None:
    messages = [user("{x} {messages} {0}"), assistant("a {y}" * 50), user("go on")]
    _, _, scribe = once(messages, "summarize", keep=0, prompt="Sum up:\n{messages}\nEnd {z}.")
    (request,) = scribe.requests
    assert "{x} {messages} {0}" in request.messages[0].text
    assert request.messages[0].text.endswith("End {z}.")


def test_b70_in_a_chat_without_tools_texts_give_way_so_that_the_request_fits() -> None:
    talk = [message for _ in range(6) for message in (user("x" * 800), assistant("y" * 800))] + [user("and now?")]
    _, _, scribe = once(talk, "goose/context_compaction", window=500)
    assert CHARACTERS.message(scribe.requests[0].messages[-1]) < 600


def test_b35_the_newest_request_stays_verbatim_and_apart_from_the_summary() -> None:
    for name in ("goose/context_compaction", "roo_code/condense", "codex/compact", "summarize"):
        extra = {"keep": 0} if name == "summarize" else {}
        messages, _, _ = once(f18(), name, window=300, **extra)
        assert "summarise changes" in [message.text for message in messages]


def test_b13_two_chained_compactions_leave_no_orphan() -> None:
    slots = Slot(
        strategy("summarize", keep=2, unit="step", trigger={"messages_exceed": 6}).run,
        "before_call",
        "stored",
        CHARACTERS,
    )
    for messages in sent(rounds(20), slots, ask=Scribe()):
        assert not check(messages, rules=("V1", "V2", "V3", "V4"))


def test_b4_langmem_may_cut_inside_parallel_results() -> None:
    shape = {"max_tokens": 260, "max_tokens_before_summary": 150, "max_summary_tokens": 10}
    broken = [once(f18(120)[:stop], "langmem/summarize_messages", **shape)[0] for stop in range(2, 19)]
    assert any(check(messages, rules=("V1",)) for messages in broken)


def test_b20_an_open_call_is_never_summarised() -> None:
    messages = [*f18(), assistant("", ToolCall("open", "read", "{}"))]
    kept, _, _ = once(messages, "summarize", keep=0)
    assert kept[-1].calls[0].id == "open"


def test_b38_a_share_says_what_goes_not_what_stays() -> None:
    talk = [message for number in range(20) for message in (user(f"u{number} " + "x" * 200), assistant("y" * 200))]
    left = [
        len(once(talk, "letta/compaction", window=500, sliding_window_percentage=share)[0]) for share in (0.2, 0.5, 0.8)
    ]
    assert left == sorted(left, reverse=True)
    assert left[0] > 25


def test_b62_an_empty_answer_of_a_provider_is_no_compaction() -> None:
    asked = {"source": "endpoint", "threshold": 10}
    for reply in ("", "null", "a text", '{"type": "compaction", "content": null}'):
        messages, arm, _ = once(f18(), "opaque_compaction", ask=lambda _, text=reply: ModelReply(text), **asked)
        assert messages == tuple(f18())
        assert arm.firings[0].outcome.startswith("rejected: no compaction item came back")


def test_a_providers_item_stands_for_what_came_before_it() -> None:
    endpoint = EndpointModel(lambda messages, _: {"type": "compaction", "encrypted_content": str(len(messages))})
    messages, _, _ = once(f18(), "opaque_compaction", ask=endpoint, source="endpoint", threshold=10)
    assert [message.role for message in messages] == ["system", "assistant"]
    assert messages[1].parts == (Opaque("", '{"encrypted_content": "18", "type": "compaction"}'),)
    recorded = Message("assistant", (Opaque("anthropic", '{"content": "so far", "type": "compaction"}'),))
    messages, _, _ = once([*f18(), recorded, user("on")], "anthropic/compact")
    assert [message.text for message in messages] == ["SYS", "", "on"]


def test_token_level_compression_says_what_is_missing_and_imitates_nothing() -> None:
    with pytest.raises(StrategyError, match="pip install llmlingua"):
        once(rounds(6), "token_compression", keep_last=0, unit="step")
    own = TokenCompression(keep_last=0, unit="step", compressor=lambda text, rate: text[: int(len(text) * rate)])
    messages = sent([*rounds(3), assistant("done"), user("next")], Slot(own, "before_call", "view", CHARACTERS))[-1]
    assert [len(message.text) for message in messages if message.role == "tool"] == [100, 100, 100]


def test_a_self_summary_reads_the_unchanged_prefix() -> None:
    _, _, scribe = once(f18(), "summarize", keep=0, asks="conversation")
    assert scribe.requests[0].messages[:-1] == tuple(f18())


def test_a_split_turn_has_its_early_part_summarised_beside_the_history() -> None:
    messages = [user("old"), assistant("answer " * 50), *rounds(8)]
    _, _, scribe = once(messages, "summarize", keep=2, unit="step", split_turn=True)
    assert len(scribe.requests) == 2
    assert "old" in scribe.requests[0].messages[-1].text
    assert "old" not in scribe.requests[1].messages[-1].text


def test_a_verification_pass_completes_the_summary() -> None:
    messages, _, scribe = once(f18(), "summarize", keep=0, verify=True)
    assert "so far 1" in scribe.requests[1].messages[-1].text
    assert messages[1].text.endswith("so far 2")


def test_an_update_is_shown_the_earlier_summary_apart() -> None:
    earlier = Message("user", (Text("Summary of the conversation so far: OLD"),), source="summary")
    messages = [system("s"), earlier, *rounds(6)]
    _, _, scribe = once(messages, "summarize", keep=1, unit="step", previous="update")
    text = scribe.requests[0].messages[-1].text
    assert "<previous_summary>\nOLD\n</previous_summary>" in text
    assert text.count("OLD") == 1


def test_a_forced_tool_fills_the_fields() -> None:
    call = ToolCall("1", "create_state_summary", '{"user_context": "fix", "pending_tasks": "tests", "pr_status": ""}')
    messages, _, _ = once(
        f18(), "openhands/structured_summary", ask=lambda _: ModelReply("", (call,)), max_size=8, keep_first=1
    )
    assert messages[1].text == "user context: fix\npending tasks: tests"


def test_user_messages_stay_newest_first_and_the_oldest_is_clipped() -> None:
    talk = [message for number in range(4) for message in (user(f"u{number} " + "x" * 196), assistant("y" * 400))]
    messages, _, _ = once(
        [*talk, user("now")], "codex/compact", model_auto_compact_token_limit=10, compact_user_message_max_tokens=80
    )
    users = [message.text for message in messages if message.role == "user" and message.source != "summary"]
    assert users[-2].startswith("u3")
    assert users[0].startswith("u2")
    assert len(users[0]) < 200
    assert not any(message.role == "assistant" for message in messages)


def test_results_are_rewritten_once() -> None:
    slots = Slot(strategy("rewrite_results", limit=2).run, "before_call", "stored", CHARACTERS)
    scribe = Scribe()
    list(sent(rounds(6), slots, ask=scribe))
    assert len(scribe.requests) <= 6


def test_an_archive_is_searched_for_what_the_newest_user_message_asks() -> None:
    talk = [
        user("The deploy key is 7f3a"),
        assistant("noted " * 40),
        user("Tell me about the weather"),
        assistant("sunny " * 40),
        user("What was the deploy key?"),
    ]
    messages, _, _ = once(talk, "memory_blocks", token_limit=20, token_flush_size=1, archive_top_k=1, fact_block=False)
    assert "7f3a" in messages[0].text
    assert "weather" not in messages[0].text


def test_truncation_is_what_agentscope_falls_back_to() -> None:
    messages, arm, _ = once(f18(), "agentscope/context_compression", ask=FaultySummarizer("raising"), window=400)
    assert len(messages) < 18
    assert "after: rejected: summarizer failed" in arm.firings[0].reason


@pytest.mark.parametrize(
    "name", ["goose/context_compaction", "roo_code/condense", "codex/compact", "vibe/auto_compact"]
)
def test_b50_a_session_of_a_single_turn_is_compacted_too(name: str) -> None:
    extra = {"auto_compact_threshold": 100} if name == "vibe/auto_compact" else {}
    messages, _, scribe = once(rounds(20), name, window=500, **extra)
    assert scribe.requests
    assert len(messages) < 8
