"""How units are worked off: one after the other here, or side by side in processes; both yield what finished."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from compaction_lab.errors import BudgetReached, NotCached
from compaction_lab.models.secrets import key_variables, redacted
from compaction_lab.records import Cell, UnitResult

Unit: TypeAlias = tuple[str, str, int]
"""Cell key, transcript id, trial."""

Work: TypeAlias = Callable[[Cell, str, int], UnitResult]
Stop: TypeAlias = Callable[[], bool]
"""Asked before each new unit: whether to begin no more."""

_PATIENCE_S = 0.2
AHEAD = 2
"""Units handed out for each worker: the next lies ready when one is done. When a worker dies, all of them fail."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A unit that was attempted, the traceback when it failed, and why it was left untouched when it was.

    ``left`` is ``uncached`` or ``budget``: a call that may not be made (``--existing only-cache``, ``--max-cost``) is
    no failure, so nothing of the unit is stored.
    """

    unit: Unit
    result: UnitResult
    trace: str = ""
    left: Literal["", "uncached", "budget"] = ""


class Executor(Protocol):
    """Works off units; begins no more once told to stop, and lets those running end."""

    def __call__(self, units: Iterable[Unit], stop: Stop) -> Iterator[Finished]:
        """Yield each unit as it finishes, in no particular order."""
        ...


def attempt(work: Work, cell: Cell, unit: Unit) -> Finished:
    """Do one unit; whatever goes wrong in it becomes its result, so that the other units go on."""
    _, transcript_id, trial = unit
    try:
        return Finished(unit, work(cell, transcript_id, trial))
    except NotCached as error:
        return Finished(unit, failed(str(error)), left="uncached")
    except BudgetReached as error:
        return Finished(unit, failed(str(error)), left="budget")
    except Exception as error:  # noqa: BLE001 - the boundary of a unit
        keys = tuple(key_variables(cell.config))
        trace = redacted(traceback.format_exc(), keys)
        return Finished(unit, failed(redacted(f"{type(error).__name__}: {error}", keys)), trace)


def failed(error: str) -> UnitResult:
    """Return the result of a unit that could not be done; it stays owed."""
    return UnitResult(outcome="failed", error=error)


@dataclass(frozen=True, slots=True)
class Serial:
    """One unit after the other, in this process."""

    work: Work
    cells: Mapping[str, Cell]

    def __call__(self, units: Iterable[Unit], stop: Stop) -> Iterator[Finished]:
        """Yield each unit as it finishes."""
        for unit in units:
            if stop():
                return
            yield attempt(self.work, self.cells[unit[0]], unit)


@dataclass(frozen=True, slots=True)
class Processes:
    """Units side by side in ``workers`` freshly started processes, which are sent the cells once.

    A worker that dies fails the units then under way; a new set of workers goes on with the rest.
    """

    work: Work
    cells: Mapping[str, Cell]
    workers: int

    def __call__(self, units: Iterable[Unit], stop: Stop) -> Iterator[Finished]:
        """Yield each unit as it finishes."""
        source = iter(units)
        while (first := next(source, None)) is not None and not stop():
            yield from self._until_broken(first, source, stop)

    def _until_broken(self, first: Unit, source: Iterator[Unit], stop: Stop) -> Iterator[Finished]:
        with ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(self.work, dict(self.cells)),
        ) as pool:
            running: dict[Future[Finished], Unit] = {pool.submit(_attempt_in_worker, first): first}
            broken = False
            while True:
                while not broken and len(running) < AHEAD * self.workers and not stop():
                    unit = next(source, None)
                    if unit is None:
                        break
                    running[pool.submit(_attempt_in_worker, unit)] = unit
                if not running:
                    return
                if stop():
                    for future in running:
                        future.cancel()
                for future in wait(running, timeout=_PATIENCE_S, return_when=FIRST_COMPLETED).done:
                    unit = running.pop(future)
                    try:
                        yield future.result()
                    except CancelledError:
                        continue
                    except BrokenProcessPool:
                        broken = True
                        if not stop():
                            yield Finished(unit, failed("WorkerDied: its process ended (killed, or out of memory)"))


@dataclass(slots=True)
class _Worker:
    work: Work
    cells: Mapping[str, Cell]


_worker: list[_Worker] = []


def _start_worker(work: Work, cells: Mapping[str, Cell]) -> None:
    """Prepare a worker: it leaves Ctrl-C to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker.append(_Worker(work, cells))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _attempt_in_worker(unit: Unit) -> Finished:
    (worker,) = _worker
    return attempt(worker.work, worker.cells[unit[0]], unit)
