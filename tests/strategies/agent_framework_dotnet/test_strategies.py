"""What each strategy leaves, after the framework's documented examples and the cases of its source."""

from __future__ import annotations

import pytest

from compaction_lab.errors import ConfigurationError
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.registry import build, strategy
from tests.strategies.agent_framework_dotnet.shorthand import PREFIX, Session, conversation, left
from tests.strategies.harness import Scribe

TALK = "S:s U:q1 A:a1 U:q2 A:a2 U:q3 A:a3"
TOOLS = "U:q1 C:c1/get_weather T:c1=sunny U:q2 C:c2/find T:c2=docs U:q3"

TRUNCATION = [
    ({"trigger": "always", "minimum_preserved": 1}, "S:s  U:q2  A:a2  U:q3  A:a3".replace("U:q2  A:a2  U:q3  ", "")),
    ({"trigger": "never", "minimum_preserved": 1}, "S:s  U:q1  A:a1  U:q2  A:a2  U:q3  A:a3"),
    ({"trigger": {"groups_exceed": 4}, "minimum_preserved": 1}, "S:s  A:a2  U:q3  A:a3"),
    ({"trigger": {"messages_exceed": 6}, "minimum_preserved": 1}, "S:s  A:a1  U:q2  A:a2  U:q3  A:a3"),
    ({"trigger": "always", "minimum_preserved": 4}, "S:s  U:q2  A:a2  U:q3  A:a3"),
    ({"trigger": "always", "minimum_preserved": -3}, "S:s"),
    ({"trigger": "always"}, "S:s  U:q1  A:a1  U:q2  A:a2  U:q3  A:a3"),
    (
        {"trigger": "always", "minimum_preserved": 1, "target": {"messages_exceed": 0}},
        "S:s  A:a1  U:q2  A:a2  U:q3  A:a3",
    ),
    ({"trigger": {"all": ["has_tool_calls", "always"]}, "minimum_preserved": 1}, "  ".join(TALK.split())),
    ({"trigger": {"any": []}, "minimum_preserved": 1}, "  ".join(TALK.split())),
    ({"trigger": {"all": []}, "minimum_preserved": 5}, "S:s  A:a1  U:q2  A:a2  U:q3  A:a3"),
    ({"trigger": {"tokens_below": 100}, "minimum_preserved": 5}, "S:s  A:a1  U:q2  A:a2  U:q3  A:a3"),
]


@pytest.mark.parametrize(("parameters", "expected"), TRUNCATION)
def test_truncation(parameters: dict[str, object], expected: str) -> None:
    assert left(TALK, "truncation", **parameters) == expected


def test_tokens_are_those_of_groups() -> None:
    talk = "U:" + "x" * 7 + " A:" + "y" * 8 + " U:" + "z" * 9
    assert left(talk, "truncation", trigger={"tokens_exceed": 5}, minimum_preserved=0) == "  ".join(talk.split())
    assert left(talk, "truncation", trigger={"tokens_exceed": 4}, minimum_preserved=0) == "  ".join(talk.split()[1:])


def test_one_group_beside_the_systems_is_never_touched() -> None:
    assert left("S:s U:q", "truncation", trigger="always", minimum_preserved=0) == "S:s  U:q"


def test_a_call_goes_with_its_results() -> None:
    assert (
        left(TOOLS, "truncation", trigger={"messages_exceed": 5}, minimum_preserved=1) == "U:q2  C:c2  T:c2=docs  U:q3"
    )


WINDOWS = [
    ({"trigger": {"turns_exceed": 2}}, "S:s  U:q2  A:a2  U:q3  A:a3"),
    ({"trigger": {"turns_exceed": 3}}, "  ".join(TALK.split())),
    ({"trigger": "always"}, "S:s  U:q3  A:a3"),
    ({"trigger": "always", "minimum_preserved": 2}, "S:s  U:q2  A:a2  U:q3  A:a3"),
    ({"trigger": "always", "minimum_preserved": 0}, "S:s"),
    ({"trigger": "always", "target": {"turns_exceed": 0}}, "S:s  U:q2  A:a2  U:q3  A:a3"),
]


@pytest.mark.parametrize(("parameters", "expected"), WINDOWS)
def test_sliding_window(parameters: dict[str, object], expected: str) -> None:
    assert left(TALK, "sliding_window", **parameters) == expected


def test_what_precedes_the_first_user_message_stays() -> None:
    assert left("A:hello U:q1 A:a1 U:q2", "sliding_window", trigger="always") == "A:hello  U:q2"


def test_tool_results_by_name() -> None:
    assert left(TOOLS, "tool_result", trigger="always", minimum_preserved=1) == (
        "U:q1  «[Tool Calls]\nget_weather:\n  - sunny»  U:q2  «[Tool Calls]\nfind:\n  - docs»  U:q3"
    )
    assert left(TOOLS, "tool_result", trigger="always", minimum_preserved=1, tool_call_formatter="names") == (
        "U:q1  «[Tool calls: get_weather]»  U:q2  «[Tool calls: find]»  U:q3"
    )


def test_results_of_one_function_stand_together_and_plain_texts_are_taken_in_order() -> None:
    together = left(
        "U:q C:c1/w,c2/w,c3/d T:c3=Found~3 T:=Sunny T:=Rainy U:q2", "tool_result", trigger="always", minimum_preserved=1
    )
    assert together == "U:q  «[Tool Calls]\nw:\n  - Sunny\n  - Rainy\nd:\n  - Found 3»  U:q2"
    assert left("U:q C:c1/w T:zz=lost U:q2", "tool_result", trigger="always", minimum_preserved=1) == (
        "U:q  «[Tool Calls]\nw:»  U:q2"
    )


def test_the_protected_tail_of_tool_results_counts_groups_of_any_kind() -> None:
    """The documented 2 leaves one call where the source's 16 leaves both."""
    assert left(TOOLS, "tool_result", trigger="always").count("[Tool Calls]") == 1
    assert left(TOOLS, "tool_result", trigger="always", defaults="source").count("[Tool Calls]") == 0
    stopped = left(TOOLS, "tool_result", trigger="always", minimum_preserved=0, target="always")
    assert stopped.count("[Tool Calls]") == 1


def test_collapsing_again_changes_nothing_and_a_later_turn_drops_the_text_with_its_turn() -> None:
    session = Session(
        "pipeline",
        strategies=[
            {"kind": PREFIX + "tool_result", "trigger": "has_tool_calls", "minimum_preserved": 1},
            {"kind": PREFIX + "sliding_window", "trigger": {"turns_exceed": 3}},
        ],
    )
    collapsed = session.send(conversation(TOOLS))
    assert session.send([]) == collapsed
    assert session.send(conversation("A:a3 U:q4")) == [
        "U:q2",
        "«[Tool Calls]\nfind:\n  - docs»",
        "U:q3",
        "A:a3",
        "U:q4",
    ]


def test_a_summary_stands_where_the_first_summarised_group_stood() -> None:
    scribe = Scribe("sum")
    found = left("S:s U:q1 S:mid A:a1 U:q2 A:a2", "summarization", scribe, trigger="always", minimum_preserved=2)
    assert found == "S:s  «[Summary]\nsum 1»  S:mid  U:q2  A:a2"
    (request,) = scribe.requests
    assert [message.role for message in request.messages] == ["system", "user", "assistant"]
    assert [message.text for message in request.messages[1:]] == ["q1", "a1"]


def test_defaults_of_summarisation() -> None:
    assert (
        left(TALK, "summarization", Scribe("sum"), trigger="always")
        == "S:s  «[Summary]\nsum 1»  U:q2  A:a2  U:q3  A:a3"
    )
    assert left(TALK, "summarization", trigger="always", defaults="source") == "  ".join(TALK.split())


def test_marking_stops_at_the_target() -> None:
    found = left(TALK, "summarization", Scribe("sum"), trigger={"messages_exceed": 6}, minimum_preserved=1)
    assert found == "S:s  «[Summary]\nsum 1»  A:a1  U:q2  A:a2  U:q3  A:a3"


def test_a_blank_summary_replaces_and_a_failed_one_does_not() -> None:
    blank = left(TALK, "summarization", lambda _: ModelReply("  "), trigger="always", minimum_preserved=1)
    assert blank == "S:s  «[Summary]\n[Summary unavailable]»  A:a3"
    session = Session("summarization", trigger="always", minimum_preserved=1)
    assert session.send(conversation(TALK), lambda _: ModelReply(error="down")) == TALK.split()
    assert [firing.outcome for firing in session.arm.firings] == ["rejected: summarizer failed (down)"]


def test_a_summary_is_of_no_turn_and_is_summarised_again() -> None:
    """The sliding window never drops it; the next summary reads it."""
    scribe = Scribe("sum")
    session = Session(
        "pipeline",
        strategies=[
            {"kind": PREFIX + "summarization", "trigger": {"groups_exceed": 5}, "minimum_preserved": 2},
            {"kind": PREFIX + "sliding_window", "trigger": {"turns_exceed": 1}},
        ],
    )
    session.send(conversation("U:q1 A:a1 U:q2 A:a2 U:q3 A:a3"), scribe)
    found = session.send(conversation("U:q4"), scribe)
    assert found == ["«[Summary]\nsum 1»", "U:q4"]
    session.send(conversation("A:a4 U:q5 A:a5 U:q6"), scribe)
    assert scribe.requests[-1].messages[1].text == "[Summary]\nsum 1"


def test_every_child_of_a_pipeline_runs_when_its_own_trigger_holds() -> None:
    children = [
        {"kind": PREFIX + "tool_result", "trigger": {"messages_exceed": 6}, "minimum_preserved": 1},
        {"kind": PREFIX + "sliding_window", "trigger": {"turns_exceed": 4}},
        {"kind": PREFIX + "truncation", "trigger": {"groups_exceed": 4}, "minimum_preserved": 1},
    ]
    assert left(TOOLS, "pipeline", strategies=children) == (
        "«[Tool Calls]\nget_weather:\n  - sunny»  U:q2  C:c2  T:c2=docs  U:q3"
    )


def test_the_context_window_collapses_first_and_truncates_later() -> None:
    big = "U:q1 C:c1/f T:c1=" + "x" * 80 + " U:q2 A:" + "y" * 40 + " U:q3"
    collapsed = left(big, "context_window", max_context_window_tokens=70, max_output_tokens=10)
    assert collapsed == f"U:q1  «[Tool Calls]\nf:\n  - {'x' * 80}»  U:q2  A:{'y' * 40}  U:q3"
    truncated = left(big, "context_window", max_context_window_tokens=40, max_output_tokens=0)
    assert truncated == f"U:q2  A:{'y' * 40}  U:q3"


def test_a_chat_reducer_replaces_the_index_when_fewer_messages_come_back() -> None:
    tail = {"kind": "tail_window", "keep": 2, "protect": []}
    session = Session("chat_reducer", reducer=tail, trigger={"messages_exceed": 4})
    assert session.send(conversation(TALK)) == ["U:q3", "A:a3"]
    assert session.send(conversation("U:q4 A:a4")) == ["U:q3", "A:a3", "U:q4", "A:a4"]
    assert session.send(conversation("U:q5")) == ["A:a4", "U:q5"]
    same = Session("chat_reducer", reducer={"kind": "none"}, trigger="always")
    assert same.send(conversation(TALK)) == TALK.split()


def test_a_reduced_list_that_ends_in_something_new_is_reduced_afresh() -> None:
    """The last processed message is not in the history then, so that the framework builds its index anew."""
    scribe = Scribe("sum")
    reducer = {"kind": "summarization", "every": 1, "unit": "step", "keep_last": 0}
    session = Session("chat_reducer", reducer=reducer, trigger={"messages_exceed": 2})
    first = session.send(conversation("U:" + "question~" * 20 + " A:" + "answer~" * 40 + " U:next"), scribe)
    assert len(first) == 2
    assert first[1] == "U:next"


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("truncation", {"trigger": {"tokens_over": 5}}, "tokens_over"),
        ("truncation", {"trigger": {"tokens_exceed": "many"}}, "many"),
        ("truncation", {}, "trigger"),
        ("context_window", {"max_context_window_tokens": 0, "max_output_tokens": 0}, "max_context_window_tokens"),
        ("context_window", {"max_context_window_tokens": 10, "max_output_tokens": 10}, "max_output_tokens"),
        (
            "context_window",
            {"max_context_window_tokens": 10, "max_output_tokens": 1, "truncation_threshold": 0.2},
            "truncation_threshold",
        ),
        (
            "context_window",
            {"max_context_window_tokens": 10, "max_output_tokens": 1, "tool_eviction_threshold": 1.5},
            "tool_eviction_threshold",
        ),
        ("pipeline", {"strategies": [{"kind": "sliding_window"}]}, "chat_reducer"),
    ],
)
def test_refused_parameters(name: str, parameters: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        build({"kind": PREFIX + name, **parameters})


def test_presets_name_what_they_need() -> None:
    with pytest.raises(ConfigurationError, match="trigger"):
        strategy("agent_framework_dotnet/truncation")
    placed = strategy("agent_framework_dotnet/truncation", trigger={"tokens_exceed": 32000})
    assert (placed.when, placed.history, placed.tokenizer) == ("before_call", "view", "agent_framework_dotnet")


def test_stored_histories_are_compacted_alike() -> None:
    for history in ("view", "stored"):
        session = Session("summarization", history, trigger={"groups_exceed": 4}, minimum_preserved=1)
        scribe = Scribe("sum")
        session.send(conversation("S:s U:q1 A:a1 U:q2 A:a2 U:q3"), scribe)
        found = session.send(conversation("A:a3 U:q4 A:a4 U:q5"), scribe)
        assert found[-1] == "U:q5"
        assert found[1].startswith("«[Summary]")
        assert len(scribe.requests) == 2


def test_requests_hold_the_messages_as_they_are() -> None:
    requests: list[ModelRequest] = []

    def ask(request: ModelRequest) -> ModelReply:
        requests.append(request)
        return ModelReply("sum")

    left(TOOLS, "summarization", ask, trigger="always", minimum_preserved=1, summarization_prompt="shorten")
    assert requests[0].messages[0].text == "shorten"
    assert [call.id for message in requests[0].messages for call in message.calls] == ["c1", "c2"]
