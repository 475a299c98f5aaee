"""How a comparison went: one line for each strategy, which ``run.py`` reads back for its table."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

_LINE = re.compile(r"(\S+): (\d+) cases, (\d+) acted on, (\d+) differ, (\d+) errors")


@dataclass
class Tally:
    """Counts of one strategy's cases.

    Parameters
    ----------
    strategy
        Its name.
    cases, acted
        All, and those in which the strategy changed something.
    differ, errors
        Those that the lab answers otherwise, and those in which the original raised.
    """

    strategy: str
    cases: int = 0
    acted: int = 0
    differ: int = 0
    errors: int = 0

    @property
    def failed(self) -> bool:
        """Whether anything differs or could not be compared."""
        return bool(self.differ or self.errors)

    def __str__(self) -> str:
        """Return the line."""
        return f"{self.strategy}: {self.cases} cases, {self.acted} acted on, {self.differ} differ, {self.errors} errors"

    @classmethod
    def read(cls, line: str) -> Tally | None:
        """Return the tally that a line holds, if it holds one."""
        found = _LINE.fullmatch(line)
        if not found:
            return None
        strategy, *counts = found.groups()
        return cls(strategy, *map(int, counts))


def report(tallies: list[Tally]) -> int:
    """Print every tally; return 1 when something differs or failed, or nothing was compared."""
    for tally in tallies:
        print(tally)
    sys.stdout.flush()
    return 1 if not tallies or any(tally.failed for tally in tallies) else 0
