"""Strategies that others wrote, run as arms; and the lab's, run inside Agent Framework."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import compaction_lab as lab
from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, ToolCall, assistant, system, tool, user
from compaction_lab.errors import ConfigurationError, SummarizerMissing
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.base import Strategy
from compaction_lab.strategies.foreign import Foreign
from compaction_lab.strategies.registry import build
from tests.strategies.harness import CHARACTERS, Scribe, answered, nobody

EXAMPLES = "tests.strategies.foreign_examples"


def talk(turns: int = 3) -> list[Message]:
    messages = [system("be brief")]
    for turn in range(1, turns + 1):
        call = ToolCall(f"c{turn}", "look", f'{{"n": {turn}}}')
        messages += [user(f"u{turn}"), assistant("", call), tool(f"c{turn}", f"r{turn}"), assistant(f"a{turn}")]
    return messages


def texts(messages: Any) -> list[str]:
    return [message.text or ",".join(call.id for call in message.calls) for message in messages]


def once(strategy: Strategy, messages: list[Message], ask: Any = nobody) -> tuple[list[str], ArmRun]:
    arm = ArmRun(Log(messages), (Slot(strategy, "before_call", "stored", CHARACTERS),))
    context = answered(arm.occasion("before_call", len(messages)), ask)
    return texts(context.messages), arm


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("newest_three", ["be brief", "c2", "r2", "a2"]),
        ("in_place", ["be brief", "r1", "a1", "u2", "c2", "r2", "a2"]),
        ("shouting", ["be brief", "u1", "c1", "R1", "a1", "u2", "c2", "R2", "a2"]),
        ("waiting", ["r2", "a2"]),
        ("reversed_order", ["a2", "r2", "c2", "u2", "a1", "r1", "c1", "u1", "be brief"]),
    ],
)
def test_a_callable_on_chat_messages(name: str, expected: list[str]) -> None:
    found, arm = once(Foreign(f"{EXAMPLES}:{name}"), talk(2))
    assert found == expected
    assert arm.firings[0].outcome == "ok"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("crashing", "raised KeyError: 'no such key'"),
        ("leaving", "raised RuntimeError: SystemExit"),
        ("hanging", "raised Hung: no result within 0.2 s"),
        ("confused", "returned dict, not a list of messages"),
        ("strange_roles", "returned what is no message: message 9: field 'role'"),
    ],
)
def test_what_goes_wrong_is_the_arms_finding(name: str, why: str) -> None:
    messages = talk(2)
    found, arm = once(Foreign(f"{EXAMPLES}:{name}", timeout_s=0.2), messages)
    assert found == texts(messages)
    assert arm.firings[0].outcome.startswith(f"rejected: foreign strategy {why}")
    assert not arm.firings[0].changed


def test_its_model_calls_are_the_arms_summarizer_calls() -> None:
    scribe = Scribe("SUM")
    summarizing = build({"kind": "foreign", "target": f"{EXAMPLES}:Summarizing"}).run
    found, _ = once(summarizing, talk(1), scribe)
    assert found == ["SUM 1", "a1"]
    assert [request.purpose for request in scribe.requests] == ["summarizer"]


def test_a_path_that_leads_nowhere_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="expected module:attribute"):
        Foreign("my_agent.compact")
    with pytest.raises(ConfigurationError, match="cannot be imported"):
        Foreign("no_such_package:compact")


class TestAgentFramework:
    """The package's own strategies and a user's, through the same replay."""

    af = pytest.importorskip("agent_framework")

    @pytest.mark.parametrize("history", ["view", "stored"])
    @pytest.mark.parametrize(
        ("theirs", "arguments", "ours"),
        [
            ("SlidingWindowStrategy", {"keep_last_groups": 3}, "sliding_window"),
            ("ToolResultCompactionStrategy", {"keep_last_tool_call_groups": 1}, "tool_result"),
            ("TruncationStrategy", {"max_n": 200, "compact_to": 120, "tokenizer": "characters"}, "truncation"),
            ("SummarizationStrategy", {"target_count": 4, "threshold": 1, "prompt": "Sum up."}, "summarization"),
        ],
    )
    def test_it_does_what_our_own_does(self, theirs: str, arguments: dict[str, Any], ours: str, history: Any) -> None:
        messages = talk(4)
        runs = (
            Foreign(f"agent_framework:{theirs}", "agent_framework", arguments),
            build({"kind": f"agent_framework/{ours}", **arguments}).run,
        )
        arms = [ArmRun(Log(messages), (Slot(run, "before_call", history, CHARACTERS),)) for run in runs]
        scribes = [Scribe(), Scribe()]
        for stop in range(2, len(messages) + 1):
            sent = [
                texts(answered(arm.occasion("before_call", stop), ask).messages)
                for arm, ask in zip(arms, scribes, strict=True)
            ]
            assert sent[0] == sent[1]
        assert scribes[0].read == scribes[1].read

    def test_a_composition_is_made_from_paths(self) -> None:
        window = {"target": "agent_framework:SlidingWindowStrategy", "arguments": {"keep_last_groups": 2}}
        arguments = {"token_budget": 10, "tokenizer": "characters", "strategies": [window]}
        strategy = Foreign("agent_framework:TokenBudgetComposedStrategy", "agent_framework", arguments)
        found, _ = once(strategy, talk(2))
        assert found == ["a2"]

    def test_a_users_own_is_awaited_and_keeps_its_notes(self) -> None:
        messages = talk(3)
        strategy = Foreign(f"{EXAMPLES}:Fussy", "agent_framework", {"word": "r1"})
        arm = ArmRun(Log(messages), (Slot(strategy, "before_call", "stored", CHARACTERS),))
        for stop in (4, 8, 13):
            context = answered(arm.occasion("before_call", stop))
        assert texts(context.messages) == ["be brief", "u1", "a1", "u2", "c2", "r2", "a2", "u3", "c3", "r3", "a3"]


class TestLangChain:
    """Context edits and middleware."""

    langchain = pytest.importorskip("langchain")
    pytestmark = pytest.mark.filterwarnings("ignore")

    def test_a_context_edit(self) -> None:
        arguments = {"trigger": 1, "keep": 1, "placeholder": "[gone]"}
        strategy = Foreign("langchain.agents.middleware:ClearToolUsesEdit", "langchain", arguments)
        found, _ = once(strategy, talk(2))
        assert found == ["be brief", "u1", "c1", "[gone]", "a1", "u2", "c2", "r2", "a2"]

    def test_a_middleware_that_summarises(self) -> None:
        arguments = {"trigger": ["messages", 6], "keep": ["messages", 2]}
        strategy = Foreign("tests.strategies.test_foreign:summarization_middleware", "langchain", arguments)
        scribe = Scribe("SUM")
        found, _ = once(strategy, talk(2), scribe)
        assert len(found) == 4
        assert "SUM 1" in found[0]
        assert found[1:] == ["c2", "r2", "a2"]


def summarization_middleware(model: Any, trigger: list[Any], keep: list[Any]) -> Any:
    from langchain.agents.middleware import SummarizationMiddleware

    return SummarizationMiddleware(model, trigger=tuple(trigger), keep=tuple(keep))


class TestReverse:
    """Our strategies inside the real package."""

    af = pytest.importorskip("agent_framework")

    def messages(self) -> list[Any]:
        from compaction_lab.strategies.agent_framework.convert import to_framework

        return [to_framework(message, self.af) for message in talk(3)]

    def kept(self, strategy: Any, messages: list[Any]) -> list[str]:
        kept = asyncio.run(self.af.apply_compaction(messages, strategy=strategy))
        return [m.text or ",".join(str(c.result or c.call_id) for c in m.contents) for m in kept]

    def test_hidden_messages_are_excluded(self) -> None:
        strategy = lab.to_agent_framework(lab.strategy("sliding_window", keep_last=1))
        messages = self.messages()
        assert isinstance(strategy, self.af.CompactionStrategy)
        assert self.kept(strategy, messages) == ["be brief", "u2", "c2", "r2", "a2", "u3", "c3", "r3", "a3"]
        assert len(messages) == 13
        assert self.kept(strategy, messages) == ["be brief", "u2", "c2", "r2", "a2", "u3", "c3", "r3", "a3"]

    def test_stand_ins_take_the_place_of_what_they_stand_for(self) -> None:
        masking = lab.strategy("observation_masking", keep_last=2, placeholder="-")
        assert self.kept(lab.to_agent_framework(masking), self.messages()).count("-") == 2

    def test_summaries_come_from_a_callable_or_a_client(self) -> None:
        async def asked(messages: list[Any]) -> str:
            return f"summary of {len(messages)}"

        strategy = lab.strategy("agent_framework/summarization", target_count=2)
        assert self.kept(lab.to_agent_framework(strategy, asked), self.messages())[1] == "summary of 2"
        with pytest.raises(SummarizerMissing):
            self.kept(lab.to_agent_framework(strategy), self.messages())

    def test_it_works_inside_the_frameworks_own_composition(self) -> None:
        strategy = lab.to_agent_framework(lab.strategy("sliding_window", keep_last=0))
        budget = self.af.TokenBudgetComposedStrategy(
            token_budget=200, tokenizer=self.af.CharacterEstimatorTokenizer(), strategies=[strategy]
        )
        assert self.kept(budget, self.messages()) == ["be brief", "u3", "c3", "r3", "a3"]


def test_the_request_of_a_foreign_strategy_reaches_the_replay() -> None:
    def refuse(request: ModelRequest) -> ModelReply:
        return ModelReply(error=f"no model for {request.purpose}")

    strategy = Foreign(f"{EXAMPLES}:Summarizing")
    found, arm = once(strategy, talk(1), refuse)
    assert found == texts(talk(1))
    assert arm.firings[0].outcome == "rejected: foreign strategy raised RuntimeError: no model for summarizer"
