"""Running someone else's code beside the lab's: in a thread with its own event loop, within a time, able to ask back.

Code that hangs is left behind in its thread, which ends with the process; the next call gets a new one.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Generic, TypeVar, cast

from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.base import Replies, Requests

T = TypeVar("T")
Ask = Callable[[ModelRequest], ModelReply]


class Hung(Exception):
    """The code took longer than its limit."""


class Abandoned(Exception):
    """Nobody waits for the code any more."""


@dataclass(slots=True)
class _Call(Generic[T]):
    """One piece of code under way, and what it and the lab tell each other."""

    work: Callable[[Ask], T | Awaitable[T]]
    told: queue.SimpleQueue[tuple[str, object]] = field(default_factory=queue.SimpleQueue)
    replies: queue.SimpleQueue[ModelReply | None] = field(default_factory=queue.SimpleQueue)

    def ask(self, request: ModelRequest) -> ModelReply:
        self.told.put(("asks", request))
        reply = self.replies.get()
        if reply is None:
            raise Abandoned
        return reply


class _Worker:
    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[_Call[object]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="foreign-strategy", daemon=True).start()

    def start(self, call: _Call[object]) -> None:
        self._calls.put(call)

    def _work(self) -> None:
        loop = asyncio.new_event_loop()
        while True:
            call = self._calls.get()
            try:
                result = call.work(call.ask)
                if isawaitable(result):
                    result = loop.run_until_complete(_awaited(result))
                call.told.put(("returns", result))
            except BaseException as error:  # noqa: BLE001 - whatever it raises is a finding about it, not a crash of ours
                call.told.put(("raises", error))


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


_idle: list[_Worker] = []


def run(work: Callable[[Ask], T | Awaitable[T]], timeout_s: float) -> Generator[Requests, Replies, T]:
    """Run code in a thread; what it asks a model is yielded, and the reply given to it.

    Parameters
    ----------
    work
        Called with a function that asks a model and waits for the reply; returns a result or something to await.
    timeout_s
        Longest it may take between two questions, waiting for replies not counted, in seconds.

    Raises
    ------
    Hung
        It took longer.
    Exception
        Whatever it raised; an attempt to end the process is a ``RuntimeError``.
    """
    worker = _idle.pop() if _idle else _Worker()
    call: _Call[object] = _Call(work)
    worker.start(call)
    finished = False
    try:
        while True:
            try:
                what, told = call.told.get(timeout=timeout_s)
            except queue.Empty:
                msg = f"no result within {timeout_s:g} s"
                raise Hung(msg) from None
            if what == "asks":
                (reply,) = yield (cast("ModelRequest", told),)
                call.replies.put(reply)
                continue
            finished = True
            if isinstance(told, Exception) and what == "raises":
                raise told
            if what == "raises":
                raise RuntimeError(repr(told))
            return cast("T", told)
    finally:
        if finished:
            _idle.append(worker)
        else:
            call.replies.put(None)
