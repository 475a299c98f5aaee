"""Files of JSON lines that several processes append to: one lock, whole lines, a torn last line tolerated."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import StoreError

try:
    import fcntl
except ModuleNotFoundError:  # pragma: no cover - Windows reads runs, but cannot write them
    fcntl = None  # type: ignore[assignment]


def encode(row: Mapping[str, JSON]) -> bytes:
    """Return a row as one line of ASCII JSON; lone surrogates and exotic line ends are escaped.

    Raises
    ------
    StoreError
        If the row holds something JSON cannot say, such as NaN.
    """
    try:
        return json.dumps(row, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        found = ", ".join(f"{key}={str(value)[:40]!r}" for key, value in list(row.items())[:12])
        message = f"row ({found}): {error}; rows hold JSON values only, and a missing number is None"
        raise StoreError(message) from error


def decode(line: bytes) -> dict[str, JSON] | None:
    """Return the row a line holds, or ``None`` for one that a dying writer left torn."""
    try:
        row = json.loads(line.decode())
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def read(path: Path) -> Iterator[dict[str, JSON]]:
    """Yield the rows of a file in order, skipping torn lines; a file that is not there has none."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            row = decode(line)
            if row is not None:
                yield row


class Attempts:
    """Finds the rows that one attempt at a unit wrote: each file is looked through once, and only places are kept.

    Parameters
    ----------
    folder
        Of the files of rows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[str, dict[JSON, list[tuple[int, int]]]] = {}

    def __call__(self, name: str, attempt: JSON) -> Iterator[dict[str, JSON]]:
        """Yield the rows of ``NAME.jsonl`` whose field ``attempt`` is this one, in order."""
        if name not in self._places:
            self._places[name] = self._look_through(name)
        places = self._places[name].get(attempt)
        if not places:
            return
        with (self.folder / f"{name}.jsonl").open("rb") as file:
            for start, end in places:
                file.seek(start)
                for line in file.read(end - start).splitlines():
                    row = decode(line)
                    if row is not None:
                        yield row

    def _look_through(self, name: str) -> dict[JSON, list[tuple[int, int]]]:
        """Return, for each attempt, the stretches of bytes that its rows lie in."""
        found: dict[JSON, list[tuple[int, int]]] = {}
        at = 0
        try:
            file = (self.folder / f"{name}.jsonl").open("rb")
        except FileNotFoundError:
            return found
        with file:
            for line in file:
                row = decode(line)
                start, at = at, at + len(line)
                attempt = None if row is None else row.get("attempt")
                if not isinstance(attempt, str):
                    continue
                places = found.setdefault(attempt, [])
                if places and places[-1][1] == start:
                    places[-1] = (places[-1][0], at)
                else:
                    places.append((start, at))
        return found


class Tail:
    """Reads what was appended to a file since the last look, whole lines only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0

    def lines(self) -> Iterator[bytes]:
        """Yield the lines completed since the last call."""
        try:
            if self.path.stat().st_size <= self.offset:
                return
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self.offset += len(line)
                yield line


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` against every other process and thread; the system frees it when a holder dies.

    Raises
    ------
    StoreError
        If the file system has no locks or the folder cannot be written.
    """
    descriptor = lock(path, wait=True)
    assert descriptor is not None  # noqa: S101 - waiting either succeeds or raises
    try:
        yield
    finally:
        # Unlocked by name: a process forked meanwhile holds the descriptor too, and closing ours would not free it.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def lock(path: Path, *, wait: bool) -> int | None:
    """Return a descriptor that holds ``path`` locked until it is closed, or ``None`` if another holds it.

    Each call opens the file anew, so that threads and forked processes exclude each other as well (``flock(2)``).
    """
    if fcntl is None:  # pragma: no cover
        raise StoreError(f"{path}: this system has no POSIX file locks; write runs on Linux, macOS or WSL")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; a run needs a folder it may write to") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        message = f"{path}: {error.strerror}; put the run folder on a file system that supports file locks"
        raise StoreError(message) from error
    return descriptor


def append(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Append whole lines under the caller's lock; a torn line left by a dead writer is closed off first.

    Parameters
    ----------
    path
        The file; created if missing.
    data
        Complete lines; none to close off a torn line only.
    durable
        Also wait until the disk has them (``fsync``).

    Raises
    ------
    StoreError
        If the disk is full or the file cannot be written; what was written of ``data`` is then a torn line at most.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        message = f"{path}: {error.strerror}; free some space or mend the permissions, then run the same command again"
        raise StoreError(message) from error


def sync(path: Path) -> None:
    """Wait until the disk has what was written to a file; a missing one, or a disk that fails now, changes nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)
