"""When each arm fired, session by session, and what each firing gave back."""

from __future__ import annotations

import pandas as pd

from compaction_lab.analysis.run_tables import UNIT, RunTables, measured


def firing_timeline(run: RunTables) -> pd.DataFrame:
    """Return every firing on the calls of its session, and a row without one for each unit that never fired.

    Parameters
    ----------
    run
        A run's tables.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, seed, transcript, trial, calls`` (model calls of the unit) ``, call`` (of the firing; a
        firing after a turn belongs to the turn's last call; missing where the arm never fired) ``, reclaimed_tokens``
        (negative when the context grew) ``, reclaimed_share`` (of the context before the firing).
    """
    calls = run.calls
    keys = ["arm", *UNIT]
    agent = calls[calls["purpose"] == "agent"]
    sizes = agent.groupby(keys, sort=True)["call"].max().astype(int).rename("calls").reset_index()
    fired = run.compactions
    fired = measured(fired[fired["edits"].fillna("[]") != "[]"], ["tokens_before", "tokens_after", "call"])
    reclaimed = fired["tokens_before"] - fired["tokens_after"]
    firings = fired[[*keys, "call"]].assign(
        reclaimed_tokens=reclaimed, reclaimed_share=reclaimed / fired["tokens_before"].where(fired["tokens_before"] > 0)
    )
    return sizes.merge(firings, on=keys, how="left").sort_values([*keys, "call"], ignore_index=True)
