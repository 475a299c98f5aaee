"""The size of every request of one session, arm by arm, with the firings."""

from __future__ import annotations

import pandas as pd

from compaction_lab.analysis.run_tables import UNIT, RunTables, measured


def context_over_calls(run: RunTables, transcript: str | None = None) -> pd.DataFrame:
    """Return what each arm sent call by call in one session: by default the one with the most calls.

    Only meaningful for a replay, where every arm makes the recorded calls.

    Parameters
    ----------
    run
        A run's tables; of several models, datasets, seeds and trials the first is taken.
    transcript
        Which session.

    Returns
    -------
    DataFrame
        ``arm, transcript, call, context_tokens`` (as sent) ``, history_tokens`` (stored, before the call's strategies)
        ``, whole_tokens`` (the largest history of any arm at that call) ``, fired``.
    """
    calls = run.calls
    agent = measured(calls[calls["purpose"] == "agent"], ["context_tokens_after", "context_tokens_before"])
    if transcript is None and len(agent):
        sizes = agent.groupby("transcript")["call"].max()
        transcript = str(sizes.index[int(sizes.to_numpy().argmax())])
    mine = agent[agent["transcript"] == transcript]
    for name in UNIT:
        if name != "transcript" and len(mine):
            mine = mine[mine[name] == min(mine[name].unique())]
    fired = run.compactions
    fired = fired[fired["edits"].fillna("[]") != "[]"]
    at = pd.MultiIndex.from_frame(fired[["cell", "transcript", "trial", "call"]])
    table = pd.DataFrame(
        {
            "arm": mine["arm"],
            "transcript": mine["transcript"],
            "call": mine["call"].astype(int),
            "context_tokens": mine["context_tokens_after"],
            "history_tokens": mine["context_tokens_before"],
            "whole_tokens": mine.groupby("call")["context_tokens_before"].transform("max"),
            "fired": pd.MultiIndex.from_frame(mine[["cell", "transcript", "trial", "call"]]).isin(at),
        }
    )
    return table.sort_values(["arm", "call"], ignore_index=True)
