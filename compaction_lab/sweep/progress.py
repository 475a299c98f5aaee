"""Progress as a person reads it: one line rewritten on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from compaction_lab.conversation.printable import printable

_TERMINAL_EVERY_S = 0.1
_PLAIN_EVERY_S = 10.0
_PLAIN_SHARES = 20


@dataclass(slots=True)
class Progress:
    """Counts finished units and says so on ``stream``.

    Parameters
    ----------
    owed
        Units to do.
    stream
        Where to write, usually standard error.
    quiet
        Write nothing but failures.
    verbose
        Write a line for every unit.
    clock
        Seconds; only differences matter.
    noun
        What is counted.
    """

    owed: int
    stream: TextIO
    quiet: bool = False
    verbose: bool = False
    clock: Callable[[], float] = time.monotonic
    noun: str = "units"
    finished: int = 0
    failed: int = 0
    _started: float = field(init=False)
    _written: float = field(init=False)
    _written_share: int = 0
    _line_open: bool = False

    def __post_init__(self) -> None:
        """Start the clock."""
        self._started = self._written = self.clock()

    def unit(self, name: str, *, error: str = "") -> None:
        """Count one unit; a failed one is told at once."""
        self.finished += 1
        self.failed += bool(error)
        if error:
            self.say(f"failed: {name}: {error.splitlines()[0]}", always=True)
        elif self.verbose:
            self.say(f"done: {name}")
        if not self.quiet:
            self._tell()

    def say(self, text: str, *, always: bool = False) -> None:
        """Write a line of its own."""
        if self.quiet and not always:
            return
        self._close_line()
        print(printable(text), file=self.stream, flush=True)

    def close(self) -> None:
        """End the line that was being rewritten, with the final counts in it."""
        if self._line_open:
            self._rewrite()
        self._close_line()

    def _tell(self) -> None:
        now = self.clock()
        if self.stream.isatty():
            if now - self._written >= _TERMINAL_EVERY_S or self.finished == self.owed:
                self._written = now
                self._rewrite()
            return
        share = self.finished * _PLAIN_SHARES // max(self.owed, 1)
        waited_s = now - self._written
        last = self.finished == self.owed and now - self._started >= 1
        if last or (share > self._written_share and waited_s >= 1) or waited_s >= _PLAIN_EVERY_S:
            self._written, self._written_share = now, share
            print(self._text(), file=self.stream, flush=True)

    def _text(self) -> str:
        elapsed_s = max(self.clock() - self._started, 1e-9)
        rate = self.finished / elapsed_s
        left_s = (self.owed - self.finished) / rate if rate else 0.0
        parts = [f"{self.finished}/{self.owed} {self.noun}", f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min"]
        parts.append(f"{duration(left_s)} left" if self.finished < self.owed else f"in {duration(elapsed_s)}")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return " · ".join(parts)

    def _rewrite(self) -> None:
        self.stream.write(f"\r\x1b[K{self._text()}")
        self.stream.flush()
        self._line_open = True

    def _close_line(self) -> None:
        if self._line_open:
            self.stream.write("\n")
            self.stream.flush()
            self._line_open = False


def duration(seconds: float) -> str:
    """Write a time span briefly.

    >>> duration(4.2), duration(75), duration(7300)
    ('4 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
