"""Where evidence stands in what is sent, and how old it is in what was said."""

from __future__ import annotations

import pytest

from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Text, ToolCall, assistant, system, tool, user
from compaction_lab.conversation.transcript import Probe
from compaction_lab.quality.evidence import locate
from tests.strategies.harness import CHARACTERS

MESSAGES = [
    system("s"),
    user("My id is Q-17."),
    assistant("Noted."),
    user("Look for colour."),
    assistant("", ToolCall("a", "look", '{"what": "colour"}')),
    tool("a", "It is teal."),
    user("And?"),
]


def probe(*evidence: str, source: int | None = None) -> Probe:
    return Probe("p", "fact", "?", ("x",), evidence, source_message=source)


def found(asked: Probe, sent: list[Message] | None = None, stop: int = len(MESSAGES)) -> dict[str, object]:
    return locate(asked, MESSAGES[:stop] if sent is None else sent, Log(MESSAGES), stop, CHARACTERS)


def test_the_share_of_the_spans_that_stand_verbatim() -> None:
    both = probe("Q-17", "teal")
    assert found(both)["evidence_visible"] == 1.0
    assert found(both, MESSAGES[2:])["evidence_visible"] == 0.5
    assert found(both, MESSAGES[6:])["evidence_visible"] == 0.0


def test_a_summary_shows_evidence_as_any_message_does() -> None:
    summary = Message("user", (Text("Summary: their id is Q-17"),), source="summary")
    assert found(probe("Q-17"), [summary, MESSAGES[6]])["evidence_visible"] == 1.0


def test_arguments_of_calls_are_read_too() -> None:
    assert found(probe('"what": "colour"'))["evidence_visible"] == 1.0


def test_the_position_is_that_of_the_last_visible_span() -> None:
    weights = [CHARACTERS.message(message) for message in MESSAGES]
    middle = (sum(weights[:5]) + weights[5] / 2) / sum(weights)
    assert found(probe("Q-17", "teal"))["position"] == pytest.approx(middle)
    assert found(probe("Q-17"), MESSAGES[2:])["position"] is None


def test_ages_are_counted_in_the_untouched_history_from_where_the_fact_was_stated() -> None:
    row = found(probe("Q-17"), sent=[])
    assert row["age_turns"] == 2
    assert row["age_tokens"] == sum(map(CHARACTERS.message, MESSAGES[2:]))
    assert found(probe("Q-17", "teal"))["age_turns"] == 1
    assert found(probe(source=3), stop=6)["age_turns"] == 0


def test_what_is_not_known_is_empty() -> None:
    nothing = {"position": None, "age_turns": None, "age_tokens": None, "evidence_visible": None}
    assert found(probe()) == nothing
    unstated = found(probe("never said"))
    assert (unstated["evidence_visible"], unstated["age_turns"], unstated["age_tokens"]) == (0.0, None, None)
    assert found(probe(source=6), stop=6) == nothing
