"""What a unit's calls and judgments add up to; the *units* table and the units rows on disk hold these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import cast

from compaction_lab.conversation.messages import JSON
from compaction_lab.records import Row

AGENT_SUMS = (
    "tool_calls",
    "input_tokens",
    "fresh_input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "latency_s",
    "cost_uncached_usd",
    "cost_cached_usd",
    "cost_billed_usd",
)
"""Columns of *turns* and *units* that are plain sums over the agent's calls."""

SUMMARIZER_SUMS = ("input_tokens", "output_tokens")
"""Columns of *calls* whose sums over the summariser's calls are named ``summarizer_*``."""

COST_KINDS = ("billed", "cached", "uncached")
"""In the order of preference for ``cost_usd``."""


def total(calls: Iterable[Row], column: str) -> int | float | None:
    """Return the sum of a column, missing (``None``) as soon as one call's value is.

    A call that ended in an error adds what is known of it. No calls sum to zero.
    """
    values: list[int | float] = []
    for call in calls:
        value = call.get(column)
        if value is not None:
            values.append(cast("int | float", value))
        elif not call.get("error"):
            return None
    return sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)


def unit_score(probes: Iterable[Row]) -> float | None:
    """Return the mean score of a unit's judged turns, else of its probes, else of its references.

    That is, of the first kind of evidence there is. Each turn counts once, as the mean of its rubric rows. A failed
    judgment is missing, never zero.
    """
    turns: dict[JSON, list[float]] = {}
    answers: list[float] = []
    references: list[float] = []
    for probe in probes:
        score = probe.get("score")
        if score is None:
            continue
        if probe.get("kind") == "rubric":
            turns.setdefault(cast("int", probe.get("turn")), []).append(float(cast("float", score)))
        else:
            kept = references if probe.get("kind") == "reference" else answers
            kept.append(float(cast("float", score)))
    scores = [fmean(judgments) for judgments in turns.values()] or answers or references
    return fmean(scores) if scores else None


def unit_totals(calls: Sequence[Row], probes: Sequence[Row]) -> Row:
    """Return ``score`` and every sum of a unit that does not depend on other units.

    Beside the columns of *units*, ``summarizer_cost_*_usd`` (the rest of the bill), ``latency_measured`` and
    ``simulated`` (the purposes of the calls that a stub answered, and ``expectation`` where recall was not measured but
    expected by a fitted curve).
    """
    agent = [call for call in calls if call.get("purpose") == "agent"]
    summarizer = [call for call in calls if call.get("purpose") == "summarizer"]
    totals: Row = {"score": unit_score(probes), "model_calls": len(agent)}
    totals |= {column: total(agent, column) for column in AGENT_SUMS}
    totals |= {f"summarizer_{column}": total(summarizer, column) for column in SUMMARIZER_SUMS}
    totals |= {f"summarizer_cost_{kind}_usd": total(summarizer, f"cost_{kind}_usd") for kind in COST_KINDS}
    totals["latency_measured"] = any(call.get("latency_source") == "measured" for call in agent)
    simulated = {str(call["purpose"]) for call in calls if call.get("simulated")}
    if any(probe.get("judge") == "expected_recall" for probe in probes):
        simulated.add("expectation")
    totals["simulated"] = cast("list[JSON]", sorted(simulated))
    return totals
