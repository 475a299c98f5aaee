"""One visual language for every figure: the house style file, what overrides it, and how each arm looks everywhere."""

from __future__ import annotations

import hashlib
import os
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import matplotlib as mpl
import pandas as pd

from compaction_lab.analysis.arms import FAMILIES, arm_order, baseline_arm, family, short_labels
from compaction_lab.analysis.run_tables import RunTables, simulated_note
from compaction_lab.errors import ConfigurationError, FigureError

HOUSE_STYLE = Path(__file__).with_name("house.mplstyle")
STYLE_VARIABLE = "COMPACTION_LAB_STYLE"
"""Environment variable naming the user's matplotlib style file."""
STYLE_FILE = "compaction-lab.mplstyle"
"""The user's matplotlib style file when it lies in the working directory."""

COLUMN_IN = 3.5
"""Width of one printed column, in inches."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
_DASHES: tuple[tuple[float, ...], ...] = ((), (4, 1.4), (1, 1.2), (6, 1.2, 1, 1.2), (3, 1, 1, 1, 1, 1))


def style_files() -> list[Path]:
    """Return the style files in force, later ones winning: the house's, then the user's if there is one.

    Raises
    ------
    ConfigurationError
        When the environment variable names a file that does not exist.
    """
    named = os.environ.get(STYLE_VARIABLE)
    if named:
        if not Path(named).is_file():
            message = f"{STYLE_VARIABLE}={named}: no such file. Expected a matplotlib style file; correct or unset it."
            raise ConfigurationError(message)
        return [HOUSE_STYLE, Path(named)]
    local = Path(STYLE_FILE)
    return [HOUSE_STYLE, local] if local.is_file() else [HOUSE_STYLE]


def style_hashes() -> dict[str, str]:
    """Return the style files in force by name, with the sha256 of their bytes."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in style_files()}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw and save under the house style, whatever the user's matplotlib settings are; restored on leaving."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for path in style_files():
            mpl.rcParams.update(mpl.rc_params_from_file(path, use_default_template=False))
        yield


class LineStyle(TypedDict):
    """Keyword arguments of ``Axes.plot`` that make an arm itself."""

    color: str
    marker: str
    dashes: tuple[float, ...]


@dataclass(frozen=True)
class Look:
    """How the arms of one run look in all of its figures, and the facts every figure carries in its margin.

    Parameters
    ----------
    arms
        All arms of the run in the order shown; a figure that shows a few of them keeps the colours of all.
    baseline
        The uncompacted arm, drawn in the text colour; ``None`` when the run has none.
    simulated
        What a stub made of the numbers, in words; empty when nothing was simulated.
    note
        A further fact for the margin, such as the tokenizer.
    width_in
        Width of the figure in inches.
    """

    arms: tuple[str, ...]
    baseline: str | None = "none"
    simulated: str = ""
    note: str = ""
    width_in: float = COLUMN_IN

    @classmethod
    def of(cls, run: RunTables) -> Look:
        """Return the look of a run's figures."""
        baseline = baseline_arm(run.cells)
        tokenizer = run.manifest.get("tokenizer")
        note = f"tokens: {tokenizer}" if isinstance(tokenizer, str) else ""
        arms = tuple(arm_order(run.cells["arm"], baseline))
        return cls(arms, baseline, simulated=simulated_note(run.simulated), note=note)

    @classmethod
    def of_arms(cls, arms: Iterable[str]) -> Look:
        """Return a look for a bare frame: the arm called ``none``, if there, is the baseline."""
        distinct = tuple(arm_order(arms))
        return cls(distinct, "none" if "none" in distinct else None)

    @property
    def margin(self) -> str:
        """The line at the foot of a figure."""
        return " · ".join(part for part in (self.simulated, self.note) if part)

    def label(self, arm: str, width: int | None = None) -> str:
        """Return the arm's name in print, broken into lines of about ``width`` characters."""
        name = short_labels(self.arms, self.baseline).get(arm, arm)
        return name if width is None else wrapped(name, width)

    def _slot(self, arm: str) -> int:
        """Place of an arm among the styles: known families have a fixed one, others take the first that is free."""
        taken: dict[str, int] = {}
        compacted = [name for name in self.arms if name != self.baseline]
        for name in compacted:
            if family(name) in FAMILIES:
                preferred = FAMILIES.index(family(name)) - 1
                if preferred >= 0 and preferred not in taken.values():
                    taken[name] = preferred
        free = (slot for slot in range(len(self.arms) + len(FAMILIES)) if slot not in set(taken.values()))
        for name in compacted:
            if name not in taken:
                taken[name] = next(free)
        if arm not in taken:
            known = ", ".join(self.arms)
            message = f"Figure style: arm {arm!r} is not among the arms of this look ({known}). Build it with Look.of."
            raise FigureError(message)
        return taken[arm]

    def color(self, arm: str) -> str:
        """Return the arm's colour: the style file's cycle, or the text colour for the baseline."""
        if arm == self.baseline:
            return str(mpl.rcParams["text.color"])
        colors = [str(color) for color in mpl.rcParams["axes.prop_cycle"].by_key()["color"]]
        return colors[self._slot(arm) % len(colors)]

    def line(self, arm: str) -> LineStyle:
        """Return colour, marker and dashes, which tell arms apart in grey too."""
        if arm == self.baseline:
            return {"color": self.color(arm), "marker": "None", "dashes": ()}
        slot = self._slot(arm)
        dashes = _DASHES[(slot + slot // len(_MARKERS)) % len(_DASHES)]
        return {"color": self.color(arm), "marker": _MARKERS[slot % len(_MARKERS)], "dashes": dashes}


def wrapped(text: str, width: int) -> str:
    """Break a label into lines, at spaces first, inside long names after ``=``, else after ``_`` or ``/``.

    Examples
    --------
    >>> print(wrapped("hybrid order=summarize_first", 16))
    hybrid
    order=
    summarize_first
    """
    lines: list[str] = []
    for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
        rest = line
        while len(rest) > width:
            cut = (rest.rfind("=", 0, width) + 1) or max(rest.rfind(mark, 0, width) + 1 for mark in "_/")
            if cut <= 0:
                break
            lines.append(rest[:cut])
            rest = rest[cut:]
        lines.append(rest)
    return "\n".join(lines)


def require(frame: pd.DataFrame, figure: str, columns: Iterable[str], rows: int = 2) -> pd.DataFrame:
    """Return the rows of a frame that a figure can draw, or say why there is nothing to draw.

    Raises
    ------
    FigureError
        When a column is absent, or fewer than ``rows`` rows have all of them.
    """
    columns = list(columns)
    absent = [column for column in columns if column not in frame]
    if absent:
        message = (
            f"Figure {figure!r}: the frame has no column {', '.join(absent)} (it has {', '.join(map(str, frame))}). "
            "Pass what the analysis function of the same name returns."
        )
        raise FigureError(message)
    drawable = frame.dropna(subset=columns)
    if len(drawable) < rows:
        message = (
            f"Figure {figure!r}: {len(drawable)} of {len(frame)} rows have values in {', '.join(columns)}, "
            f"at least {rows} are needed. Check that the run has finished units and what was measured in them."
        )
        raise FigureError(message)
    return drawable
