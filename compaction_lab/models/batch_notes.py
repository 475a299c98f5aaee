"""Models of a batched run: first they note what they would ask, then they answer from what the batches brought."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compaction_lab.accounting.prices import Price
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ContextOverflow, NotCached
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.models.batch_queue import BatchQueue
from compaction_lab.models.budget import highest_cost_usd
from compaction_lab.models.response_cache import ResponseCache, request_key
from compaction_lab.models.shared_file import transaction
from compaction_lab.models.wrapping import Wrapper

ENVIRONMENT = "COMPACTION_LAB_NOTEBOOK"
"""File of the notebook, set by a run for itself and its workers while requests are only noted."""

_TABLE = """create table if not exists wanted (key text primary key, node text, role text, trial integer, body text,
    most_usd real)"""


class Deferred(ContextOverflow):
    """An answer that a batch will bring. As after a prompt that does not fit, the unit goes on without it.

    What such a unit yields is thrown away: it only has to come to everything else it would ask.
    """


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request to be answered: the configuration of its endpoint, its body, and what it costs at most in US dollars.

    ``most_usd`` is 0 when no budget was given.
    """

    key: str
    node: str
    role: str
    trial: int
    body: Mapping[str, JSON]
    most_usd: float


@dataclass(frozen=True, slots=True)
class Notebook:
    """An SQLite file in which the processes of a run note requests."""

    path: Path

    @classmethod
    def start(cls, path: Path) -> Notebook:
        """Make an empty one."""
        path.unlink(missing_ok=True)
        with transaction(path) as database:
            database.execute(_TABLE)
        return cls(path)

    @classmethod
    def of_environment(cls) -> Notebook | None:
        """Return the notebook of the run this process works for, while it only notes."""
        path = os.environ.get(ENVIRONMENT)
        return cls(Path(path)) if path else None

    def note(self, wanted: Wanted) -> None:
        """Note a request once."""
        body = json.dumps(wanted.body)
        values = (wanted.key, wanted.node, wanted.role, wanted.trial, body, wanted.most_usd)
        with transaction(self.path) as database:
            database.execute("insert or ignore into wanted values (?, ?, ?, ?, ?, ?)", values)

    def read(self) -> list[Wanted]:
        """Return what was noted, in order of the keys."""
        with transaction(self.path, write=False) as database:
            rows = database.execute("select key, node, role, trial, body, most_usd from wanted order by key").fetchall()
        return [Wanted(key, node, role, trial, json.loads(body), usd) for key, node, role, trial, body, usd in rows]


@dataclass(frozen=True, slots=True)
class NotingModel(Wrapper):
    """Answers from the cache, and notes what is not in it.

    Parameters
    ----------
    cache, notebook
        Where answers are, and where requests go.
    node
        The endpoint's configuration as JSON text.
    price
        Given when there is a budget.
    """

    cache: ResponseCache
    notebook: Notebook
    node: str
    price: Price | None = None

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Return the kept reply.

        Raises
        ------
        Deferred
            There is none; the request is noted.
        """
        key = request_key(self.endpoint, request)
        found = self.cache.get(key)
        if found is not None:
            return found
        usd = 0.0 if self.price is None else highest_cost_usd(self.endpoint, request, self.price)
        self.notebook.note(Wanted(key, self.node, request.purpose, request.trial, self.endpoint.body(request), usd))
        raise Deferred(f"model {self.name}: this {request.purpose} call waits for its batch")


@dataclass(frozen=True, slots=True)
class BatchedModel(Wrapper):
    """Answers from the cache that batches have filled; never asks by itself."""

    cache: ResponseCache
    queue: BatchQueue

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Return the kept reply.

        Raises
        ------
        ContextOverflow
            The prompt did not fit the model's window.
        ModelError
            The batch brought no answer to this request.
        NotCached
            The request was in no batch.
        """
        key = request_key(self.endpoint, request)
        found = self.cache.get(key)
        if found is not None:
            return found
        failure = self.queue.failure(key)
        if failure is not None:
            raise self.endpoint.refused(failure.message, failure.status)
        raise NotCached(
            f"model {self.name}: the reply to a {request.purpose} call is not in the cache {self.cache.path}; "
            "batch=true has `compaction-lab run` submit it"
        )
