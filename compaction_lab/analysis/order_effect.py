"""What it changes whether a hybrid masks before it summarises or the other way round."""

from __future__ import annotations

import pandas as pd

from compaction_lab.analysis.run_tables import UNIT, RunTables, known_sum, measured

ORDERS = ("mask_first", "summarize_first")
_OWN = {"cell", "arm", "name", "description", "strategy.order"}
_SUMS = {
    "input tokens": "input_tokens",
    "summariser input tokens": "summarizer_input_tokens",
    "summariser output tokens": "summarizer_output_tokens",
    "model calls": "model_calls",
    "tool calls": "tool_calls",
}


def hybrid_orders(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of arms that differ in ``strategy.order`` alone: (masks first, summarises first).

    Parameters
    ----------
    cells
        The *cells* table with its flattened configuration.
    """
    if "strategy.order" not in cells:
        return []
    ordered = cells[cells["strategy.order"].isin(ORDERS)]
    rest = [column for column in cells if column not in _OWN and not str(column).startswith("strategy.about")]
    alike = pd.Series([str([str(value) for value in row]) for row in ordered[rest].to_numpy(object)], ordered.index)
    pairs = set()
    for _, group in ordered.groupby(alike):
        by_order = group.set_index("strategy.order")["arm"]
        if set(ORDERS) <= set(by_order.index):
            first, second = (str(by_order[[order]].iloc[0]) for order in ORDERS)
            pairs.add((first, second))
    return sorted(pairs)


def order_effect(run: RunTables, mask_first: str, summarize_first: str) -> pd.DataFrame:
    """Compare two arms of a run over the units both finished.

    When masking comes first the summariser never sees a tool result: its input is cheaper and its summary poorer.

    Parameters
    ----------
    run
        A run's tables.
    mask_first, summarize_first
        The two arm labels, for example from :func:`hybrid_orders`.

    Returns
    -------
    DataFrame
        ``measure, mask_first, summarize_first, difference, units``: means over the shared units, the difference being
        summarise-first less mask-first. Measures nobody scored are absent.
    """
    arms = {"mask_first": mask_first, "summarize_first": summarize_first}
    turns, probes = measured(run.turns, list(_SUMS.values())), run.probes
    values: dict[str, pd.Series[float]] = {}
    sums = turns.groupby(["arm", *UNIT])[list(_SUMS.values())].agg(known_sum)
    for measure, column in _SUMS.items():
        values[measure] = sums[column]
    if not probes.empty:
        scores = probes.astype({"score": float})
        rubric = scores["kind"] == "rubric"
        values["rubric score"] = scores[rubric].groupby(["arm", *UNIT])["score"].mean()
        values["probe recall"] = scores[~rubric].groupby(["arm", *UNIT])["score"].mean()
    rows = []
    for measure, series in values.items():
        sides = {order: series[series.index.get_level_values("arm") == arm] for order, arm in arms.items()}
        paired = pd.DataFrame({order: side.droplevel("arm") for order, side in sides.items()}).dropna()
        if paired.empty:
            continue
        means = paired.mean()
        difference = float((paired["summarize_first"] - paired["mask_first"]).mean())
        rows.append(
            {
                "measure": measure,
                "mask_first": float(means["mask_first"]),
                "summarize_first": float(means["summarize_first"]),
                "difference": difference,
                "units": len(paired),
            }
        )
    return pd.DataFrame(rows, columns=["measure", *ORDERS, "difference", "units"])
