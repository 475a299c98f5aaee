"""What a study is made of: lines that put a published value beside ours, and the verdict on each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compaction_lab.errors import CompactionLabError
from compaction_lab.statistics.estimators import Interval

PASS, EXPLAINED, DIFFERS, NEW, NO_BAR = "PASS", "explained", "DIFFERS", "new", "no bar"
VERDICTS = {
    PASS: "within the bar",
    EXPLAINED: "outside the bar, and the note says why",
    DIFFERS: "outside the bar, and nobody knows why yet",
    NEW: "nothing comparable is published",
    NO_BAR: "a distance is reported, no bar was set",
}
"""What the verdicts mean."""

RECIPES = "datasets/README.md"


class DataAbsent(CompactionLabError):
    """The public data of a study is not where it was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One quantity of a study.

    Parameters
    ----------
    target
        Which claim it belongs to (R1, R2, ...).
    quantity, unit
        What it is, and in what.
    published, ours
        The two values; ``None`` where there is none.
    low, high
        Our 95 % interval.
    n, clusters
        How many observations ours comes from, and in how many independent clusters.
    bar
        The largest difference that passes, in ``unit``; ``None`` without one.
    note
        Why a difference is there, or what else a reader must know.
    verdict
        One of :data:`VERDICTS`.
    digits
        Decimals in print; the csv keeps six significant digits.
    """

    target: str
    quantity: str
    unit: str
    published: float | None
    ours: float | None
    verdict: str
    low: float | None = None
    high: float | None = None
    n: int | None = None
    clusters: int | None = None
    bar: float | None = None
    note: str = ""
    digits: int = 3


@dataclass(frozen=True, slots=True)
class Study:
    """A recomputed study.

    Parameters
    ----------
    name, title
        Its name on the command line, and in words.
    source
        Where the published values come from.
    method
        How ours were computed: estimators, what was resampled.
    lines
        The table.
    findings
        What a reader should take away, a sentence or two each.
    """

    name: str
    title: str
    source: str
    method: str
    lines: Sequence[Line]
    findings: Sequence[str] = field(default=())

    @property
    def counts(self) -> Counter[str]:
        """How many lines have each verdict."""
        return Counter(line.verdict for line in self.lines)


@dataclass(frozen=True, slots=True)
class Measured:
    """A value of ours with what it stands on."""

    value: float
    interval: Interval | None = None
    n: int | None = None
    clusters: int | None = None


def line(
    target: str,
    quantity: str,
    unit: str,
    published: float | None,
    ours: Measured | float | None,
    *,
    bar: float | None = None,
    explained: str = "",
    note: str = "",
    digits: int = 3,
) -> Line:
    """Return a line with its verdict.

    Parameters
    ----------
    target, quantity, unit, published, digits
        As in :class:`Line`.
    ours
        Our value, alone or with its interval and what it stands on.
    bar
        The largest difference that passes.
    explained
        Used, and the verdict ``explained``, only when the difference is larger than the bar.
    note
        Always used.

    Examples
    --------
    >>> line("R1", "cost", "$", 0.61, 0.6098, bar=0.005).verdict
    'PASS'
    >>> line("R3", "saving", "%", -7, -10.3, bar=0.5, explained="other instances").verdict
    'explained'
    """
    measured = Measured(ours) if isinstance(ours, float | int) else ours
    value = None if measured is None or not math.isfinite(measured.value) else measured.value
    interval = None if measured is None else measured.interval
    if published is None:
        verdict = EXPLAINED if explained else NEW
    elif bar is None:
        verdict = EXPLAINED if explained else NO_BAR
    elif value is not None and abs(value - published) <= bar * (1 + 1e-9):
        verdict = PASS
    else:
        verdict = EXPLAINED if explained else DIFFERS
    notes = [explained] if verdict == EXPLAINED else []
    return Line(
        target=target,
        quantity=quantity,
        unit=unit,
        published=published,
        ours=value,
        verdict=verdict,
        low=None if interval is None else _known(interval.low),
        high=None if interval is None else _known(interval.high),
        n=None if measured is None else measured.n,
        clusters=None if measured is None else measured.clusters,
        bar=bar,
        note=" ".join(dict.fromkeys([*notes, note] if note else notes)),
        digits=digits,
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def files(data: Path, study: str, folder: str, names: Iterable[str]) -> list[Path]:
    """Return the files of a study, in ``data/folder`` or in ``data`` itself.

    Raises
    ------
    DataAbsent
        One of them is in neither.
    """
    wanted = list(names)
    places = (data / folder, data)
    missing: list[str] = []
    for place in places:
        missing = [name for name in wanted if not (place / name).is_file()]
        if not missing:
            return [place / name for name in wanted]
        if place.is_dir() and len(missing) < len(wanted):
            break
    raise DataAbsent(
        f"study {study}: data absent: no {', '.join(missing)} in {place if len(missing) < len(wanted) else places[0]}. "
        f"{RECIPES} says where to get {'it' if len(missing) == 1 else 'them'}; --data names the folder that holds "
        f"{folder}/"
    )
