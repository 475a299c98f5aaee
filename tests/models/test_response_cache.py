"""An equal request is asked once: by threads, by processes, after failures and after a death in mid-call."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from compaction_lab.cli import main
from compaction_lab.conversation.messages import ToolCall, Usage, user
from compaction_lab.errors import ConfigurationError, ModelError, NotCached
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.models.openai_compatible import OpenAICompatible
from compaction_lab.models.response_cache import STALE_FLIGHT_S, CachedModel, Fetched, ResponseCache, request_key
from tests.models.faulty_server import Fault, FaultyServer, completion, error, running

ABOUT = Fetched("m", "here", "probe", 0)
REPLY = ModelReply("text", (ToolCall("c", "look", "{}"),), "tool_calls", Usage(1, 2, 3, 4, 5, {"x": 1}), 1.5, 0.25)


def endpoint(server: FaultyServer, **settings: object) -> OpenAICompatible:
    return OpenAICompatible("m", server.url, **{"retries": 0, "key_variable": "", **settings})


def cached(server: FaultyServer, path: Path, *, only_cache: bool = False) -> CachedModel:
    model = endpoint(server)
    return CachedModel(model, model, ResponseCache(path), only_cache=only_cache)


def asking(text: str = "hello", **fields: object) -> ModelRequest:
    return ModelRequest((user(text),), **fields)


def test_a_kept_reply_is_the_original_but_for_saying_so(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "deep" / "replies.sqlite")
    assert cache.fetch("k", ABOUT, lambda: REPLY) == REPLY
    kept = cache.get("k")
    assert kept is not None
    assert kept.cached
    assert (kept.text, kept.calls, kept.usage, kept.latency_s, kept.cost_usd) == (
        "text",
        REPLY.calls,
        REPLY.usage,
        1.5,
        0.25,
    )


def test_what_can_change_a_reply_is_in_the_key_and_nothing_else(tmp_path: Path) -> None:
    del tmp_path
    with running() as server:
        base = endpoint(server)
        key = request_key(base, asking())
        for other in (
            asking("hi"),
            asking(seed=1),
            asking(trial=1),
            asking(purpose="judge"),
            asking(max_output_tokens=5),
            asking(response_format={"type": "json_object"}),
        ):
            assert request_key(base, other) != key
        for changed in ({"temperature": 1.0}, {"extra_body": {"x": 1}}):
            assert request_key(endpoint(server, **changed), asking()) != key
        for same in ({"timeout_s": 1.0}, {"retries": 9}, {"key_variable": "OTHER"}, {"stream": True}):
            assert request_key(endpoint(server, **same), asking()) == key


def test_threads_with_one_request_make_one_call(tmp_path: Path) -> None:
    with running(FaultyServer(delay_s=0.3)) as server:
        model = cached(server, tmp_path / "replies.sqlite")
        replies: list[ModelReply] = []
        threads = [threading.Thread(target=lambda: replies.append(model(asking()))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.requests == 1
        assert sorted(reply.cached for reply in replies) == [False] + [True] * 7


ASK = """
import sys
from pathlib import Path
from compaction_lab.conversation.messages import user
from compaction_lab.models.base import ModelRequest
from compaction_lab.models.openai_compatible import OpenAICompatible
from compaction_lab.models.response_cache import CachedModel, ResponseCache
model = OpenAICompatible("m", sys.argv[1], retries=0, key_variable="")
model = CachedModel(model, model, ResponseCache(Path(sys.argv[2])))
for number in map(int, sys.argv[3:]):
    assert model(ModelRequest((user(f"question {number}"),))).text == "It has 32 GB."
"""


def test_processes_with_overlapping_requests_make_each_once(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with running(FaultyServer(delay_s=0.05)) as server:
        orders = ([*range(8)], [*reversed(range(8))], [3, 4, 0, 9])
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", ASK, server.url, str(tmp_path / "replies.sqlite"), *map(str, order)],
                env=environment,
            )
            for order in orders
        ]
        assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
        assert not server.repeated
        assert server.requests == 9


def test_a_failed_call_is_kept_by_nobody_and_asked_again(tmp_path: Path) -> None:
    with running(FaultyServer(faults=[Fault(500, error("oops"))])) as server:
        model = cached(server, tmp_path / "replies.sqlite")
        with pytest.raises(ModelError):
            model(asking())
        assert model(asking()).text == "It has 32 GB."
        assert model(asking()).cached
        assert server.requests == 2


def test_only_cache_makes_no_call(tmp_path: Path) -> None:
    with running() as server:
        path = tmp_path / "replies.sqlite"
        with pytest.raises(NotCached, match="only-cache"):
            cached(server, path, only_cache=True)(asking())
        assert server.requests == 0
        cached(server, path)(asking())
        assert cached(server, path, only_cache=True)(asking()).cached
        assert server.requests == 1


def test_a_flight_of_the_dead_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    cache = ResponseCache(path)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    flights = [
        ("gone", socket.gethostname(), dead.pid, time.time()),
        ("lost", "another host", 1, time.time() - 2 * STALE_FLIGHT_S),
        ("reused", socket.gethostname(), os.getpid(), time.time() - 2 * STALE_FLIGHT_S),
    ]
    database = sqlite3.connect(path)
    database.executemany("insert into flights values (?, ?, ?, ?)", flights)
    database.commit()
    database.close()
    for key, *_ in flights:
        assert cache.fetch(key, ABOUT, lambda: REPLY) == REPLY


def test_a_file_that_is_no_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "replies.sqlite").write_text("not a database, " * 100)
    with pytest.raises(ConfigurationError, match="COMPACTION_LAB_CACHE"):
        ResponseCache(tmp_path / "replies.sqlite")


def test_the_verb_counts_and_forgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "replies.sqlite"
    monkeypatch.setenv("COMPACTION_LAB_CACHE", str(path))
    assert main(["cache", "stats"]) == 0
    assert "no reply was kept yet" in capsys.readouterr().out
    with running(FaultyServer(answer=lambda _: completion("x" * 100))) as server:
        model = cached(server, path)
        for number in range(3):
            model(asking(f"{number}", purpose="judge" if number else "probe"))
    assert main(["cache", "stats", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["replies"]
    assert [(row["role"], row["replies"]) for row in rows] == [("judge", 2), ("probe", 1)]
    assert main(["cache", "stats"]) == 0
    assert "3 replies" in capsys.readouterr().out
    assert main(["cache", "prune", "--unused-days", "1"]) == 0
    assert "forgot 0" in capsys.readouterr().out
    assert main(["cache", "prune", "--unused-days", "0", "--model", "m"]) == 0
    assert "forgot 3" in capsys.readouterr().out
