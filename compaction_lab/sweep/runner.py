"""Runs what a grid still owes into a run folder: nothing twice, failures as rows, an orderly end when interrupted."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Literal, cast, get_args

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.models.budget import ENVIRONMENT as BUDGET
from compaction_lab.models.budget import Budget
from compaction_lab.models.registry import ONLY_CACHE, told
from compaction_lab.records import Cell
from compaction_lab.sweep.endpoints import batched_models, require_caches, require_prices
from compaction_lab.sweep.executors import Executor, Finished, Processes, Serial, Unit, Work
from compaction_lab.sweep.grid import Grid
from compaction_lab.sweep.nodes import Node, show
from compaction_lab.sweep.progress import Progress
from compaction_lab.sweep.store import RunStore

Existing = Literal["only-missing", "always", "never", "only-cache"]
EXISTING: tuple[Existing, ...] = get_args(Existing)

PORTION = 16
"""Units claimed at a time, so that two runs of one name share the work."""

_WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class Policy:
    """How a run is worked off; nothing here changes a result or a key.

    Parameters
    ----------
    existing
        ``only-missing`` does what is owed, ``always`` every unit, ``never`` refuses a run that exists, ``only-cache``
        does the owed units that need no call to a real model: all their replies are in the response cache.
    limit
        Most units to attempt.
    jobs
        Processes; ``None`` leaves it to the configured executor.
    fail_fast
        Stop at the first failed unit.
    max_error_rate
        Stop once more than this share of the owed units has failed.
    max_cost_usd
        Stop before the call that could make the real model calls of this invocation cost more; replies that come out
        of the cache, simulated and recorded ones cost nothing.
    """

    existing: Existing = "only-missing"
    limit: int | None = None
    jobs: int | None = None
    fail_fast: bool = False
    max_error_rate: float | None = None
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Every unit of a grid, and those that a stored run already has."""

    grid: Grid
    folder: Path
    transcripts: dict[str, list[str]]
    units: tuple[Unit, ...]
    done: frozenset[Unit]

    @property
    def owed(self) -> tuple[Unit, ...]:
        """Units still to do, in the order they are done."""
        return tuple(unit for unit in self.units if unit not in self.done)


@dataclass(slots=True)
class Tally:
    """What became of an invocation."""

    ran: int = 0
    failed: int = 0
    uncached: int = 0
    owed: int = 0
    interrupted: bool = False
    stopped: str = ""
    errors: dict[str, int] = field(default_factory=dict)


def plan(grid: Grid, folder: Path, transcript_ids: Callable[[Cell], Sequence[str]] | None = None) -> Plan:
    """Say what a run consists of and what of it is stored; writes nothing.

    Units stand in an order that keeps a transcript's arms together, so that a part of a run is a paired comparison.

    Parameters
    ----------
    grid
        The cells.
    folder
        The run folder, which need not exist.
    transcript_ids
        Names the transcripts of a cell's dataset; by default :mod:`compaction_lab.sweep.unit` does.
    """
    if transcript_ids is None:
        from compaction_lab.sweep import unit

        transcript_ids = unit.transcript_ids
    transcripts: dict[str, list[str]] = {}
    for cell in grid.cells:
        if cell.dataset not in transcripts:
            transcripts[cell.dataset] = list(transcript_ids(cell))
    units = tuple(
        (cell.key, transcript, trial)
        for dataset, names in transcripts.items()
        for transcript in names
        for trial in range(grid.trials)
        for cell in grid.cells
        if cell.dataset == dataset
    )
    done: set[Unit] = set()
    if (folder / "cells.jsonl").is_file():
        done = RunStore(folder).done()
    return Plan(grid, folder, transcripts, units, frozenset(done.intersection(units)))


def settled(planned: Plan) -> bool:
    """Whether a run has all its units under the labels they would get now, so that there is nothing to do or write."""
    if planned.owed or not (planned.folder / "cells.jsonl").is_file():
        return False
    stored = {cell.key: cell for cell in RunStore(planned.folder).cells()}
    return all(cell.key in stored and stored[cell.key].arm == cell.arm for cell in planned.grid.cells)


def execute(planned: Plan, policy: Policy, manifest: Node, progress: Progress, work: Work | None = None) -> Tally:
    """Do the owed units of a plan.

    Parameters
    ----------
    planned
        From :func:`plan`.
    policy
        How to go about it.
    manifest
        Where the run came from, written before the first unit.
    progress
        Told of every unit.
    work
        Does one unit; must be importable by name when processes are used.

    Raises
    ------
    ConfigurationError
        The run exists and ``existing`` is ``never``.
    StoreError
        The run folder cannot be written.
    """
    cells = {cell.key: cell for cell in planned.grid.cells}
    if policy.existing == "never" and (planned.folder / "cells.jsonl").exists():
        raise ConfigurationError(
            f"{planned.folder}: this run exists and --existing never was given; "
            "choose another --name, or leave the flag out"
        )
    if work is None:
        from compaction_lab.sweep.unit import run_unit

        work = run_unit
    redo = policy.existing == "always"
    todo = list(planned.units if redo else planned.owed)
    if policy.max_cost_usd is not None:
        require_prices(planned.grid.cells)
    if policy.existing == "only-cache":
        require_caches(planned.grid.cells)
    tally = Tally()
    run = _Run(cells, policy, tally, progress, planned.folder / "log.txt", total=len(todo))
    with (
        RunStore.open(planned.folder, create=True) as store,
        tempfile.TemporaryDirectory(prefix="compaction-lab-") as folder,
        told(_manners(policy, Path(folder))),
        _interruptible(tally, progress),
    ):
        store.freeze(planned.grid.cells, manifest)
        run.log(f"units: {len(planned.units)}, to do: {len(todo)}")
        todo = todo[: policy.limit]
        stopped = ""
        if policy.existing != "only-cache" and any(any(batched_models(cell.config)) for cell in planned.grid.cells):
            from compaction_lab.sweep.batching import Batching

            executor = partial(_executor, planned.grid, policy, work, cells)
            stopped = Batching(cells, executor, told, run.tell, run.stop, Path(folder)).answer(todo)
        run.work_off(store, todo, _executor(planned.grid, policy, work, cells), redo=redo)
        tally.stopped = tally.stopped or stopped
        tally.owed = len(set(planned.units) - store.done())
        run.log(f"{tally.ran} done, {tally.failed} failed, {tally.owed} still owed")
    return tally


@dataclass(slots=True)
class _Run:
    """The state of one invocation while it works."""

    cells: dict[str, Cell]
    policy: Policy
    tally: Tally
    progress: Progress
    log_path: Path
    total: int

    def log(self, text: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        with self.log_path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{stamp} [{os.getpid()}] {text}\n")

    def tell(self, text: str) -> None:
        self.progress.say(text)
        self.log(text)

    def stop(self) -> bool:
        return self.tally.interrupted or bool(self.tally.stopped)

    def work_off(self, store: RunStore, units: list[Unit], executor: Executor, *, redo: bool) -> None:
        """Do units in claimed portions; wait for those that another run of this name has in hand."""
        waiting = units
        while waiting and not self.stop():
            elsewhere: list[Unit] = []
            for finished in executor(_claimed(store, waiting, elsewhere, redo=redo), self.stop):
                self._record(store, finished)
            done = store.done()
            left = [] if redo else [unit for unit in elsewhere if unit not in done]
            if left and len(left) != len(waiting):
                self.progress.say(f"waiting for another run of this name to finish what it has in hand: {len(left)}")
            waiting = left
            if waiting and not self.stop():
                time.sleep(_WAIT_S)

    def _record(self, store: RunStore, finished: Finished) -> None:
        key, transcript, trial = finished.unit
        cell, result = self.cells[key], finished.result
        if finished.left:
            self._leave(finished)
            return
        store.write(cell, transcript, trial, result)
        tally, policy = self.tally, self.policy
        error = result.error or "no reason given" if result.outcome == "failed" else ""
        self.progress.unit(f"{cell.arm} · {cell.model} · {transcript} · trial {trial}", error=error)
        if not error:
            tally.ran += 1
        else:
            tally.failed += 1
            first_line = error.splitlines()[0]
            tally.errors[first_line] = tally.errors.get(first_line, 0) + 1
            self.log(f"failed {key}/{transcript}/{trial}: {error}\n{finished.trace}".rstrip())
        rate = policy.max_error_rate
        if error and policy.fail_fast:
            tally.stopped = "a unit failed (--fail-fast)"
        elif rate is not None and tally.failed > rate * self.total:
            tally.stopped = f"more than {rate:.0%} of the owed units failed (--max-error-rate)"

    def _leave(self, finished: Finished) -> None:
        """Note a unit whose calls may not be made; it is owed as before."""
        self.log(f"left {'/'.join(map(str, finished.unit))}: {finished.result.error}")
        if finished.left == "uncached":
            self.tally.uncached += 1
        else:
            self.tally.stopped = finished.result.error


def _claimed(store: RunStore, units: list[Unit], elsewhere: list[Unit], *, redo: bool) -> Iterator[Unit]:
    for start in range(0, len(units), PORTION):
        portion = units[start : start + PORTION]
        mine = store.claim(portion, redo=redo)
        elsewhere += [unit for unit in portion if unit not in set(mine)]
        yield from mine


def _executor(grid: Grid, policy: Policy, work: Work, cells: dict[str, Cell]) -> Executor:
    configured = grid.config.get("executor")
    node: dict[str, JSON] = configured if isinstance(configured, dict) else {}
    kind = node.get("kind", "serial")
    if kind not in {"serial", "processes", "ray"}:
        raise ConfigurationError(f"executor.kind={show(kind)}: expected serial, processes or ray")
    workers = 1 if kind == "serial" else node.get("workers")
    jobs = policy.jobs if policy.jobs is not None else workers or os.cpu_count() or 1
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ConfigurationError(f"-j {jobs}: expected a whole number of processes, at least 1")
    if kind == "ray":
        from compaction_lab.sweep.ray_cluster import RayCluster

        return RayCluster(work, cells, jobs, cast("str | None", node.get("address")))
    return Serial(work, cells) if jobs == 1 else Processes(work, cells, jobs)


def _manners(policy: Policy, folder: Path) -> dict[str, str]:
    """Return what the models of this process and its workers may not do: ask at all, or spend more."""
    manners: dict[str, str] = {}
    if policy.existing == "only-cache":
        manners[ONLY_CACHE] = "1"
    if policy.max_cost_usd is not None:
        manners[BUDGET] = Budget.start(folder / "budget.sqlite", policy.max_cost_usd).announce()
    return manners


@contextmanager
def _interruptible(tally: Tally, progress: Progress) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM end the run in order, the second at once; rows written are safe either way."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        if tally.interrupted:
            os.write(sys.stderr.fileno(), b"\nstopped at once; finished units are stored\n")
            os._exit(130)
        tally.interrupted = True
        progress.say("interrupted: finishing the units under way (again to stop at once)", always=True)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
