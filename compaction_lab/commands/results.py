"""The table that ``run`` and ``show`` print: one line an arm, from the stored rows alone."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable
from typing import TYPE_CHECKING, cast

from compaction_lab.commands.text import WIDTH, fraction, money, text_table, whole
from compaction_lab.conversation.messages import JSON

if TYPE_CHECKING:
    import pandas as pd

    from compaction_lab.sweep.loading import Run

_UNIT = ["model", "dataset", "seed", "transcript", "trial"]
_PLACE = ["model", "dataset"]


def arm_table(run: Run) -> pd.DataFrame:
    """Return one row an arm, model and dataset: means over the units that finished; what is unknown is missing.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, units, input_tokens, saved, summarizer_tokens, cost_usd, score``: ``units`` finished,
        ``input_tokens`` of the agent's calls a unit, ``saved`` the share of the baseline arm's input tokens that the
        same units did without once all that the summariser read and wrote is added, ``cost_usd`` a unit, summaries
        included.
    """
    import pandas as pd

    units = run.units[run.units["outcome"] != "failed"].copy()
    numeric = ["input_tokens", "summarizer_input_tokens", "summarizer_output_tokens", "score"]
    units[numeric] = units[numeric].apply(pd.to_numeric)
    units["summarizer_tokens"] = units["summarizer_input_tokens"] + units["summarizer_output_tokens"]
    units["all_tokens"] = units["input_tokens"] + units["summarizer_tokens"]
    kind = run.cost_kind
    summaries = run.bills.loc[units.index, f"summarizer_cost_{kind}_usd"] if kind else math.nan
    units["unit_cost_usd"] = pd.to_numeric(units["cost_usd"]) + summaries
    units["baseline_arm"] = units["cell"].map(run.baselines)
    uncompacted = units[units["arm"] == units["baseline_arm"]][[*_UNIT, "all_tokens"]]
    units = units.merge(uncompacted.rename(columns={"all_tokens": "baseline_tokens"}), on=_UNIT, how="left")
    rows = []
    for (arm, model, dataset), part in units.groupby(["arm", *_PLACE], sort=False):
        paired = part.dropna(subset=["baseline_tokens"])
        is_baseline = bool((part["arm"] == part["baseline_arm"]).any())
        saved = (
            None if is_baseline or paired.empty else 1 - paired["all_tokens"].sum() / paired["baseline_tokens"].sum()
        )
        rows.append(
            {
                "arm": arm,
                "model": model,
                "dataset": dataset,
                "units": len(part),
                "input_tokens": part["input_tokens"].mean(),
                "saved": saved,
                "summarizer_tokens": part["summarizer_tokens"].mean(),
                "cost_usd": part["unit_cost_usd"].mean(skipna=False),
                "score": part["score"].mean(),
            }
        )
    order = {cell.arm: place for place, cell in reversed(list(enumerate(run.cell_by_key.values())))}
    columns = ["arm", *_PLACE, "units", "input_tokens", "saved", "summarizer_tokens", "cost_usd", "score"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values([*_PLACE, "arm"], key=lambda column: column.map(lambda v: order.get(v, v)))


def results_text(run: Run) -> str:
    """Return the arm table as text of at most 80 columns, a block for each model and dataset."""
    table = arm_table(run)
    if table.empty:
        return "no unit has finished yet"
    blocks = []
    several = len(table.groupby(_PLACE)) > 1
    for (model, dataset), part in table.groupby(_PLACE, sort=False):
        rows = [_row(row) for row in part.to_dict("records")]
        title = f"{dataset} · {model}\n" if several else ""
        head = ["arm", "units", "input tok", "saved", "summary tok", "USD", "score"]
        blocks.append(title + text_table(head, rows))
    return "\n\n".join([*blocks, _legend(run)])


def results_json(run: Run) -> list[JSON]:
    """Return the arm table as JSON rows, missing values null."""
    table = arm_table(run).astype(object)
    rows = table.where(table.notna(), None).to_dict("records")
    return [cast("JSON", {str(key): _plain(value) for key, value in row.items()}) for row in rows]


def _row(row: dict[Hashable, object]) -> list[str]:
    saved = row["saved"]
    percent = f"{fraction(saved * 100, 1)} %" if isinstance(saved, float) and saved == saved else "-"  # noqa: PLR0124 - NaN
    return [
        str(row["arm"]),
        whole(row["units"]),
        whole(row["input_tokens"]),
        percent,
        whole(row["summarizer_tokens"]),
        money(row["cost_usd"]),
        fraction(row["score"]),
    ]


def _legend(run: Run) -> str:
    sentences = [
        "Means a unit. saved: of the baseline's input tokens on the same units, all summary tokens counted.",
        f"USD: {run.cost_kind or 'unknown'} cost, summaries included.",
    ]
    if run.simulated:
        sentences.append(f"Simulated by a stub: {', '.join(sorted(run.simulated))}.")
    return f"{textwrap.fill(' '.join(sentences), WIDTH)}\nUnits: {run.coverage}."


def _plain(value: object) -> object:
    item = getattr(value, "item", None)
    return item() if callable(item) else value
