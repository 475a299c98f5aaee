"""Rows as typed tables with the contract's columns, and what is derived from them; no files are read here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import StoreError
from compaction_lab.quality.findings import RULES
from compaction_lab.records import IDENTITY, TURN_COLUMNS, UNIT_COLUMNS, Cell, Row
from compaction_lab.sweep.totals import AGENT_SUMS, COST_KINDS, SUMMARIZER_SUMS

UNIT_KEY = ["cell", "transcript", "trial"]
"""The key columns that tell units apart."""

PAIR_KEY = ["model", "dataset", "seed", "transcript", "trial"]
"""What two units of different arms must share to be compared."""

_INTEGERS = frozenset({
    "seed", "trial", "turn", "call", "slot", "stop", "model_calls", "tool_calls", "input_tokens", "fresh_input_tokens",
    "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "context_tokens_before",
    "context_tokens_after", "first_changed_token", "tokens_before", "tokens_after", "strategy_tokens_before",
    "strategy_tokens_after", "summarizer_input_tokens", "summarizer_output_tokens", "age_turns", "age_tokens",
    "use_message", "use_start", "use_end", "source_message", "source_start", "source_end", "newest_message", *RULES,
})  # fmt: skip
_FLOATS = frozenset({
    "latency_s", "cost_uncached_usd", "cost_cached_usd", "cost_billed_usd", "cost_usd", "position", "evidence_visible",
    "score", "reduction_vs_baseline", "strategy_s", *(f"summarizer_cost_{kind}_usd" for kind in COST_KINDS),
})  # fmt: skip
_BOOLEANS = frozenset({"compacted", "simulated", "latency_measured", "stale"})


def text(value: JSON) -> str | None:
    """Return a value as text that every file format can hold: JSON for lists and objects, lone surrogates escaped."""
    if value is None:
        return None
    if not isinstance(value, str):
        return json.dumps(value, separators=(",", ":"))
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def column(name: str, values: Sequence[JSON]) -> pd.Series:
    """Return one typed column: nullable integers and booleans, floats with NaN, or text.

    Raises
    ------
    StoreError
        If a value is not of the column's type.
    """
    try:
        if name in _INTEGERS:
            return pd.Series(values, dtype="Int64", name=name)
        if name in _FLOATS:
            return pd.Series(values, dtype="float64", name=name)
        if name in _BOOLEANS:
            return pd.Series(values, dtype="boolean", name=name)
    except (TypeError, ValueError) as error:
        wrong = next((value for value in values if isinstance(value, str | list | dict | float)), None)
        raise StoreError(
            f"column {name}: {error}; found {wrong!r}. A row was written by another version or tool"
        ) from error
    return pd.Series([text(value) for value in values], dtype="str", name=name)


def table(rows: Sequence[Row], columns: Sequence[str], sort: Sequence[str]) -> pd.DataFrame:
    """Return rows as a table with these columns, sorted by key; equal keys keep the order they were written in."""
    frame = pd.DataFrame({name: column(name, [row.get(name) for row in rows]) for name in columns})
    return frame.sort_values([*UNIT_KEY, *sort], kind="stable", ignore_index=True)


def cost_kind(units: pd.DataFrame) -> str | None:
    """Return the first of billed, cached and uncached that every agent call behind these units has.

    A recorded bill belongs to the baseline arm alone, so it counts only where all arms have one.
    """
    finished = units[units["outcome"] != "failed"]
    called = finished[finished["model_calls"].fillna(0) > 0]
    if called.empty:
        return None
    return next((kind for kind in COST_KINDS if bool(called[f"cost_{kind}_usd"].notna().all())), None)


def with_cost(frame: pd.DataFrame, kind: str | None) -> pd.DataFrame:
    """Fill ``cost_usd`` and ``cost_kind``; both are missing when no kind of cost is known for all agent calls."""
    frame["cost_usd"] = frame[f"cost_{kind}_usd"] if kind else float("nan")
    frame["cost_kind"] = pd.Series(kind, index=frame.index, dtype="str")
    return frame


def unit_table(rows: Sequence[Row], kind: str | None) -> pd.DataFrame:
    """Return the *units* table from units rows."""
    frame = table(rows, [name for name in (*IDENTITY, *UNIT_COLUMNS) if not name.startswith("cost_kind")], [])
    frame = with_cost(frame, kind)
    frame.loc[frame["outcome"] == "failed", "cost_kind"] = None
    return frame[[*IDENTITY, *UNIT_COLUMNS]]


def turn_table(
    calls: pd.DataFrame, probes: pd.DataFrame, kind: str | None, baselines: Mapping[str, str | None]
) -> pd.DataFrame:
    """Return the *turns* table.

    Sums run over the agent's calls and are missing as soon as one call's value is; a call that ended in an error adds
    what is known of it. ``score`` is the mean of the turn's rubric rows.

    Parameters
    ----------
    calls
        The *calls* table with ``tool_calls`` beside the contract's columns.
    probes
        The *probes* table.
    kind
        The kind of cost that every arm has (:func:`cost_kind`).
    baselines
        By cell key, the label of its baseline arm.
    """
    key = [*UNIT_KEY, "turn"]
    rubric = probes[probes["kind"] == "rubric"]
    worked = calls[calls["purpose"].isin(["agent", "summarizer"])]
    names = pd.concat([worked[[*IDENTITY, "turn"]], rubric[[*IDENTITY, "turn"]]]).drop_duplicates(key)
    turns = names.set_index(key).sort_index()
    agent = calls[calls["purpose"] == "agent"]
    summarizer = calls[calls["purpose"] == "summarizer"]
    sums = _sums(agent, key, AGENT_SUMS, turns.index)
    turns["model_calls"] = sums.pop("calls")
    turns = turns.join(sums)
    turns = turns.join(
        _sums(summarizer, key, SUMMARIZER_SUMS, turns.index).drop(columns="calls").add_prefix("summarizer_")
    )
    turns["score"] = rubric.groupby(key)["score"].mean().reindex(turns.index)
    turns = with_cost(turns.reset_index(), kind)
    turns["reduction_vs_baseline"] = _reduction(turns, baselines)
    return turns[[*IDENTITY, *TURN_COLUMNS]]


def _sums(calls: pd.DataFrame, key: list[str], names: Sequence[str], index: pd.Index) -> pd.DataFrame:
    """Count calls and sum columns by turn; missing where a call's value is, zero where there was no call."""
    wanted = list(names)
    failed = calls["error"].fillna("") != ""
    values = calls[[*key, *wanted]].copy()
    if bool(failed.any()):
        values.loc[failed, wanted] = values.loc[failed, wanted].fillna(0)
    groups = values.groupby(key)
    size = groups.size()
    sums = groups[wanted].sum()
    sums = sums.mask(groups[wanted].count().lt(size, axis=0))
    return sums.assign(calls=size.astype("Int64")).reindex(index, fill_value=0)


def _reduction(turns: pd.DataFrame, baselines: Mapping[str, str | None]) -> pd.Series:
    """Return 1 - input tokens / the baseline arm's in the same model, dataset, seed, transcript, trial and turn."""
    key = [*PAIR_KEY, "turn"]
    reference = turns[["arm", *key, "input_tokens"]].rename(columns={"arm": "baseline", "input_tokens": "reference"})
    named = turns[["cell", *key]].assign(baseline=turns["cell"].map(dict(baselines)).astype("str"))
    paired = named.merge(reference, on=["baseline", *key], how="left", validate="many_to_one")
    whole = paired["reference"].astype("float64").set_axis(turns.index)
    return 1.0 - turns["input_tokens"].astype("float64") / whole.where(whole > 0)


def cell_table(cells: Iterable[Cell]) -> pd.DataFrame:
    """Return the *cells* table: identity, then the resolved configuration flattened to dotted names, by name.

    A configuration key that only repeats an identity column is left out; lists are JSON text.
    """
    ordered = sorted(cells, key=lambda cell: cell.key)
    own = ("cell", "arm", "model", "dataset", "seed")
    rows: list[Row] = []
    for cell in ordered:
        row: Row = {"cell": cell.key, "arm": cell.arm, "model": cell.model, "dataset": cell.dataset, "seed": cell.seed}
        for name, value in flattened(cell.config):
            if name not in row:
                row[name] = value
            elif row[name] != value:
                row[f"config.{name}"] = value
        rows.append(row)
    names = sorted({name for row in rows for name in row} - set(own))
    frame = {name: column(name, [row[name] for row in rows]) for name in own}
    frame |= {name: _natural(name, [row.get(name) for row in rows]) for name in names}
    return pd.DataFrame(frame)


def flattened(config: Mapping[str, JSON], prefix: str = "") -> Iterable[tuple[str, JSON]]:
    """Yield the leaves of a configuration with dotted names.

    Examples
    --------
    >>> dict(flattened({"strategy": {"kind": "truncation", "max_tokens": 4000}, "trials": 1}))
    {'strategy.kind': 'truncation', 'strategy.max_tokens': 4000, 'trials': 1}
    """
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _natural(name: str, values: Sequence[JSON]) -> pd.Series:
    """Return a column of the type its values share, else of their JSON text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pd.Series(values, dtype="boolean", name=name)
    if kinds == {int}:
        return pd.Series(values, dtype="Int64", name=name)
    if kinds in ({float}, {int, float}):
        return pd.Series(values, dtype="float64", name=name)
    mixed = kinds != {str}
    shown = [json.dumps(value) if mixed and value is not None else text(value) for value in values]
    return pd.Series(shown, dtype="str", name=name)
