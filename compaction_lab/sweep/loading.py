"""A run as tables: read from its folder, or built in memory from the results of units."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import cast

import pandas as pd

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import StoreError
from compaction_lab.quality.findings import RULES
from compaction_lab.records import (
    CALL_COLUMNS,
    COMPACTION_COLUMNS,
    IDENTITY,
    PROBE_COLUMNS,
    REFERENCE_COLUMNS,
    UNIT_COLUMNS,
    Cell,
    Row,
    UnitResult,
)
from compaction_lab.sweep import frames, lines, manifest
from compaction_lab.sweep.store import FINISHED, Unit, frozen_cells, shown_cells, stored_rows, unit_of
from compaction_lab.sweep.totals import COST_KINDS

_BILL = tuple(f"summarizer_cost_{kind}_usd" for kind in COST_KINDS)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what was planned a table stands on, in units; overflowed units are among those that ran."""

    planned: int = 0
    ran: int = 0
    failed: int = 0
    missing: int = 0
    overflowed: int = 0
    superseded_cells: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def __str__(self) -> str:
        words = f"planned {self.planned}, ran {self.ran}, failed {self.failed}, missing {self.missing}"
        words += f", overflowed {self.overflowed}" if self.overflowed else ""
        return words + (f"; superseded cells {self.superseded_cells}" if self.superseded_cells else "")


class Run:
    """A run's tables, each with the contract's columns and sorted by key; built on first use and then kept.

    A failed unit has its row in *units* and none elsewhere: what it did before it failed would distort every sum.

    Parameters
    ----------
    name, path, manifest
        Where the run came from; ``path`` is ``None`` for a run in memory.
    cells
        Frozen cells in the order of freezing, superseded ones included.
    units
        The last units row of each unit.
    rows
        Reads the rows of one file: ``calls``, ``compactions``, ``probes``, ``timings`` or ``messages``.
    attempts
        Reads the rows of one file that one attempt wrote; without it they are looked for in all.
    """

    def __init__(
        self,
        *,
        name: str,
        path: Path | None,
        manifest: Mapping[str, JSON],
        cells: Iterable[Cell],
        units: Mapping[Unit, Row],
        rows: Callable[[str], Iterable[Row]],
        attempts: Callable[[str, JSON], Iterable[Row]] | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.manifest = manifest
        shown, self.superseded = shown_cells(cells)
        self.cell_by_key = {cell.key: cell for cell in shown}
        self.unit_rows = {unit: row for unit, row in units.items() if unit[0] in self.cell_by_key}
        self._rows = rows
        self._attempts = attempts or (
            lambda file, attempt: (row for row in rows(file) if row.get("attempt") == attempt)
        )

    @classmethod
    def from_results(cls, cells: Iterable[Cell], results: Mapping[Unit, UnitResult], *, name: str = "memory") -> Run:
        """Return the run that units of work make, without a folder.

        Parameters
        ----------
        cells
            The cells the units belong to.
        results
            What each unit (cell key, transcript id, trial) produced.
        name
            What to call the run.
        """
        frozen = list(cells)
        by_key = {cell.key: cell for cell in frozen}
        rows: dict[str, list[Row]] = {}
        units: dict[Unit, Row] = {}
        for number, (unit, result) in enumerate(results.items()):
            stored = stored_rows(by_key[unit[0]], unit, result, str(number))
            units[unit] = stored.pop("units")[0]
            for file, part in stored.items():
                rows.setdefault(file, []).extend(part)
            messages = rows.setdefault("messages", [])
            messages.extend({"sha256": sha, "message": message} for sha, message in result.messages.items())
            messages.append({"sha256": units[unit]["log"], "log": cast("list[JSON]", result.log)})
        return cls(name=name, path=None, manifest={}, cells=frozen, units=units, rows=lambda file: rows.get(file, []))

    def untimed(self) -> Run:
        """Return this run without measured times, which differ from run to run; modelled and recorded ones stay."""
        units = {
            unit: row | {"latency_s": None} if row.get("latency_measured") else row
            for unit, row in self.unit_rows.items()
        }
        cells = [*self.superseded, *self.cell_by_key.values()]
        return Run(
            name=self.name,
            path=self.path,
            manifest=self.manifest,
            cells=cells,
            units=units,
            rows=lambda file: map(_untimed, self._rows(file)),
            attempts=lambda file, attempt: map(_untimed, self._attempts(file, attempt)),
        )

    def __repr__(self) -> str:
        """Say what the run holds."""
        return f"<Run {self.name}: {len(self.cell_by_key)} cells, {self.coverage}>"

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row a cell: ``cell, arm, model, dataset, seed``, then the resolved configuration flattened."""
        return frames.cell_table(self.cell_by_key.values())

    @cached_property
    def units(self) -> pd.DataFrame:
        """A row a unit: outcome, error, score, and sums over the agent's calls."""
        return frames.unit_table(self._summaries, self.cost_kind)

    @cached_property
    def bills(self) -> pd.DataFrame:
        """Beside *units*: what the summariser's calls of each unit cost, by kind of cost, in USD."""
        return frames.table(self._summaries, (*IDENTITY, *_BILL), [])

    @cached_property
    def calls(self) -> pd.DataFrame:
        """A row a model call."""
        return self._wide_calls[[*IDENTITY, *CALL_COLUMNS]]

    @cached_property
    def compactions(self) -> pd.DataFrame:
        """A row a firing; ``edits`` is JSON."""
        return self._table("compactions", COMPACTION_COLUMNS, ["turn", "call"])

    @cached_property
    def probes(self) -> pd.DataFrame:
        """A row a probe answer, a judged turn (``kind=rubric``) or a value used again (``kind=reference``)."""
        return self.probe_details[[*IDENTITY, *PROBE_COLUMNS]]

    @cached_property
    def probe_details(self) -> pd.DataFrame:
        """*probes* with the places of references and whether an answer is stale; not exported."""
        return self._table("probes", (*PROBE_COLUMNS, *REFERENCE_COLUMNS), ["turn", "probe"], read=_with_places)

    @cached_property
    def validity(self) -> pd.DataFrame:
        """A row an agent call: how many messages sent break each rule, missing where it was not checked."""
        return self._table("calls", ("turn", "call", "purpose", *RULES), ["turn", "call"], read=_with_findings).query(
            "purpose == 'agent'"
        )

    @cached_property
    def turns(self) -> pd.DataFrame:
        """A row a turn: sums over the agent's calls, the score, and the reduction against the baseline arm."""
        return frames.turn_table(self._wide_calls, self.probes, self.cost_kind, self.baselines)

    @cached_property
    def timings(self) -> pd.DataFrame:
        """Measured time spent in the strategy: ``call, slot, strategy_s``; differs from run to run."""
        return self._table("timings", ("call", "slot", "strategy_s"), ["call", "slot"])

    @cached_property
    def cost_kind(self) -> str | None:
        """The kind of cost that ``cost_usd`` shows: billed, cached or uncached, whichever every arm has first."""
        return frames.cost_kind(frames.table(self._summaries, (*IDENTITY, *UNIT_COLUMNS), []))

    @cached_property
    def baselines(self) -> dict[str, str | None]:
        """By cell key, the label of the baseline arm."""
        return {key: _baseline(cell.config) for key, cell in self.cell_by_key.items()}

    @cached_property
    def simulated(self) -> frozenset[str]:
        """The purposes (``agent``, ``summarizer``, ...) of the calls that a stub answered."""
        named = (cast("list[str]", row.get("simulated") or []) for row in self.unit_rows.values())
        return frozenset(purpose for purposes in named for purpose in purposes)

    @cached_property
    def messages(self) -> dict[str, Row]:
        """Every message and inserted text by the sha256 of its canonical JSON."""
        return {str(row["sha256"]): cast("Row", row["message"]) for row in self._rows("messages") if "message" in row}

    @cached_property
    def _logs(self) -> dict[str, list[str]]:
        return {str(row["sha256"]): cast("list[str]", row["log"]) for row in self._rows("messages") if "log" in row}

    def log(self, unit: Unit) -> list[str]:
        """Return the hashes of a unit's messages in the order of its append-only log.

        Raises
        ------
        StoreError
            If the run has no such unit.
        """
        if unit not in self.unit_rows:
            raise StoreError(f"{self.name}: no unit {unit}; the units table lists those that ran")
        return self._logs.get(str(self.unit_rows[unit]["log"]), [])

    def unit_rows_of(self, file: str, unit: Unit) -> list[Row]:
        """Return a unit's own rows of ``calls``, ``compactions``, ``probes`` or ``timings``, as they were recorded."""
        attempt = self.unit_rows[unit]["attempt"] if unit in self.unit_rows else None
        return [row for row in self._attempts(file, attempt) if unit_of(row) == unit]

    @cached_property
    def coverage_by_cell(self) -> dict[str, Coverage]:
        """Units planned, ran, failed and missing by cell key, in the order of freezing."""
        found: dict[str, Coverage] = {}
        tried: dict[str, dict[tuple[str, int], JSON]] = {}
        for (key, transcript, trial), row in self.unit_rows.items():
            tried.setdefault(key, {})[transcript, trial] = row["outcome"]
        planned = self._planned(tried)
        for key, cell in self.cell_by_key.items():
            outcomes = Counter(str(outcome) for outcome in tried.get(key, {}).values())
            ran = sum(outcomes[outcome] for outcome in FINISHED)
            owed = len(planned[cell.dataset] | tried.get(key, {}).keys())
            found[key] = Coverage(owed, ran, outcomes["failed"], owed - ran - outcomes["failed"], outcomes["overflow"])
        return found

    @cached_property
    def coverage_by_arm(self) -> dict[str, Coverage]:
        """Units planned, ran, failed and missing by arm, in the order of freezing."""
        found: dict[str, Coverage] = {}
        for key, part in self.coverage_by_cell.items():
            arm = self.cell_by_key[key].arm
            found[arm] = found.get(arm, Coverage()) + part
        return found

    @cached_property
    def coverage(self) -> Coverage:
        """Units planned, ran, failed and missing, and the number of superseded cells."""
        return sum(self.coverage_by_arm.values(), Coverage(superseded_cells=len(self.superseded)))

    def _planned(self, tried: Mapping[str, Mapping[tuple[str, int], JSON]]) -> dict[str, set[tuple[str, int]]]:
        """Return (transcript, trial) pairs planned by dataset: as the manifests say, else what any cell tried."""
        planned: dict[str, set[tuple[str, int]]] = {}
        invocations = self.manifest.get("invocations")
        for invocation in invocations if isinstance(invocations, list) else []:
            transcripts = invocation.get("transcripts") if isinstance(invocation, dict) else None
            if isinstance(invocation, dict) and isinstance(transcripts, dict):
                trials = range(cast("int", invocation.get("trials", 1)))
                for dataset, ids in transcripts.items():
                    planned[dataset] = {(str(name), trial) for name in cast("list[str]", ids) for trial in trials}
        known = set(planned)
        for key, cell in self.cell_by_key.items():
            units = planned.setdefault(cell.dataset, set())
            if cell.dataset not in known:
                units.update(tried.get(key, {}))
        return planned

    @cached_property
    def _summaries(self) -> list[Row]:
        """Units rows under their cell's present labels."""
        return [row | self._labels(unit) for unit, row in self.unit_rows.items()]

    @cached_property
    def _wide_calls(self) -> pd.DataFrame:
        return self._table("calls", (*CALL_COLUMNS, "tool_calls"), ["turn", "call"], costs=True)

    def _labels(self, unit: Unit) -> Row:
        cell = self.cell_by_key[unit[0]]
        return {"arm": cell.arm, "model": cell.model, "dataset": cell.dataset, "seed": cell.seed}

    def _table(
        self,
        file: str,
        columns: Sequence[str],
        sort: Sequence[str],
        *,
        costs: bool = False,
        read: Callable[[Row], Row] | None = None,
    ) -> pd.DataFrame:
        """Return the rows of finished units; each row of a unit counts only if all of them are there."""
        expected: dict[JSON, int] = {}
        labels: dict[JSON, Row] = {}
        for unit, row in self.unit_rows.items():
            if row["outcome"] in FINISHED:
                attempt = cast("str", row["attempt"])
                labels[attempt] = self._labels(unit)
                expected[attempt] = cast("int", cast("Row", row["rows"])[file])
        rows = [row | labels[cast("str", row["attempt"])] for row in self._rows(file) if row.get("attempt") in labels]
        found = Counter(cast("str", row["attempt"]) for row in rows)
        short = [attempt for attempt, number in expected.items() if found[cast("str", attempt)] != number]
        if short:
            unit = next(unit for unit, row in self.unit_rows.items() if row.get("attempt") == short[0])
            raise StoreError(
                f"{self.path or self.name}: {file}.jsonl holds {found[cast('str', short[0])]} rows of unit {unit} and "
                f"{expected[short[0]]} were written ({len(short)} such units): a power failure or an editor took some. "
                "Run it again with --existing always"
            )
        frame = frames.table(rows if read is None else list(map(read, rows)), [*IDENTITY, *columns], sort)
        return frames.with_cost(frame, self.cost_kind) if costs else frame


def _untimed(row: Row) -> Row:
    if "strategy_s" in row:
        return row | {"strategy_s": None}
    return row | {"latency_s": None} if row.get("latency_source") == "measured" else row


def _with_places(row: Row) -> Row:
    about = row.get("reference")
    if not isinstance(about, dict):
        return row
    found: Row = {"value_kind": about["kind"], "call": about["call"], "sha256": about.get("sha256")}
    for name in ("use", "source"):
        message, start, end = cast("list[JSON]", about.get(name) or [None] * 3)
        found |= {f"{name}_message": message, f"{name}_start": start, f"{name}_end": end}
    return row | found | {"newest_message": about.get("newest")}


def _with_findings(row: Row) -> Row:
    found = row.get("findings")
    return row | {rule: found.get(rule, 0) for rule in RULES} if isinstance(found, dict) else row


def _baseline(config: Mapping[str, JSON]) -> str | None:
    label = config["baseline_arm"] if "baseline_arm" in config else config.get("baseline")
    return label if isinstance(label, str) else None


def load_run(path_or_name: str | Path, *, root: Path = Path("experiments")) -> Run:
    """Open a stored run; nothing but the cells and the units rows is read until a table is asked for.

    Parameters
    ----------
    path_or_name
        The run's folder, or its name under ``root``.
    root
        Where run folders live.

    Raises
    ------
    StoreError
        If there is no such run, or it cannot be read.
    """
    folder = next(
        (path for path in (Path(path_or_name), root / path_or_name) if (path / "cells.jsonl").is_file()), None
    )
    if folder is None:
        stored = sorted(path.parent.name for path in root.glob("*/cells.jsonl"))
        near = difflib.get_close_matches(str(path_or_name), stored, n=1)
        hint = f"did you mean {near[0]}?" if near else f"stored runs: {', '.join(stored) or 'none'}"
        raise StoreError(f"{path_or_name}: neither a run folder (one with cells.jsonl) nor a run in {root}; {hint}")
    units: dict[Unit, Row] = {}
    for row in lines.read(folder / "units.jsonl"):
        if "attempt" in row:
            units[unit_of(row)] = row
    return Run(
        name=folder.resolve().name,
        path=folder,
        manifest=manifest.read(folder),
        cells=frozen_cells(folder),
        units=units,
        rows=lambda file: lines.read(folder / f"{file}.jsonl"),
        attempts=lines.Attempts(folder),
    )
