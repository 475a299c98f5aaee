"""A table of coloured cells with their values in them, readable in grey: the part heat maps share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap

SHARES = LinearSegmentedColormap.from_list("shares", ["#08306b", "#2f79b5", "#9ecae1", "#f7f5ef"])
"""For shares from 0 to 1: the less there is, the darker, in colour and in grey."""

_DARK = 0.45
"""Luminance under which ink on a cell is white."""


def coloured_cells(
    axes: Axes,
    values: np.ndarray,
    edges: Sequence[float],
    *,
    cmap: Colormap = SHARES,
    limits: tuple[float, float] = (0.0, 1.0),
    words: Callable[[float], str] = "{:.2f}".format,
) -> None:
    """Draw a matrix as coloured cells and write each value into its own; an unknown value leaves its cell empty.

    Parameters
    ----------
    axes
        Where to draw; a column is one unit wide, rows go downwards.
    values
        A row and a column of the matrix for each of the picture.
    edges
        Where the rows begin and end, one more than there are rows.
    cmap, limits
        The colours, and the values at their ends.
    words
        Writes a value.
    """
    low, high = limits
    shades = np.ma.masked_invalid(values)
    axes.pcolormesh(range(values.shape[1] + 1), edges, shades, cmap=cmap, vmin=low, vmax=high, edgecolor="white")
    for row, (top, bottom) in enumerate(pairwise(edges)):
        for column, value in enumerate(values[row]):
            if math.isnan(value):
                continue
            red, green, blue, _ = cmap((value - low) / (high - low) if high > low else 0.5)
            ink = "white" if 0.3 * red + 0.59 * green + 0.11 * blue < _DARK else "black"
            axes.text(column + 0.5, (top + bottom) / 2, words(value), ha="center", va="center", fontsize=6, color=ink)
    axes.set_xlim(0, values.shape[1])
    axes.set_ylim(edges[-1], edges[0])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
