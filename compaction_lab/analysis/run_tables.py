"""The tables an analysis reads, and which of their rows count; reading them from a folder lives in the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pandas as pd

CONVERSATION = ["model", "dataset", "transcript"]
"""What one panel of a figure shows: one conversation with one model."""

UNIT = ["model", "dataset", "seed", "transcript", "trial"]
"""What two arms must share to be a pair."""


class RunTables(Protocol):
    """A run's tables, stored or in memory (design: *Contract: tables*)."""

    @property
    def name(self) -> str:
        """The run's name."""
        ...

    @property
    def manifest(self) -> Mapping[str, object]:
        """Where the run came from: versions, hashes, tokenizer, seeds."""
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
    def cells(self) -> pd.DataFrame:
        """A row a cell, with its resolved configuration flattened."""
        ...


def finished(table: pd.DataFrame, units: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table whose unit finished: a window overflow is a result, a failure is not.

    Parameters
    ----------
    table
        Any table but *cells*.
    units
        The *units* table of the same run.
    """
    identity = ["cell", "transcript", "trial"]
    done = units.loc[units["outcome"] != "failed", identity].drop_duplicates()
    return table.merge(done, on=identity, how="inner")


def simulated_note(calls: pd.DataFrame) -> str:
    """Say in words what a stub made of a run's numbers; empty when nothing was simulated.

    A replay keeps the recorded answers, so there only the summaries can be simulated.
    """
    if "simulated" not in calls or calls.empty:
        return ""
    simulated = calls["simulated"].astype("boolean").fillna(value=False)
    if bool(simulated[calls["purpose"] == "agent"].any()):
        return "simulated (a stub model answered)"
    if bool(simulated[calls["purpose"] == "summarizer"].any()):
        return "summaries simulated (a stub wrote them)"
    return "probe answers simulated (a stub answered)" if bool(simulated.any()) else ""
