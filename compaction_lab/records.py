"""What one unit of work leaves behind: plain rows, the same in memory, on disk and in tables.

Rows carry no ``cell, arm, model, dataset, seed, transcript, trial``; the store adds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from compaction_lab.conversation.messages import JSON

Row = dict[str, JSON]
Outcome = Literal["ok", "overflow", "failed"]

IDENTITY = ("cell", "arm", "model", "dataset", "seed", "transcript", "trial")
"""First columns of every table but *cells*."""

CALL_COLUMNS = (
    "turn",
    "call",
    "purpose",
    "input_tokens",
    "fresh_input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "context_tokens_before",
    "context_tokens_after",
    "compacted",
    "latency_s",
    "latency_source",
    "cost_uncached_usd",
    "cost_cached_usd",
    "cost_billed_usd",
    "cost_usd",
    "cost_kind",
    "first_changed_token",
    "error",
)
"""Of *calls*. In a unit's own rows ``cost_usd`` and ``cost_kind`` are absent: they depend on all arms of a table. A
unit's rows also carry ``tool_calls`` (tool calls the answer made), ``stop`` (log messages that existed),
``simulated`` (a stub answered), of a real call ``cached, first_token_s, finish``, and ``findings`` (messages sent
that break each validity rule, by rule; ``null`` when the call was not checked)."""

COMPACTION_COLUMNS = (
    "turn",
    "call",
    "when",
    "trigger",
    "tokens_before",
    "tokens_after",
    "strategy_tokens_before",
    "strategy_tokens_after",
    "first_changed_token",
    "edits",
    "outcome",
)
"""Of *compactions*. ``call`` is the call the firing precedes (the last one's number for ``after_turn``). A unit's own
rows also carry ``slot`` (0 = strategy, 1 = after_strategy), ``history``, ``base`` and ``stop``; ``edits`` is a list
of ``{kind, keys: [[index, rank], ...], new: {key, sha256} | null, tokens_before, tokens_after}``."""

PROBE_COLUMNS = (
    "turn",
    "probe",
    "kind",
    "position",
    "age_turns",
    "age_tokens",
    "evidence_visible",
    "answer",
    "gold",
    "score",
    "judge",
    "reader",
)
"""Of *probes*: probe answers, rubric judgments of turns as ``kind=rubric``, and values that the agent used later and
had from earlier as ``kind=reference``, whose ages count from the newest message that says the value. A unit's own
rows also carry ``reference`` (of a reference: ``kind, call`` and, when missed, ``sha256, use, source, newest``:
places as ``[message, start, end]``) , ``stale`` (whether an answer states a superseded value) and ``verdicts``
(``score`` and ``raw`` of each repeat of a judge that is a model)."""

REFERENCE_COLUMNS = (
    "call",
    "value_kind",
    "sha256",
    "use_message",
    "use_start",
    "use_end",
    "source_message",
    "source_start",
    "source_end",
    "newest_message",
    "stale",
)
"""Beside *probes*: the call and kind of a reference and, when it was missed, the hash of its value and where it was
used and first said (message index, characters in its searchable text) and last said; whether an answer is a stale
one."""

TURN_COLUMNS = (
    "turn",
    "model_calls",
    "tool_calls",
    "input_tokens",
    "fresh_input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "summarizer_input_tokens",
    "summarizer_output_tokens",
    "latency_s",
    "cost_uncached_usd",
    "cost_cached_usd",
    "cost_billed_usd",
    "cost_usd",
    "cost_kind",
    "score",
    "reduction_vs_baseline",
)
"""Of *turns*, derived from *calls* and *probes*: sums over ``purpose=agent`` unless the name says otherwise."""

UNIT_COLUMNS = ("outcome", "error", "score", *TURN_COLUMNS[1:-2])
"""Of *units*: the outcome, and the sums of *turns*."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Arm x model x dataset x seed with its resolved configuration; ``key`` hashes what can change results."""

    key: str
    arm: str
    model: str
    dataset: str
    seed: int
    config: Mapping[str, JSON]


@dataclass(slots=True)
class UnitResult:
    """Everything one unit (cell x transcript x trial) produced.

    ``messages`` holds every message and inserted text once, by the sha256 of its canonical JSON; ``log`` lists the
    hashes of the append-only log in order, so that any context can be rebuilt from it and the edits.
    ``timings`` rows are measured wall times (``call, slot, strategy_s``) and differ from run to run.
    """

    outcome: Outcome = "ok"
    error: str = ""
    calls: list[Row] = field(default_factory=list)
    compactions: list[Row] = field(default_factory=list)
    probes: list[Row] = field(default_factory=list)
    messages: dict[str, Row] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    timings: list[Row] = field(default_factory=list)
