"""SQLite files that processes share, in the user's cache folder: opened for one piece of work, committed as a whole."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUSY_S = 60.0


@contextmanager
def transaction(path: Path, *, write: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a file; with ``write`` nobody else writes until the end, and all is kept or, after an error, nothing."""
    database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        if write:
            database.execute("begin immediate")
        yield database
        if database.in_transaction:
            database.execute("commit")
    finally:
        database.close()


def cache_folder() -> Path:
    """Return the lab's folder among the user's caches on this machine."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "compaction_lab"
