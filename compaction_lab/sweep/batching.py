"""Readers and judges whose calls go to provider batches: what units would ask is noted, submitted and waited for.

A batched run goes through its units several times: once for what its readers would be asked, once more for the judges
of their answers, and, when the response cache holds all that batches brought, once as any other run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from compaction_lab.accounting.prices import Price
from compaction_lab.errors import ModelError
from compaction_lab.models.batch_jobs import BatchJobs
from compaction_lab.models.batch_notes import ENVIRONMENT, Notebook, Wanted
from compaction_lab.models.batch_queue import BatchQueue
from compaction_lab.models.budget import Budget
from compaction_lab.models.registry import limited
from compaction_lab.models.response_cache import ResponseCache, default_path
from compaction_lab.records import Cell
from compaction_lab.sweep.endpoints import batched_models, endpoint_price
from compaction_lab.sweep.executors import Executor, Unit


@dataclass(frozen=True, slots=True)
class Batching:
    """The passes that come before the ordinary one.

    Parameters
    ----------
    cells
        By key.
    executor
        Goes through units; made anew for each pass, since its workers are told once what they may do.
    told
        Tells this process and its workers something through the environment, for the time of a ``with`` block.
    say
        Hears what becomes of batches.
    stop
        Whether to leave.
    folder
        For notebooks.
    """

    cells: Mapping[str, Cell]
    executor: Callable[[], Executor]
    told: Callable[[Mapping[str, str]], AbstractContextManager[None]]
    say: Callable[[str], None]
    stop: Callable[[], bool]
    folder: Path

    def answer(self, units: Iterable[Unit]) -> str:
        """Have everything that batched models would be asked answered, as far as possible.

        Returns
        -------
        str
            Why the run should stop after what can be done now; empty when nothing forbids to go on.
        """
        batched = [unit for unit in units if any(batched_models(self.cells[unit[0]].config))]
        tried: set[str] = set()
        while batched and not self.stop():
            wanted = [each for each in self._noted(batched) if each.key not in tried]
            if not wanted or self.stop():
                break
            tried.update(each.key for each in wanted)
            try:
                unaffordable = self._answer(wanted)
            except ModelError as error:
                return str(error)
            if unaffordable:
                return unaffordable
        return ""

    def _noted(self, units: list[Unit]) -> list[Wanted]:
        """Go through units once; their rows are thrown away, and what fails will fail again where it counts."""
        notebook = Notebook.start(self.folder / "notebook.sqlite")
        with self.told({ENVIRONMENT: str(notebook.path)}):
            for _ in self.executor()(iter(units), self.stop):
                pass
        return notebook.read()

    def _answer(self, wanted: list[Wanted]) -> str:
        prices = dict(self._prices())
        queue, budget = BatchQueue(ResponseCache(default_path())), Budget.of_environment()
        by_endpoint: defaultdict[str, list[Wanted]] = defaultdict(list)
        for each in wanted:
            by_endpoint[each.node].append(each)
        unaffordable = ""
        for text, requests in by_endpoint.items():
            node = json.loads(text)
            poll_s = cast("float", node.get("batch_poll_s", 30.0))
            jobs = BatchJobs(limited(node), queue, self.say, self.stop, poll_s, budget, prices.get(text))
            jobs.answer(requests)
            unaffordable = unaffordable or jobs.unaffordable
        return unaffordable

    def _prices(self) -> Iterator[tuple[str, Price | None]]:
        for cell in self.cells.values():
            for node in batched_models(cell.config):
                yield json.dumps(node, sort_keys=True), endpoint_price(node, cell.config)
