"""Agent Framework's grouping rule: which messages form one group, in one left-to-right pass over a slice of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from compaction_lab.strategies.agent_framework.contents import Facets

Kind: TypeAlias = Literal["system", "user", "assistant_text", "tool_call"]
Declarations: TypeAlias = "dict[tuple[str, str], list[int]]"


class Span(NamedTuple):
    """Neighbouring messages ``first`` to ``last`` (inclusive) of one group; ``root`` is the span that names it."""

    kind: Kind
    first: int
    last: int
    root: int


def spans(messages: Sequence[Facets]) -> list[Span]:
    """Group messages from scratch.

    An assistant message with a tool call takes in the reasoning right before and after it and then the tool messages
    that follow, whatever they answer. Results elsewhere join the call they answer if exactly one is open for their id.
    """
    found: list[tuple[Kind, int, int]] = []
    at = 0
    while at < len(messages):
        kind, last = _span(messages, at)
        found.append((kind, at, last))
        at = last + 1
    return [Span(*span, root) for span, root in zip(found, _roots(messages, found), strict=True)]


def _span(messages: Sequence[Facets], at: int) -> tuple[Kind, int]:
    role = messages[at].role
    if role == "system":
        return "system", at
    if role == "user":
        return "user", at
    end = len(messages)
    call = at
    while call < end and messages[call].is_only_reasoning:
        call += 1
    if call < end and messages[call].is_call:
        last = call + 1
        while last < end and messages[last].is_only_reasoning:
            last += 1
        while last < end and messages[last].role == "tool":
            last += 1
        return "tool_call", last - 1
    if role == "tool":
        last = at + 1
        while last < end and messages[last].role == "tool":
            last += 1
        return "tool_call", last - 1
    return "assistant_text", at


def _roots(messages: Sequence[Facets], found: Sequence[tuple[Kind, int, int]]) -> list[int]:
    """Return, for each span, the earliest span that it is linked with through calls and their results."""
    roots = list(range(len(found)))
    linked = [(position, links) for position, message in enumerate(messages) if (links := message.links)]
    if len(found) < 2 or not any(is_result for _, links in linked for is_result, *_ in links):  # noqa: PLR2004
        return roots
    span_of = [number for number, (_, first, last) in enumerate(found) for _ in range(first, last + 1)]

    def root(span: int) -> int:
        while roots[span] != span:
            roots[span] = roots[roots[span]]
            span = roots[span]
        return span

    declared: Declarations = {}
    for position, links in linked:
        for is_result, kind, call_id in links:
            if not is_result:
                declared.setdefault((kind, call_id), []).append(position)
                continue
            candidates = declared.get((kind, call_id), ())
            if len(candidates) == 1:
                call, result = root(span_of[candidates.pop()]), root(span_of[position])
                roots[max(call, result)] = min(call, result)
    return [root(span) for span in range(len(found))]
