"""The run folder: cells frozen before any call, units appended whole, and claims so that no unit is done twice.

What is handed to :meth:`RunStore.write` survives the death of the process (``kill -9``) at once; the disk is only
waited for when cells are frozen, when the manifest is written and when the store is closed. Rows a power failure
takes are noticed on loading, because each units row counts its rows.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, cast

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import StoreError
from compaction_lab.records import Cell, Row, UnitResult
from compaction_lab.sweep import lines, manifest
from compaction_lab.sweep.totals import unit_totals

Unit: TypeAlias = tuple[str, str, int]
"""Cell key, transcript id, trial."""

ROW_FILES = ("calls", "compactions", "probes", "timings")
"""Files with rows that belong to a unit; a units row counts its rows in each."""

FINISHED = ("ok", "overflow")
"""Outcomes after which a unit is no longer owed."""

_LOCK = ".lock"
_CLAIMS = ".claims"


def stored_rows(cell: Cell, unit: Unit, result: UnitResult, attempt: str) -> dict[str, list[Row]]:
    """Return a unit's rows by file, identity columns first, its units row included.

    ``attempt`` ties the rows to their units row: rows of an attempt that no units row names are ignored.
    """
    _, transcript, trial = unit
    identity: Row = {
        "cell": cell.key,
        "arm": cell.arm,
        "model": cell.model,
        "dataset": cell.dataset,
        "seed": cell.seed,
        "transcript": transcript,
        "trial": trial,
        "attempt": attempt,
    }
    found = {"calls": result.calls, "compactions": result.compactions, "probes": result.probes}
    rows = {name: [identity | row for row in part] for name, part in found.items()}
    rows["timings"] = [identity | row for row in result.timings]
    summary: Row = {"outcome": result.outcome, "error": result.error, **unit_totals(result.calls, result.probes)}
    if result.outcome not in FINISHED:
        summary = {**dict.fromkeys(summary), "outcome": result.outcome, "error": result.error}
    counts: Row = {name: len(part) for name, part in rows.items()}
    rows["units"] = [identity | summary | {"rows": counts, "log": log_hash(result.log)}]
    return rows


def log_hash(log: list[str]) -> str:
    """Return the name of a log: the sha256 of the hashes of its messages, in order."""
    return hashlib.sha256("\n".join(log).encode()).hexdigest()


def shown_cells(cells: Iterable[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Split frozen cells, in the order of freezing, into those shown and those superseded.

    Of two cells equal in arm, model, dataset and seed the later frozen is shown; a key frozen again keeps one row.
    """
    by_key: dict[str, Cell] = {}
    for cell in cells:
        by_key.pop(cell.key, None)
        by_key[cell.key] = cell
    shown: dict[tuple[str, str, str, int], Cell] = {}
    for cell in by_key.values():
        shown[identity(cell)] = cell
    kept = {cell.key for cell in shown.values()}
    parts: tuple[list[Cell], list[Cell]] = ([], [])
    for cell in by_key.values():
        parts[cell.key not in kept].append(cell)
    return parts


def identity(cell: Cell) -> tuple[str, str, str, int]:
    """Return what makes two cells the same line of a table: arm, model, dataset and seed."""
    return cell.arm, cell.model, cell.dataset, cell.seed


def frozen_cells(folder: Path) -> list[Cell]:
    """Return the rows of ``cells.jsonl`` in the order of freezing.

    Raises
    ------
    StoreError
        If a row lacks one of a cell's fields.
    """
    path = folder / "cells.jsonl"
    cells = []
    for row in lines.read(path):
        try:
            key, arm, model, dataset = (str(row[name]) for name in ("cell", "arm", "model", "dataset"))
            cells.append(Cell(key, arm, model, dataset, cast("int", row["seed"]), cast("Row", row["config"])))
        except KeyError as error:
            message = f"{path}: a row without {error}; expected cell, arm, model, dataset, seed and config: restore it"
            raise StoreError(message) from error
    return cells


class RunStore:
    """A run folder opened for writing; several processes, each with a store of its own, may write one folder.

    Use :meth:`open` as a context manager. A store belongs to the process that opened it: a forked worker opens its own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pid = os.getpid()
        self._units = lines.Tail(path / "units.jsonl")
        self._done: set[Unit] = set()
        self._messages = lines.Tail(path / "messages.jsonl")
        self._known: set[str] = set()
        self._claims: Path | None = None
        self._claims_descriptor: int | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool) -> Self:
        """Open a run folder.

        Parameters
        ----------
        path
            The folder.
        create
            Make it when it is missing; otherwise a missing one is an error.

        Raises
        ------
        StoreError
            If the folder is missing, is no run, or cannot be written.
        """
        folder = Path(path)
        if create:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{folder}: {error.strerror}; a run needs a folder it may write to") from error
        elif not (folder / "cells.jsonl").is_file():
            raise StoreError(f"{folder}: no run here (no cells.jsonl); `compaction-lab list` names the stored runs")
        store = cls(folder)
        _OPEN.add(store)
        with store._lock():
            for file in sorted(folder.glob("*.jsonl")):
                lines.append(file, b"")
        return store

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Wait until the disk has all rows and give back this store's claims."""
        if self._pid != os.getpid():
            return
        for name in (*ROW_FILES, "messages", "units"):
            lines.sync(self.path / f"{name}.jsonl")
        if self._claims is not None and self._claims_descriptor is not None:
            self._claims.unlink(missing_ok=True)
            os.close(self._claims_descriptor)
            self._claims = self._claims_descriptor = None
        _OPEN.discard(self)

    def freeze(self, cells: Iterable[Cell], invocation: Mapping[str, JSON]) -> None:
        """Write the cells of an invocation and its manifest, before its first call.

        A cell that is already shown is not written again, so a resumed run does not grow.

        Parameters
        ----------
        cells
            What the invocation is going to run. ``config["baseline_arm"]`` holds the label of the baseline arm, or
            ``None``.
        invocation
            The manifest. ``transcripts`` (dataset label: list of transcript ids) and ``trials`` (an integer) say what
            was planned; without them the units that were tried count as planned.
        """
        with self._lock():
            shown = {cell.key: cell for cell in shown_cells(frozen_cells(self.path))[0]}
            fresh = [cell for cell in cells if cell.key not in shown or identity(shown[cell.key]) != identity(cell)]
            rows = [
                lines.encode(
                    {"cell": key, "arm": arm, "model": model, "dataset": dataset, "seed": seed, "config": config}
                )
                for key, arm, model, dataset, seed, config in (
                    (cell.key, *identity(cell), dict(cell.config)) for cell in fresh
                )
            ]
            lines.append(self.path / "cells.jsonl", b"".join(rows), durable=True)
            manifest.record(self.path, invocation)

    def cells(self) -> list[Cell]:
        """Return the frozen cells that are shown, superseded ones left out, in the order of freezing."""
        return shown_cells(frozen_cells(self.path))[0]

    def done(self) -> set[Unit]:
        """Return the units that are not owed: their last units row says ``ok`` or ``overflow``."""
        self._look_for_done()
        return set(self._done)

    def _look_for_done(self) -> None:
        """Read the units rows written since the last look."""
        for line in self._units.lines():
            row = lines.decode(line)
            if row is None or "outcome" not in row:
                continue
            if row["outcome"] in FINISHED:
                self._done.add(unit_of(row))
            else:
                self._done.discard(unit_of(row))

    def claim(self, units: Iterable[Unit], *, redo: bool = False) -> list[Unit]:
        """Return those of ``units`` that this store is to do, so that no other live store does them.

        A claim is a line in a file of this store that stays locked as long as its process lives; the system frees the
        lock of a dead one, whose claims then count for nothing. Claim in portions to let two runs share the work.

        Parameters
        ----------
        units
            What is wanted. Units claimed by another live store are left out.
        redo
            Also return units that are done (``--existing always``).
        """
        with self._lock():
            taken = self._claimed_elsewhere()
            self._look_for_done()
            mine = [unit for unit in dict.fromkeys(units) if unit not in taken and (redo or unit not in self._done)]
            if mine:
                lines.append(self._own_claims(), b"".join(map(_claim_line, mine)))
        return mine

    def write(self, cell: Cell, transcript_id: str, trial: int, result: UnitResult) -> None:
        """Append a unit's rows, its units row last, so that the unit exists wholly or not at all.

        Raises
        ------
        StoreError
            If the disk is full, the folder cannot be written, or a row is not JSON. The unit then stays owed.
        """
        rows = stored_rows(cell, (cell.key, transcript_id, trial), result, secrets.token_hex(6))
        parts = {name: b"".join(map(lines.encode, rows[name])) for name in (*ROW_FILES, "units")}
        with self._lock():
            self._write_messages(result)
            for name, data in parts.items():
                if data:
                    lines.append(self.path / f"{name}.jsonl", data)

    def _write_messages(self, result: UnitResult) -> None:
        """Append the messages and the log that no unit brought before."""
        log = log_hash(result.log)
        wanted: list[tuple[str, Row]] = [(sha, {"message": message}) for sha, message in result.messages.items()]
        wanted.append((log, {"log": cast("list[JSON]", result.log)}))
        for line in self._messages.lines():
            row = lines.decode(line)
            if row is not None:
                self._known.add(str(row["sha256"]))
        fresh = [lines.encode({"sha256": sha} | row) for sha, row in wanted if sha not in self._known]
        if fresh:
            lines.append(self.path / "messages.jsonl", b"".join(fresh))

    @contextmanager
    def _lock(self) -> Iterator[None]:
        if self._pid != os.getpid():
            raise StoreError(f"{self.path}: this store was opened by process {self._pid}; open one in each worker")
        with lines.exclusive(self.path / _LOCK):
            yield

    def _own_claims(self) -> Path:
        if self._claims is None:
            folder = self.path / _CLAIMS
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise StoreError(f"{folder}: {error.strerror}; a run needs a folder it may write to") from error
            self._claims = folder / f"{socket.gethostname()}-{self._pid}-{secrets.token_hex(4)}.jsonl"
            self._claims_descriptor = lines.lock(self._claims, wait=True)
        return self._claims

    def _claimed_elsewhere(self) -> set[Unit]:
        """Return the units other live stores have claimed; claims of dead ones are removed."""
        taken: set[Unit] = set()
        for path in sorted((self.path / _CLAIMS).glob("*.jsonl")):
            if path == self._claims:
                continue
            descriptor = lines.lock(path, wait=False)
            if descriptor is not None:
                path.unlink(missing_ok=True)
                os.close(descriptor)
                continue
            taken.update(unit_of(row) for row in lines.read(path))
        return taken

    def _let_go(self) -> None:
        """In a forked child: close the inherited claim, which would otherwise outlive its owner."""
        if self._claims_descriptor is not None:
            os.close(self._claims_descriptor)
            self._claims = self._claims_descriptor = None


def unit_of(row: Mapping[str, JSON]) -> Unit:
    """Return the unit a stored row belongs to."""
    return str(row["cell"]), str(row["transcript"]), cast("int", row["trial"])


def _claim_line(unit: Unit) -> bytes:
    cell, transcript, trial = unit
    return lines.encode({"cell": cell, "transcript": transcript, "trial": trial})


_OPEN: weakref.WeakSet[RunStore] = weakref.WeakSet()


def _let_go_of_all() -> None:
    for store in list(_OPEN):
        store._let_go()  # noqa: SLF001 - same module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_of_all)
