"""The tables an analysis reads, as ``load_run`` and ``replay`` return them; nothing is read from disk here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import pandas as pd

from compaction_lab.conversation.messages import JSON
from compaction_lab.records import Cell, Row

CONVERSATION = ["model", "dataset", "transcript"]
"""What one panel of a figure shows: one conversation with one model."""

UNIT = ["model", "dataset", "seed", "transcript", "trial"]
"""What two arms must share to be a pair."""


class Coverage(Protocol):
    """How many units a number stands on."""

    @property
    def planned(self) -> int:
        """Units that were to run."""
        ...

    @property
    def ran(self) -> int:
        """Units that finished; those that overflowed the window are among them."""
        ...

    @property
    def failed(self) -> int:
        """Units that ended in an error."""
        ...

    @property
    def missing(self) -> int:
        """Units that have not been tried."""
        ...

    @property
    def overflowed(self) -> int:
        """Units whose context did not fit the window."""
        ...


class RunTables(Protocol):
    """A run's tables, stored or in memory. A failed unit has a row in *units* and none elsewhere."""

    @property
    def name(self) -> str:
        """The run's name."""
        ...

    @property
    def manifest(self) -> Mapping[str, JSON]:
        """Where the run came from: versions, hashes, tokenizer, seeds."""
        ...

    @property
    def simulated(self) -> Collection[str]:
        """The purposes of the calls that a stub answered."""
        ...

    @property
    def coverage_by_arm(self) -> Mapping[str, Coverage]:
        """Units planned, ran, failed and missing by arm."""
        ...

    @property
    def calls(self) -> pd.DataFrame:
        """A row a model call."""
        ...

    @property
    def turns(self) -> pd.DataFrame:
        """A row a turn of a unit."""
        ...

    @property
    def probes(self) -> pd.DataFrame:
        """A row a probe answer or rubric judgment."""
        ...

    @property
    def units(self) -> pd.DataFrame:
        """A row a unit of work, with its outcome."""
        ...

    @property
    def compactions(self) -> pd.DataFrame:
        """A row a firing or failed attempt."""
        ...

    @property
    def probe_details(self) -> pd.DataFrame:
        """*probes* with the places of references and whether an answer is stale."""
        ...

    @property
    def validity(self) -> pd.DataFrame:
        """A row an agent call: how many messages sent break each rule."""
        ...

    @property
    def cell_by_key(self) -> Mapping[str, Cell]:
        """The cells with their resolved configurations."""
        ...

    @property
    def messages(self) -> Mapping[str, Row]:
        """Every message and inserted text by its sha256."""
        ...

    def log(self, unit: tuple[str, str, int]) -> list[str]:
        """Return the hashes of a unit's messages in order."""
        ...

    @property
    def cells(self) -> pd.DataFrame:
        """A row a cell, with its resolved configuration flattened."""
        ...


def measured(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return a table with these columns as plain floats, what is unknown being NaN."""
    return table.astype(dict.fromkeys(columns, "float64"))


def known_sum(values: pd.Series[float]) -> float:
    """Return a sum that is missing as soon as one value is."""
    return float(values.sum(skipna=False))


def known_mean(values: pd.Series[float]) -> float:
    """Return a mean that is missing as soon as one value is."""
    return float(values.mean(skipna=False))


def simulated_note(simulated: Collection[str]) -> str:
    """Say in words what a stub made of a run's numbers; empty when nothing was simulated.

    A replay keeps the recorded answers, so there only summaries and probe answers can be simulated.

    Parameters
    ----------
    simulated
        The purposes of the calls that a stub answered.

    Examples
    --------
    >>> simulated_note({"summarizer"})
    'summaries simulated (a stub wrote them)'
    """
    if "agent" in simulated:
        return "simulated (a stub model answered)"
    notes = {
        "summarizer": "summaries simulated (a stub wrote them)",
        "probe": "probe answers simulated (a stub answered)",
        "expectation": "probe recall expected by a curve fitted on one public data set (reader=calibrated)",
    }
    told = [note for purpose, note in notes.items() if purpose in simulated]
    # Summaries are in every number, simulated answers in the probes alone: the first says enough of the two.
    return "; ".join(note for note in told if note != notes["probe"] or len(told) == 1 or "summarizer" not in simulated)
