"""How often each arm would have compacted, from when on, how much it got back, and where it did not fit even so."""

from __future__ import annotations

import math

import pandas as pd

from compaction_lab.analysis.prices import cell_windows
from compaction_lab.analysis.run_tables import UNIT, RunTables, measured

KEYS = ["arm", "model", "dataset"]

ALWAYS = 0.9
"""From this share of calls on (those from a unit's first firing to its end) an arm is said to fire always."""

SOON = 2
"""A firing is thrash when fewer new turns than this came since the one before; steps in sessions of a single turn."""


def firing_table(run: RunTables) -> pd.DataFrame:
    """Return what each arm did on the run's sessions, the uncompacted arms included.

    Parameters
    ----------
    run
        A run's tables.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, units, units_fired, firings, failed_attempts, calls_fired_percent, first_firing_call``
        (median over the units it fired in; a firing after a turn belongs to the turn's last call)
        ``, peak_context_tokens`` (largest request) ``, median_reclaim_tokens`` (of a firing; negative when the context
        grew) ``, thrash_percent`` (of firings that have one before them) ``, thrash_counts`` (``turns``, ``steps`` or
        both) ``, window_tokens, window_overflows`` (calls sent above the window) ``, summarizer_overflows, remark``.
        Overflows are missing where the window is unknown. A summarizer is taken to have the window of the model the run
        is priced as.
    """
    windows = cell_windows(run)
    calls = measured(run.calls, ["input_tokens", "context_tokens_after"])
    calls["window"] = calls["cell"].map(windows).astype("float64")
    agent = calls[calls["purpose"] == "agent"]
    firings = _firings(run, agent)
    asked = calls[calls["purpose"] == "summarizer"]
    rows = []
    for keys, group in agent.groupby(KEYS, sort=True):
        mine = _of(firings, keys)
        rows.append({**dict(zip(KEYS, keys, strict=True)), **_row(group, mine, _of(asked, keys))})
    return pd.DataFrame(rows)


def _of(frame: pd.DataFrame, keys: tuple[object, ...]) -> pd.DataFrame:
    chosen = pd.Series(data=True, index=frame.index)
    for name, value in zip(KEYS, keys, strict=True):
        chosen &= frame[name] == value
    return frame[chosen]


def _firings(run: RunTables, agent: pd.DataFrame) -> pd.DataFrame:
    """Return every firing and failed attempt, with the turns and steps since the unit's firing before it."""
    table = measured(run.compactions, ["tokens_before", "tokens_after"])
    table["fired"] = table["edits"].fillna("[]") != "[]"
    table["reclaim"] = table["tokens_before"] - table["tokens_after"]
    turns = agent.groupby(["arm", *UNIT])["turn"].nunique().rename("turns").reset_index()
    table = table.merge(turns, on=["arm", *UNIT], how="left")
    fired = table[table["fired"]].copy()
    groups = fired.groupby(["arm", *UNIT], sort=False)
    single = fired["turns"] <= 1
    since = groups["turn"].diff().astype("float64").where(~single, groups["call"].diff().astype("float64"))
    table.loc[fired.index, "since"] = since
    table.loc[fired.index, "counted"] = single.map({True: "steps", False: "turns"})
    return table


def _row(calls: pd.DataFrame, firings: pd.DataFrame, asked: pd.DataFrame) -> dict[str, object]:
    fired = firings[firings["fired"]]
    at = pd.MultiIndex.from_frame(fired[[*UNIT, "call"]])
    compacted = pd.Series(pd.MultiIndex.from_frame(calls[[*UNIT, "call"]]).isin(at), index=calls.index)
    first = fired.groupby(UNIT)["call"].min().astype("float64").rename("first")
    units = len(calls[UNIT].drop_duplicates())
    known = bool(calls["window"].notna().all())
    again = fired["since"].dropna() if "since" in fired else pd.Series(dtype=float)
    counted = sorted(set(fired["counted"].dropna())) if "counted" in fired else []
    row: dict[str, object] = {
        "units": units,
        "units_fired": len(fired[UNIT].drop_duplicates()),
        "firings": len(fired),
        "failed_attempts": int((firings["outcome"] != "ok").sum()),
        "calls_fired_percent": 100.0 * float(compacted.mean()),
        "first_firing_call": float(first.median()) if len(first) else math.nan,
        "peak_context_tokens": float(calls["context_tokens_after"].max()),
        "median_reclaim_tokens": float(fired["reclaim"].median()) if len(fired) else math.nan,
        "thrash_percent": 100.0 * float((again < SOON).mean()) if len(again) else math.nan,
        "thrash_counts": " and ".join(counted) or None,
        "window_tokens": float(calls["window"].min()),
        "window_overflows": float((calls["input_tokens"] > calls["window"]).sum()) if known else math.nan,
        "summarizer_overflows": float((asked["input_tokens"] > asked["window"]).sum()) if known else math.nan,
    }
    return {**row, "remark": _remark(row, calls, compacted, first)}


def _remark(row: dict[str, object], calls: pd.DataFrame, compacted: pd.Series, first: pd.Series) -> str:
    remarks = []
    if not row["firings"]:
        remarks.append("never fires on these sessions")
    else:
        begun = calls.join(first, on=UNIT)
        since = compacted[begun["call"].astype("float64") >= begun["first"]]
        if len(since) > len(first) and since.mean() >= ALWAYS:
            remarks.append(f"always fires: at {100 * since.mean():.0f} % of the calls from its first firing on")
    if row["window_overflows"] and not math.isnan(float(str(row["window_overflows"]))):
        remarks.append("does not fit the window")
    if row["summarizer_overflows"] and not math.isnan(float(str(row["summarizer_overflows"]))):
        remarks.append("a summary's input does not fit the window")
    return "; ".join(remarks)


def printed_firings(table: pd.DataFrame) -> pd.DataFrame:
    """Return the firing table with the headings a report prints."""
    return table.rename(
        columns={
            "units_fired": "units fired in",
            "failed_attempts": "failed",
            "calls_fired_percent": "calls fired %",
            "first_firing_call": "first at call",
            "peak_context_tokens": "peak context",
            "median_reclaim_tokens": "median reclaim",
            "thrash_percent": "thrash %",
            "thrash_counts": "thrash counts",
            "window_tokens": "window",
            "window_overflows": "calls over the window",
            "summarizer_overflows": "summaries over the window",
        }
    )
