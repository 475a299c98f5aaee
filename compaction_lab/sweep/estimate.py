"""What the owed units of a plan would take at most: the uncompacted conversation, run in memory where that is free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import CompactionLabError
from compaction_lab.records import Cell, UnitResult
from compaction_lab.sweep.executors import Work
from compaction_lab.sweep.real_calls import RealCalls, agent_stub, real_calls, simulated_cell
from compaction_lab.sweep.runner import Plan

SAMPLE = 10
"""Most transcripts of a dataset that are run for an estimate; the others count as their mean."""

FREE_KINDS = ("stub", "recorded")
"""How the kind of a model starts that costs nothing to run."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Upper bounds for the agent's calls of all owed units; ``None`` is unknown.

    ``cost_usd`` is what the tokens are priced at. ``real`` are the calls that real models would answer, in any part
    they play, and ``spent_usd`` what their providers would charge: nothing for simulated and recorded answers.
    ``basis`` says in words where the numbers come from.
    """

    calls: float | None
    input_tokens: float | None
    output_tokens: float | None
    cost_usd: float | None
    spent_usd: float | None
    basis: str
    real: RealCalls | None = None


@dataclass(frozen=True, slots=True)
class _Totals:
    calls: float
    input_tokens: float
    output_tokens: float
    cost_usd: float | None


def estimate(plan: Plan, work: Work | None = None) -> Estimate:
    """Estimate the owed units of a plan by running the uncompacted arm of each model and dataset in memory."""
    if work is None:
        from compaction_lab.sweep.unit import run_unit

        work = run_unit
    cells = {cell.key: cell for cell in plan.grid.cells}
    per_unit: dict[tuple[str, str, str], _Totals] = {}
    sampled: dict[tuple[str, str], list[_Totals]] = {}
    sums = _Totals(0, 0, 0, 0.0)
    for key, transcript, _ in plan.owed:
        cell = cells[key]
        if not _has_stub(cell.config):
            return Estimate(None, None, None, None, None, f"{cell.model} is a real model and has no stub in its place")
        place, unit = (cell.model, cell.dataset), (cell.model, cell.dataset, transcript)
        if unit not in per_unit:
            seen = sampled.setdefault(place, [])
            if len(seen) < SAMPLE:
                try:
                    seen.append(_totals(work(_uncompacted(cell), transcript, 0)))
                except CompactionLabError as error:
                    return Estimate(None, None, None, None, None, f"{transcript} cannot be replayed: {error}")
                per_unit[unit] = seen[-1]
            else:
                per_unit[unit] = _mean(seen)
        sums = _added(sums, per_unit[unit])
    ran = sum(map(len, sampled.values()))
    basis = f"as if uncompacted, from {ran} of {len(per_unit)} conversations; calls of summarizers come to it"
    priced = next((str(node.get("model")) for node in map(_pricing, plan.grid.cells) if node), "")
    real = real_calls(plan, work)
    if real is not None:
        basis += f"; real calls as stubs would make and answer them, from {real.sampled} units, nothing cached"
    elif priced:
        basis += f"; priced as {priced}, nothing is spent"
    spent = 0.0 if real is None else real.cost_usd
    return Estimate(sums.calls, sums.input_tokens, sums.output_tokens, sums.cost_usd, spent, basis, real)


def _pricing(cell: Cell) -> Mapping[str, JSON]:
    node = cell.config.get("pricing")
    return node if isinstance(node, dict) else {}


def _has_stub(config: Mapping[str, JSON]) -> bool:
    model = config.get("model")
    kind = str(model.get("kind")) if isinstance(model, dict) else ""
    return config.get("mode") == "replay" or kind.startswith(FREE_KINDS) or agent_stub(config) is not None


def _uncompacted(cell: Cell) -> Cell:
    """Return the cell without its strategies and without probes, which are calls of their own; stubs play all parts."""
    simulated = simulated_cell(cell)
    bare: dict[str, JSON] = {"strategy": {"kind": "none"}, "after_strategy": None, "reader": None}
    return replace(simulated, config={**simulated.config, **bare})


def _totals(result: UnitResult) -> _Totals:
    agent = [call for call in result.calls if call.get("purpose") == "agent"]

    def total(column: str) -> float | None:
        values = [call.get(column) for call in agent]
        return None if any(value is None for value in values) else sum(cast("list[float]", values))

    cost = next((amount for kind in ("cached", "uncached") if (amount := total(f"cost_{kind}_usd")) is not None), None)
    return _Totals(len(agent), total("input_tokens") or 0, total("output_tokens") or 0, cost)


def _added(one: _Totals, other: _Totals) -> _Totals:
    known = one.cost_usd is not None and other.cost_usd is not None
    return _Totals(
        one.calls + other.calls,
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        cast("float", one.cost_usd) + cast("float", other.cost_usd) if known else None,
    )


def _mean(seen: list[_Totals]) -> _Totals:
    sums = seen[0]
    for each in seen[1:]:
        sums = _added(sums, each)
    n = len(seen)
    cost = None if sums.cost_usd is None else sums.cost_usd / n
    return _Totals(sums.calls / n, sums.input_tokens / n, sums.output_tokens / n, cost)
