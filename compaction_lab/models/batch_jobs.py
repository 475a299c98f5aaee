"""Provider batches over the OpenAI batch API: write the requests, upload, create, look, collect; resumed after a death.

Semantics: OpenAI's batch API as of the library 2.x (``/files``, ``/batches``; a JSONL file of requests with a
``custom_id`` each, answers and errors in files of their own, 24 hours).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compaction_lab.accounting.prices import Price
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ModelError
from compaction_lab.models.base import ModelReply
from compaction_lab.models.batch_notes import Wanted
from compaction_lab.models.batch_queue import Batch, BatchQueue, Failure
from compaction_lab.models.budget import Budget, beyond
from compaction_lab.models.openai_compatible import OpenAICompatible
from compaction_lab.models.openai_replies import MalformedAnswer, Payload, read_answer, read_reply

if TYPE_CHECKING:
    from openai.types import Batch as RemoteBatch

LARGEST_REQUESTS = 50_000
LARGEST_BYTES = 190_000_000
"""A batch may hold this much at OpenAI; further requests go into further batches."""

TOKEN = "compaction_lab"
FINAL = ("completed", "failed", "expired", "cancelled")
_OK = 200
_TOLD_SHARES = 20
_FIRST_PAUSE_S, _PATIENCE_S = 1.0, 0.2
_CLOCKS_APART_S = 3_600.0


@dataclass(slots=True)
class BatchJobs:
    """The batches that one endpoint is to answer.

    Parameters
    ----------
    endpoint
        Who answers.
    queue
        What is under way, over all processes.
    say
        Told of every step in words.
    stop
        Asked while waiting: whether to leave; the batches go on at the provider.
    poll_s
        Longest pause between two looks.
    budget, price
        What new batches may cost, and what a token costs.
    """

    endpoint: OpenAICompatible
    queue: BatchQueue
    say: Callable[[str], None]
    stop: Callable[[], bool]
    poll_s: float = 30.0
    budget: Budget | None = None
    price: Price | None = None
    unaffordable: str = ""
    """Why requests were not submitted, when the budget forbade it."""
    _reserved: dict[str, int] = field(default_factory=dict)
    _told: dict[str, object] = field(default_factory=dict)

    def answer(self, wanted: Sequence[Wanted]) -> None:
        """Have requests answered as far as possible: afterwards each is in the cache, has a failure, or is under way.

        Raises
        ------
        ModelError
            The server did not take or give back a batch; what was submitted is found again by the next call.
        """
        for orphan in self.queue.orphans(self.endpoint.endpoint):
            self._adopt(orphan)
        for portion in _portions(self._affordable(wanted)):
            self._submit(portion)
        keys = {each.key for each in wanted}
        pause_s = min(_FIRST_PAUSE_S, self.poll_s)
        while waiting := self.queue.under_way(self.endpoint.endpoint, keys):
            for batch in waiting.values():
                self._advance(batch)
            if self.stop():
                return
            self._sleep(pause_s)
            pause_s = min(1.5 * pause_s, self.poll_s)

    def _affordable(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """Return the requests in no batch yet that the budget allows, their highest cost reserved."""
        if self.budget is None:
            return list(wanted)
        claimed = {
            key
            for token in self.queue.under_way(self.endpoint.endpoint, [each.key for each in wanted])
            for key in self.queue.keys(token)
        }
        allowed, refused = [], []
        for each in wanted:
            if each.key in claimed:
                continue
            call = self.budget.reserve(each.most_usd)
            if call is None:
                refused.append(each)
            else:
                self._reserved[each.key] = call
                allowed.append(each)
        if refused:
            cost = sum(each.most_usd for each in refused)
            what = f"{len(refused)} batched calls to {self.endpoint.name}"
            self.unaffordable = str(beyond(self.budget, cost, what))
        return allowed

    def _submit(self, portion: list[Wanted]) -> None:
        token, taken = self.queue.claim(self.endpoint.endpoint, {each.key: (each.role, each.trial) for each in portion})
        mine = set(taken)
        for each in portion:
            if each.key not in mine:
                self._settle(each.key, None)
        if not taken:
            return
        lines = b"".join(_line(each) for each in portion if each.key in mine)
        files = self.endpoint.client.files
        try:
            upload = self.endpoint.patiently(lambda: files.create(file=("requests.jsonl", lines), purpose="batch"))
        except ModelError:
            self.queue.release(token)
            raise
        try:
            # An attempt that seemed to fail may have made the batch; each looks for it first.
            made = self.endpoint.patiently(lambda: self._find(token, time.time()) or self._create(upload.id, token))
        except ModelError:
            self.queue.abandon(token)
            raise
        self.queue.made(token, made.id)
        self.say(f"{self._called(made.id)}: {len(taken):,} requests submitted")

    def _create(self, file: str, token: str) -> RemoteBatch:
        return self.endpoint.client.batches.create(
            input_file_id=file,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={TOKEN: token},
        )

    def _find(self, token: str, started_s: float) -> RemoteBatch | None:
        """Return the provider's batch that carries a token, if there is one; the list begins with the newest."""
        for batch in self.endpoint.client.batches.list(limit=100):
            if (batch.metadata or {}).get(TOKEN) == token:
                return batch
            if started_s and batch.created_at < started_s - _CLOCKS_APART_S:
                return None
        return None

    def _adopt(self, orphan: Batch) -> None:
        """Find out whether a batch was made before its maker died."""
        found = self.endpoint.patiently(lambda: self._find(orphan.token, orphan.started_s))
        if found is None:
            self.queue.release(orphan.token)
        else:
            self.queue.made(orphan.token, found.id)
            self.say(f"{self._called(found.id)}: found again")

    def _advance(self, batch: Batch) -> None:
        if not batch.remote:
            if batch.orphaned:
                self._adopt(batch)
            return
        client = self.endpoint.client
        found = self.endpoint.patiently(lambda: client.batches.retrieve(batch.remote))
        if found.status in FINAL:
            self._collect(batch, found)
        else:
            self._tell(found)

    def _tell(self, found: RemoteBatch) -> None:
        counts = found.request_counts
        total, done = (counts.total, counts.completed + counts.failed) if counts else (0, 0)
        state = (found.status, done * _TOLD_SHARES // total if total else 0)
        if self._told.get(found.id) != state:
            self._told[found.id] = state
            self.say(f"{self._called(found.id)}: {found.status}, {done:,} of {total:,} answered")

    def _collect(self, batch: Batch, found: RemoteBatch) -> None:
        keys = self.queue.keys(batch.token)
        replies: dict[str, ModelReply] = {}
        failures = dict.fromkeys(keys, Failure(self._unanswered(found)))
        for file in (found.output_file_id, found.error_file_id):
            for key, outcome in self._outcomes(file):
                if isinstance(outcome, ModelReply):
                    replies[key] = outcome
                else:
                    failures[key] = outcome
        self.queue.finish(batch.token, self.endpoint.name, replies, failures)
        for key in keys:
            self._settle(key, replies.get(key))
        answered = sum(key in replies for key in keys)
        said = f"{self._called(found.id)}: {found.status}, {answered:,} of {len(keys):,} requests answered"
        if answered < len(keys):
            said += f"; {len(keys) - answered:,} were not, and what needs them stays owed"
        self.say(said)

    def _outcomes(self, file: str | None) -> Iterator[tuple[str, ModelReply | Failure]]:
        if not file:
            return
        client = self.endpoint.client
        content = self.endpoint.patiently(lambda: client.files.content(file).read())
        for line in self.endpoint.clean(content.decode("utf-8", "replace")).splitlines():
            if not line.strip():
                continue
            try:
                row = read_answer(line)
            except MalformedAnswer as error:
                self.say(f"a line of {file} cannot be read: {error}")
                continue
            yield str(row.get("custom_id")), self._outcome(row)

    def _outcome(self, row: Payload) -> ModelReply | Failure:
        response, error = row.get("response"), row.get("error")
        if not isinstance(response, Mapping):
            return Failure(_words(error) or "the batch gave neither an answer nor an error")
        status, body = response.get("status_code"), response.get("body")
        if status != _OK or not isinstance(body, Mapping):
            return Failure(_words(body) or _words(error), status if isinstance(status, int) else None)
        try:
            return read_reply(body, self.endpoint.dialect, id_prefix="call_")
        except MalformedAnswer as malformed:
            return Failure(str(malformed))

    def _unanswered(self, found: RemoteBatch) -> str:
        """Return what is said of requests that neither the output nor the errors name."""
        why = {
            "expired": "it expired before it came to this request; the same command submits it again",
            "cancelled": "it was cancelled; the same command submits this request again",
        }.get(found.status, "it holds no answer to this request")
        errors = found.errors.data if found.errors else None
        said = "; ".join(error.message or error.code or "" for error in errors or ())
        return self.endpoint.clean(f"batch {found.id}: {said or why}")

    def _settle(self, key: str, reply: ModelReply | None) -> None:
        """Replace the reserved cost of a request by what it came to; one without an answer is not billed."""
        call = self._reserved.pop(key, None)
        if self.budget is not None and call is not None:
            usage = None if reply is None else reply.usage
            self.budget.settle(call, self.price.cost(usage) if self.price and usage else 0.0)

    def _called(self, remote: str) -> str:
        return f"batch {remote} of {self.endpoint.name}"

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.stop():
            time.sleep(min(_PATIENCE_S, left))


def _portions(wanted: Sequence[Wanted]) -> Iterator[list[Wanted]]:
    portion: list[Wanted] = []
    size = 0
    for each in wanted:
        length = len(_line(each))
        if portion and (len(portion) == LARGEST_REQUESTS or size + length > LARGEST_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(each)
        size += length
    if portion:
        yield portion


def _line(wanted: Wanted) -> bytes:
    row = {"custom_id": wanted.key, "method": "POST", "url": "/v1/chat/completions", "body": dict(wanted.body)}
    return json.dumps(row).encode() + b"\n"


def _words(value: JSON | Mapping[str, JSON]) -> str:
    """Return the message of an error object, or all of it as JSON."""
    if not isinstance(value, Mapping):
        return str(value or "")
    inner = value.get("error", value)
    message = inner.get("message") if isinstance(inner, Mapping) else inner
    return message if isinstance(message, str) and message else json.dumps(value)
