"""The smallest live loop: a scenario's turns through a model, its tools really run; no strategy, no accounting."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compaction_lab.conversation.messages import Message, assistant, tool, user
from compaction_lab.models.base import Model, ModelRequest
from compaction_lab.scenarios.base import RubricScore, Scenario

CALLS_IN_A_TURN = 6


@dataclass(frozen=True, slots=True)
class Answered:
    """One turn's answer, how it scored, and the tool calls it took."""

    text: str
    score: RubricScore | None
    tool_calls: int


def hold(
    scenario: Scenario,
    model: Model,
    *,
    order: Sequence[int] | None = None,
    after_turn: Callable[[list[Message]], list[Message]] = list,
) -> tuple[list[Message], dict[int, Answered]]:
    """Hold the conversation with the turns in ``order`` and return the messages and the answers by turn index."""
    runs = {one.definition.name: one.run for one in scenario.tools}
    offered = tuple(one.definition for one in scenario.tools)
    messages = list(scenario.opening)
    answers: dict[int, Answered] = {}
    for index in order if order is not None else range(len(scenario.turns)):
        turn = scenario.turns[index]
        messages.append(user(turn.user))
        tool_calls = 0
        for _ in range(CALLS_IN_A_TURN):
            reply = model(ModelRequest(tuple(messages), tools=offered))
            messages.append(assistant(reply.text, *reply.calls))
            if not reply.calls:
                break
            tool_calls += len(reply.calls)
            messages += [tool(c.id, runs[c.name](json.loads(c.arguments)), name=c.name) for c in reply.calls]
        else:
            raise AssertionError(f"turn {index} was still calling tools after {CALLS_IN_A_TURN} replies")
        answers[index] = Answered(reply.text, turn.judge(reply.text) if turn.judge else None, tool_calls)
        messages = after_turn(messages)
    return messages, answers
