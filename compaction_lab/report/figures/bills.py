"""What a session costs by arm: the bill by what it was paid for, and with and without the provider's prompt cache."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from compaction_lab.report.figures.layout import LABEL_WIDTH, canvas, dollars, middles, row_edges_in, signed, titled
from compaction_lab.report.style import Look, figure_style, require

_PARTS = {
    "fresh_input_usd": ("fresh input", 1.0, ""),
    "cache_read_usd": ("read from the cache", 0.35, ""),
    "cache_write_usd": ("written to the cache", 0.65, "...."),
    "output_usd": ("output", 0.0, ""),
    "summaries_usd": ("summaries (in + out)", 0.0, "//////"),
}
_BOTH = ("uncached_usd", "cached_usd")
_WORDS_PT = 6.5


def cost_stack(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw the mean bill of a session by arm, stacked by what it was paid for.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.cost_buckets` returns; a panel for each model and dataset.
    look
        Colours and margin of the run's figures; derived from the frame when absent.

    Raises
    ------
    FigureError
        When fewer than two arms have a known bill.
    """
    drawable = require(frame, "cost_stack", ["arm", "model", "dataset", *_PARTS, "total_usd"])
    look = look or Look.of_arms(drawable["arm"])
    arms = [arm for arm in look.arms if arm in set(drawable["arm"])]
    groups = list(drawable.groupby(["model", "dataset"], sort=True))
    used = [name for name in _PARTS if (drawable[name] > 0).any()]
    with figure_style():
        names = [look.label(arm, LABEL_WIDTH) for arm in arms]
        edges = row_edges_in(names)
        figure, all_axes = canvas(len(groups), max(0.9, edges[-1]), look)
        for axes, ((model, dataset), group) in zip(all_axes, groups, strict=True):
            axes.set_title(f"{model}, {dataset}" if len(groups) > 1 else "")
            bills = _bills(group, [*_PARTS, "total_usd"])
            base = bills.get(look.baseline or "", {}).get("total_usd", math.nan)
            for place, arm in zip(middles(edges), arms, strict=True):
                left, color = 0.0, look.color(arm)
                for name in used:
                    _, alpha, hatch = _PARTS[name]
                    value = bills[arm][name] if arm in bills else math.nan
                    face = (*to_rgb(color), alpha) if alpha else "white"
                    axes.barh(place, value, 0.13, left=left, fc=face, ec=color, hatch=hatch, linewidth=0.5)
                    left += value
                change = "" if arm == look.baseline or math.isnan(base) else f"  {signed(100 * (left / base - 1))}"
                words = f"{dollars(left)}{change}"
                axes.annotate(words, (left, place), (3, 0), textcoords="offset points", va="center", fontsize=_WORDS_PT)
            axes.set_yticks(middles(edges), names, linespacing=1.0)
            axes.grid(visible=False, axis="y")
            axes.grid(visible=True, axis="x")
            axes.tick_params(axis="y", length=0)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
        all_axes[0].set_ylim(edges[-1], 0.0)
        all_axes[0].set_xlim(0.0, float(drawable["total_usd"].max()) * 1.32)
        all_axes[-1].set_xlabel("USD per session")
        ink = to_rgb(look.color(look.baseline) if look.baseline else "black")
        key = [
            Patch(facecolor=(*ink, alpha) if alpha else "white", edgecolor=ink, hatch=hatch, linewidth=0.5, label=label)
            for label, alpha, hatch in (_PARTS[name] for name in used)
        ]
        means = drawable.groupby("arm")["total_usd"].mean()
        titled(figure, f"Cost of a session: {_cheapest(means, look)}", look, key)
    return figure


def cost_with_and_without_cache(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw the mean bill of a session by arm twice: as if nothing were cached, and with the simulated prompt cache.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.cost_with_and_without_cache` returns.
    look
        Colours and margin of the run's figures; derived from the frame when absent.

    Raises
    ------
    FigureError
        When fewer than two arms have both bills.
    """
    columns = ["arm", "model", "dataset", "uncached_usd", "cached_usd"]
    drawable = require(frame, "cost_with_and_without_cache", columns)
    look = look or Look.of_arms(drawable["arm"])
    arms = [arm for arm in look.arms if arm in set(drawable["arm"])]
    groups = list(drawable.groupby(["model", "dataset"], sort=True))
    with figure_style():
        names = [look.label(arm, LABEL_WIDTH) for arm in arms]
        edges = row_edges_in(names)
        figure, all_axes = canvas(len(groups), max(0.9, edges[-1]), look)
        for axes, ((model, dataset), group) in zip(all_axes, groups, strict=True):
            axes.set_title(f"{model}, {dataset}" if len(groups) > 1 else "")
            bills = _bills(group, columns[3:])
            base = bills.get(look.baseline or "", {})
            for name, style in (("uncached_usd", ":"), ("cached_usd", "-")):
                if base:
                    axes.axvline(base[name], linestyle=style, linewidth=0.6, color="0.5")
            for place, arm in zip(middles(edges), arms, strict=True):
                if arm not in bills:
                    continue
                bare, cached = bills[arm]["uncached_usd"], bills[arm]["cached_usd"]
                color = look.color(arm)
                axes.plot([cached, bare], [place, place], color=color, linewidth=1.0)
                axes.plot([bare], [place], "o", markersize=4.5, markerfacecolor="white", color=color)
                axes.plot([cached], [place], "o", markersize=4.5, color=color)
                words = " | ".join(_change(bills[arm][name], base.get(name, math.nan)) for name in columns[3:])
                axes.text(1.02, place, words, transform=axes.get_yaxis_transform(), va="center", fontsize=_WORDS_PT)
            axes.set_yticks(middles(edges), names, linespacing=1.0)
            axes.grid(visible=False, axis="y")
            axes.grid(visible=True, axis="x")
            axes.tick_params(axis="y", length=0)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
        all_axes[0].set_ylim(edges[-1], 0.0)
        all_axes[0].set_xlim(left=0.0)
        all_axes[-1].set_xlabel("USD per session (right: change without | with the cache)")
        ink = look.color(look.baseline) if look.baseline else "black"
        key = [
            Line2D([], [], color=ink, marker="o", linestyle=":", markerfacecolor="white", label="nothing cached"),
            Line2D([], [], color=ink, marker="o", linestyle="-", label="with the simulated cache"),
        ]
        titled(figure, _cache_title(drawable, look), look, key)
    return figure


def _cheapest(means: pd.Series[float], look: Look) -> str:
    bills = {str(arm): float(bill) for arm, bill in means.items()}
    least = min(bills.values())
    arms = [arm for arm in look.arms if arm in bills and math.isclose(bills[arm], least, rel_tol=1e-6)]
    if look.baseline in arms:
        return "no arm is cheaper than not compacting"
    change = f" ({_change(least, bills[look.baseline])})" if look.baseline in bills else ""
    return f"{look.label(arms[0])} is the cheapest{change}"


def _cache_title(rows: pd.DataFrame, look: Look) -> str:
    bills = _bills(rows.groupby("arm", as_index=False)[["uncached_usd", "cached_usd"]].mean(), _BOTH)
    base = bills.get(look.baseline or "")
    if base is None:
        return "Cost of a session without and with the prompt cache"
    saving = [bill for bill in bills.values() if bill["uncached_usd"] < base["uncached_usd"] * (1 - 1e-6)]
    turned = sum(bill["cached_usd"] > base["cached_usd"] * (1 + 1e-6) for bill in saving)
    if not turned:
        return "Cost of a session without and with the prompt cache"
    return f"{turned} of {len(saving)} arms that save money without a prompt cache cost more with one"


def _change(value: float, base: float) -> str:
    if math.isnan(base) or not base:
        return dollars(value)
    return signed(100 * (value / base - 1))


def _bills(rows: pd.DataFrame, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the named columns by arm."""
    return {str(row["arm"]): {name: float(row[name]) for name in names} for row in rows.to_dict("records")}
