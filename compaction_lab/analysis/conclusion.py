"""A run on recorded sessions in plain words: which arms are never worse, what the others cost or lose, what to set."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping

import pandas as pd

from compaction_lab.analysis.arms import arm_order, baseline_arm, short_labels
from compaction_lab.analysis.firing import firing_table
from compaction_lab.analysis.frontier import beaten_by, frontier
from compaction_lab.analysis.recorded_usage import recorded_usage
from compaction_lab.analysis.run_tables import RunTables, simulated_note
from compaction_lab.analysis.validity import PROVIDERS, refusals
from compaction_lab.configuration import configuration_files
from compaction_lab.errors import ConfigurationError

_SAME = 0.05
"""Percent of the baseline's cost below which two costs count as one."""
_SMALLER = 0.9
"""Share of the baseline's largest request below which an arm is said to save the window."""
_MORE = 1.25
"""From this ratio of recorded to counted input tokens on, something was sent that the recording does not hold."""


def conclusion(run: RunTables) -> str:
    """Return what a run of recorded sessions says, as Markdown; empty when it has no references or no known costs.

    Parameters
    ----------
    run
        A run's tables.
    """
    baseline = baseline_arm(run.cells)
    table = frontier(run, baseline)
    known = table.dropna(subset=["cost_usd", "recall"])
    if baseline is None or known.empty or not (known["arm"] == baseline).any():
        return ""
    firings = firing_table(run).set_index(["arm", "model", "dataset"])
    refused = refusals(run).set_index(["arm", "model", "dataset"])
    names = short_labels(table["arm"], baseline)
    parts = ["# What these sessions say\n"]
    places = list(known.groupby(["model", "dataset"], sort=True))
    picked: list[str] = []
    for (model, dataset), group in places:
        if len(places) > 1:
            parts.append(f"\n## {model}, {dataset}\n")
        keys = [(str(arm), str(model), str(dataset)) for arm in group["arm"]]
        acted = firings["firings"]
        idle = {key[0] for key in keys if not acted.loc[key] and key[0] != baseline}
        rows = group.assign(peak=[float(str(firings["peak_context_tokens"].loc[key])) for key in keys])
        best = _worth_choosing(rows, idle, baseline)
        parts.append(_place(rows, best, idle, names, baseline))
        parts.append(_refusals(keys, refused, names))
        picked.extend(best["arm"])
    parts.append(_configure(run, dict.fromkeys(picked)))
    parts.append(_limits(run))
    return "\n".join(parts)


def _worth_choosing(rows: pd.DataFrame, idle: Collection[str], baseline: str) -> pd.DataFrame:
    """Return the arms that no other one beats and that save money; if none does, the best at saving the window."""
    acting = rows[~rows["arm"].isin([*idle, baseline])]
    saving = acting[acting["on_frontier"] & (acting["cost_percent"] < 100 - _SAME)]
    small = acting[acting["peak"] < _SMALLER * _of(rows, baseline, "peak")]
    best = small.loc[[not beaten_by(small, row) for _, row in small.iterrows()]]
    return (saving if len(saving) else best).sort_values("cost_percent")


def _place(
    rows: pd.DataFrame, best: pd.DataFrame, idle: Collection[str], names: Mapping[str, str], baseline: str
) -> str:
    ordered = {arm: place for place, arm in enumerate(arm_order(rows["arm"], baseline))}
    rows = rows.sort_values("arm", key=lambda arms: arms.map(ordered))
    first = rows.iloc[0]
    sessions, values, using = (int(first[name]) for name in ("transcripts", "references", "recall_transcripts"))
    sent = f"${_of(rows, baseline, 'cost_usd'):.4f}, largest request {_of(rows, baseline, 'peak'):,.0f} tokens"
    lines = [
        f"{sessions} sessions; in {using} of them the agent used {values} values again after at least a few messages.",
        "In sight is the mean over these sessions of the share that a strategy would have left visible.",
        f"Cost is that of a session with its summaries, next to sending everything ({sent}).\n",
    ]
    if (best["cost_percent"] < 100 - _SAME).any():
        lines.append(
            "**Never worse** (no other arm costs less and keeps as much; what you can afford to lose decides):\n"
        )
    else:
        lines.append(
            "**Not compacting is never worse here**: every arm that acts on these sessions costs more with the prompt "
            "cache, and keeps no more. Compact only where the window demands it."
        )
        if len(best):
            lines.append(
                "\nIf it does: of the arms that make the largest request a tenth smaller or more, no other is better "
                "on both counts than these.\n"
            )
    lines += [f"- {_line(row, names)}; largest request {row['peak']:,.0f} tokens" for row in best.to_dict("records")]
    beaten = rows[~rows["arm"].isin([*best["arm"], *idle, baseline])]
    if len(beaten):
        lines.append("\nBeaten by another arm on both counts, or no cheaper than sending everything:\n")
        lines += [f"- {_line(row, names, besides=baseline)}" for row in beaten.to_dict("records")]
    if idle:
        listed = ", ".join(names[arm] for arm in rows["arm"] if arm in idle)
        lines.append(f"\nNever fires on these sessions, so it is the same as not compacting: {listed}.")
    return "\n".join(lines) + "\n"


def _refusals(keys: list[tuple[str, str, str]], refused: pd.DataFrame, names: Mapping[str, str]) -> str:
    lines = []
    for provider in PROVIDERS:
        shares = {key[0]: float(str(refused.loc[key, provider])) for key in keys if key in refused.index}
        found = [f"{names[arm]} in {share:.0f} % of calls" for arm, share in shares.items() if share > 0]
        if found:
            lines.append(f"- {provider}: {', '.join(found)}")
    return "\n".join(["Would be refused by the provider, sent as they stand:\n", *lines, ""]) if lines else ""


def _of(rows: pd.DataFrame, arm: str, column: str) -> float:
    return float(rows.loc[rows["arm"] == arm, column].iloc[0])


def _line(row: Mapping[object, object], names: Mapping[str, str], *, besides: str = "") -> str:
    def number(name: str) -> float:
        return float(str(row[name]))

    words = f"{names[str(row['arm'])]}: {_percent(number('cost_percent'))} cost"
    if not math.isnan(number("cost_low")):
        words += f" ({_percent(number('cost_low'))} to {_percent(number('cost_high'))})"
    words += f", {number('recall'):.2f} of the values still in sight"
    if not math.isnan(number("recall_low")):
        words += f" ({number('recall_low'):.2f} to {number('recall_high'):.2f})"
    other = str(row["beaten_by"])
    return f"{words}; {names[other]} is better on both" if besides and other not in ("", besides) else words


def _percent(share: float) -> str:
    return f"{share - 100:+.0f} %".replace("-", "\N{MINUS SIGN}")


def _configure(run: RunTables, arms: Iterable[str]) -> str:
    """Say how each arm is set up where its preset comes from; plain strategies are the lab's own."""
    files = configuration_files()
    parts = []
    for arm in arms:
        config = next(cell.config for cell in run.cell_by_key.values() if cell.arm == arm)
        strategy = config.get("strategy")
        preset = str(strategy.get("preset")) if isinstance(strategy, Mapping) else ""
        try:
            about = files.read("strategy", preset).get("about")
        except ConfigurationError:
            continue
        text = about.get("configure") if isinstance(about, Mapping) else None
        if not isinstance(text, str):
            text = f"lab.compact(messages, lab.strategy({json.dumps(preset)}, ...))  # import compaction_lab as lab"
        changed = arm.removeprefix(preset).strip()
        values = f" (here: {changed})" if changed else ""
        parts.append(f"**{preset}**{values}\n\n```python\n{text.rstrip()}\n```\n")
    return "\n".join(["## How to set it up\n", *parts]) if parts else ""


def _left_out(run: RunTables) -> str:
    """Say when providers counted much more than the messages hold."""
    used = recorded_usage(run)
    if used.empty:
        return ""
    stated, counted = (float(used[f"{kind}_input_tokens"].sum()) for kind in ("recorded", "simulated"))
    if stated <= _MORE * counted:
        return ""
    return (
        f"**The recordings leave something out**: their providers counted {stated:,.0f} input tokens where what is "
        f"recorded comes to {counted:,.0f}. What is missing (mostly instructions and tool definitions) is sent with "
        "every call: real costs are higher, and the arms closer together, than stated here.\n\n"
    )


def _limits(run: RunTables) -> str:
    note = simulated_note(run.simulated)
    simulated = f" In this run: {note}." if note else ""
    return (
        "\n## How to read this\n\n"
        f"{_left_out(run)}"
        "The recorded answers are kept: costs are what the recorded calls would have cost, and a value out of sight is "
        "one the agent would have had to ask for again, guess, or do without. A value in sight is an upper bound: a "
        "model may overlook it. Intervals are 95 %, resampled by session, and absent under six sessions; the arms were "
        "compared on the sessions that chose the winner, so confirm it on sessions it has not seen."
        f"{simulated}\n"
    )
