"""Units side by side on a Ray cluster: its workers do them, this process claims them and writes what they return."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Protocol

from compaction_lab.errors import ConfigurationError
from compaction_lab.models.budget import ENVIRONMENT as BUDGET
from compaction_lab.models.registry import ONLY_CACHE
from compaction_lab.records import Cell
from compaction_lab.sweep.executors import AHEAD, Finished, Stop, Unit, Work, attempt, failed

_PATIENCE_S = 0.2
_RETRIES = 3
"""How often Ray itself does a unit again whose worker or machine was lost, before the unit is a failed one."""

_OBJECT_STORE_BYTES = 128 << 20
"""Of a cluster of our own: it holds the cells; results are small."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


class _Reference(Protocol):
    """What Ray gives for a result to come, or for an object that it holds."""


@dataclass(frozen=True, slots=True)
class RayCluster:
    """Units on a Ray cluster (``pip install "compaction-lab[ray]"``).

    The workers need the lab installed and must see the datasets and the response cache under the same paths, as on a
    shared folder; the store is written by this process alone. A unit whose worker dies is done again by Ray; only this
    process records it, so that it counts once.

    Parameters
    ----------
    work, cells
        As for the other executors; cells are sent to the cluster once.
    workers
        Units under way at the same time; for a cluster of its own also its processors.
    address
        Of a running cluster (``auto``, ``host:port`` or ``ray://host:port``); ``None`` starts one on this machine and
        ends it afterwards.

    Raises
    ------
    ConfigurationError
        Ray is not installed, the cluster cannot be reached, or a spending limit is set for other machines, which
        could not see what this one has spent.
    """

    work: Work
    cells: Mapping[str, Cell]
    workers: int
    address: str | None = None

    def __call__(self, units: Iterable[Unit], stop: Stop) -> Iterator[Finished]:
        """Yield each unit as it finishes."""
        if self.address is not None and BUDGET in os.environ:
            msg = "--max-cost counts what this machine spends; leave out executor.address, or --max-cost"
            raise ConfigurationError(msg)
        ray = _ray()
        with _connected(ray, self.workers, self.address):
            cells = ray.put(dict(self.cells))
            task = ray.remote(max_retries=_RETRIES, num_cpus=1)(_attempt_on_cluster)
            yield from self._work_off(ray, partial(task.remote, self.work, cells), iter(units), stop)

    def _work_off(
        self, ray: ModuleType, begin: Callable[[Unit], _Reference], source: Iterator[Unit], stop: Stop
    ) -> Iterator[Finished]:
        running: dict[_Reference, Unit] = {}
        ended = False
        while running or not ended:
            while not ended and len(running) < AHEAD * self.workers:
                unit = None if stop() else next(source, None)
                if unit is None:
                    ended = True
                    break
                running[begin(unit)] = unit
            done, _ = ray.wait(list(running), num_returns=1, timeout=_PATIENCE_S) if running else ([], [])
            for reference in done:
                unit = running.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield Finished(unit, failed(f"WorkerDied: {type(error).__name__}: {str(error).splitlines()[0]}"))


def _ray() -> ModuleType:
    os.environ.update({name: value for name, value in _QUIET.items() if name not in os.environ})
    try:
        import ray
    except ImportError as error:
        msg = (
            "executor=ray: the package ray is not installed; pip install 'compaction-lab[ray]', "
            "or use -j N for processes of this machine"
        )
        raise ConfigurationError(msg) from error
    module: ModuleType = ray
    return module


@contextmanager
def _connected(ray: ModuleType, workers: int, address: str | None) -> Iterator[None]:
    told = {name: os.environ[name] for name in (BUDGET, ONLY_CACHE) if name in os.environ}
    own = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"env_vars": told},
            **({} if address else own),
        )
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        where = f"a Ray cluster at {address}" if address else "a Ray cluster on this machine"
        raise ConfigurationError(f"executor=ray: cannot use {where}: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _attempt_on_cluster(work: Work, cells: Mapping[str, Cell], unit: Unit) -> Finished:
    return attempt(work, cells[unit[0]], unit)
