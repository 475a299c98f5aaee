"""What real models would be asked by the owed units of a plan: stubs play their parts, and calls are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from compaction_lab.conversation.messages import JSON, Usage
from compaction_lab.records import Cell, UnitResult
from compaction_lab.sweep.endpoints import endpoint_price, real_models
from compaction_lab.sweep.executors import Work
from compaction_lab.sweep.runner import Plan

SAMPLE = 3
"""Most transcripts of a cell that are run; the others count as their mean."""

JUDGMENT = Usage(500, output_tokens=60)
"""Tokens that one judgment is taken to need: the instructions, a question, two answers, and a verdict."""

_ROLES = {"agent": "model", "summarizer": "summarizer", "probe": "reader"}
_STUB: dict[str, JSON] = {"kind": "stub", "name": "stub"}


@dataclass(frozen=True, slots=True)
class RealCalls:
    """Calls, tokens and US dollars (``None``: a price is unknown), and how many units they were taken from."""

    calls: float
    input_tokens: float
    output_tokens: float
    cost_usd: float | None
    sampled: int = 1

    def __add__(self, other: RealCalls) -> RealCalls:
        known = self.cost_usd is not None and other.cost_usd is not None
        return RealCalls(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            cast("float", self.cost_usd) + cast("float", other.cost_usd) if known else None,
            self.sampled + other.sampled,
        )

    def times(self, factor: float) -> RealCalls:
        """Return this many times as much, from the same sample."""
        cost = None if self.cost_usd is None else self.cost_usd * factor
        return RealCalls(
            self.calls * factor, self.input_tokens * factor, self.output_tokens * factor, cost, self.sampled
        )


def real_calls(plan: Plan, work: Work) -> RealCalls | None:
    """Estimate the calls of real models in the owed units, or return ``None`` when there is no real model."""
    cells = {cell.key: cell for cell in plan.grid.cells}
    owed = Counter(key for key, _, _ in plan.owed)
    total: RealCalls | None = None
    for key, units in owed.items():
        cell = cells[key]
        if not dict(real_models(cell.config)):
            continue
        transcripts = list(dict.fromkeys(transcript for cell_key, transcript, _ in plan.owed if cell_key == key))
        seen = [_of(cell, work(simulated_cell(cell), transcript, 0)) for transcript in transcripts[:SAMPLE]]
        found = seen[0]
        for one in seen[1:]:
            found += one
        found = found.times(units / len(seen))
        total = found if total is None else total + found
    return total


def agent_stub(config: Mapping[str, JSON]) -> dict[str, JSON] | None:
    """Return the stub that can take the place of a live agent in its scenario, if there is one."""
    dataset = config.get("dataset")
    shop = isinstance(dataset, Mapping) and dataset.get("name") == "laptop_catalog"
    return {"kind": "stub_shop", "name": "stub_shop"} if shop else None


def simulated_cell(cell: Cell) -> Cell:
    """Return a cell whose real models are replaced by stubs; its judge by one that needs no model."""
    config = dict(cell.config)
    for role, _ in real_models(cell.config):
        if role == "model":
            config[role] = agent_stub(cell.config)
        else:
            config[role] = {"kind": "subspan", "name": "subspan"} if role == "judge" else _STUB
    return replace(cell, config=config)


def _of(cell: Cell, result: UnitResult) -> RealCalls:
    nodes = dict(real_models(cell.config))
    found = RealCalls(0, 0, 0, 0.0)
    for call in result.calls:
        role = _ROLES.get(str(call["purpose"]), "")
        if role in nodes:
            usage = Usage(cast("int", call["input_tokens"]), output_tokens=cast("int", call["output_tokens"]))
            found += replace(_priced(usage, cell, nodes[role]), sampled=0)
    if "judge" in nodes:
        answers = sum(row.get("answer") is not None and row.get("kind") != "rubric" for row in result.probes)
        repeats = nodes["judge"].get("repeats")
        asked = answers * (repeats if isinstance(repeats, int) else 1)
        found += replace(_priced(JUDGMENT, cell, nodes["judge"]), sampled=0).times(asked)
    return found


def _priced(usage: Usage, cell: Cell, node: Mapping[str, JSON]) -> RealCalls:
    price = endpoint_price(node, cell.config)
    cost = None if price is None else price.cost_uncached(usage)
    return RealCalls(1, usage.input_tokens, usage.output_tokens, cost)
