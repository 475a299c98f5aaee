"""What the figures share: panels, titles, the margin, and labels beside the lines they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FuncFormatter

from compaction_lab.accounting.amounts import usd
from compaction_lab.analysis.run_tables import CONVERSATION
from compaction_lab.report.style import Look, wrapped

MAX_PANELS = 4
"""More conversations than this are averaged instead of drawn one a panel."""

MAX_NAMED_LINES = 7
"""More lines than this get a key below the axes instead of a name beside each."""

LABEL_WIDTH = 19
"""Characters in a line of an arm's name beside its line or bar."""

_LABEL_GAP_PT = 1.0
_LABEL_X = 1.07
_THOUSAND = 1000
_TITLE_PT = 8.0
_MARGIN_PT = 5.5
_KEY_PT = 6.5
_HANDLE_PT = 30.0
_KEY = {"borderpad": 0.2, "columnspacing": 1.0, "handlelength": 2.2, "labelspacing": 0.3}


@dataclass(frozen=True)
class Panel:
    """One panel: its title (empty when it is the only one) and its rows, one an arm and place on the axis."""

    title: str
    rows: pd.DataFrame


def panels(frame: pd.DataFrame, value: Sequence[str], along: Sequence[str]) -> list[Panel]:
    """Split a frame into panels, a conversation each, or the mean over transcripts when there are many.

    Parameters
    ----------
    frame
        Rows with ``arm, model, dataset, transcript``, the columns of ``along`` and of ``value``.
    value
        Columns to average.
    along
        Columns that place a row on the axis, such as ``turn``.
    """
    keys = list(CONVERSATION)
    counted = ""
    if len(frame[keys].drop_duplicates()) > MAX_PANELS:
        keys.remove("transcript")
        counted = f"mean of {frame['transcript'].nunique()} transcripts"
        counted += f", at each {along[0]} of those that reach it" if along and _ends_apart(frame, along[0]) else ""
    several = [key for key in keys if len(frame[key].unique()) > 1]
    averaged = frame.groupby(["arm", *keys, *along], sort=True, as_index=False)[list(value)].mean()
    if not several:
        return [Panel(counted, averaged)]
    split = []
    for names, rows in averaged.groupby(several, sort=True):
        parts = [str(name) for name in names]
        split.append(Panel(", ".join([*parts, counted] if counted else parts), rows))
    return split


def _ends_apart(frame: pd.DataFrame, along: str) -> bool:
    """Whether some transcripts end before others."""
    return len(set(frame.groupby([*CONVERSATION, "arm"])[along].max())) > 1


def canvas(
    count: int, panel_height_in: float, look: Look, *, sharex: bool = True, sharey: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure with ``count`` panels on top of each other that share their axes unless told otherwise."""
    figure = Figure(figsize=(look.width_in, count * panel_height_in + 0.5), layout="constrained")
    grid = figure.subplots(count, 1, sharex=sharex, sharey=sharey, squeeze=False)
    return figure, [axes for row in grid for axes in row]


def row_edges_in(names: Sequence[str], least_in: float = 0.22) -> list[float]:
    """Return where the rows of a figure with a name each begin and end, in inches, so that every name fits its row."""
    heights = (max(least_in, 0.11 * (name.count("\n") + 1) + 0.05) for name in names)
    return list(accumulate(heights, initial=0.0))


def middles(edges: Sequence[float]) -> list[float]:
    """Return the middle of each row."""
    return [(top + bottom) / 2 for top, bottom in pairwise(edges)]


def titled(figure: Figure, title: str, look: Look, key: Sequence[Artist] = (), columns: int = 2) -> None:
    """Write the title at the top left; at the foot the key, if any, and below it the margin line.

    Both ends are wrapped to the figure's width and get their own strip, so that nothing covers the axes.
    """
    width_pt = look.width_in * 72
    lines = wrapped(title, int(width_pt / (_TITLE_PT * 0.64)))
    figure.suptitle(lines, x=0.01, ha="left", fontsize=_TITLE_PT, fontweight="bold", linespacing=1.05)
    margin = wrapped(look.margin, int(width_pt / (_MARGIN_PT * 0.56))) if look.margin else ""
    margin_in = (margin.count("\n") + 1) * _MARGIN_PT * 1.25 / 72 + 0.03 if margin else 0.0
    _wrap_key(key, width_pt, columns)
    key_in = _key_lines(key, columns) * 0.125 + 0.06 if key else 0.0
    width_in, height_in = figure.get_size_inches()
    height_in += margin_in + key_in
    figure.set_size_inches(width_in, height_in)
    foot = (margin_in + key_in) / height_in
    figure.set_layout_engine("constrained", rect=(0.0, foot, 1.0, 1.0 - foot))
    if margin:
        figure.text(0.01, 0.02 / height_in, margin, fontsize=_MARGIN_PT, fontstyle="italic", va="bottom")
    if key:
        anchor = (0.0, margin_in / height_in)
        figure.legend(handles=key, loc="lower left", bbox_to_anchor=anchor, ncols=columns, **_KEY)


def _wrap_key(key: Sequence[Artist], width_pt: float, columns: int) -> None:
    """Break the labels of a key where its columns would not fit beside each other."""
    room = (width_pt - columns * _HANDLE_PT) / (_KEY_PT * 0.57)
    longest = [max((len(str(artist.get_label())) for artist in part), default=0) for part in _key_columns(key, columns)]
    if sum(longest) > room:
        for artist in key:
            artist.set_label(wrapped(str(artist.get_label()), int(room / columns)))


def _key_lines(key: Sequence[Artist], columns: int) -> int:
    """Return the lines of a key's tallest column."""
    parts = _key_columns(key, columns)
    return max(sum(str(artist.get_label()).count("\n") + 1 for artist in part) for part in parts)


def _key_columns(key: Sequence[Artist], columns: int) -> list[Sequence[Artist]]:
    """Split a key as a legend does, which fills its columns one after the other."""
    sizes = (len(key) // columns + (place < len(key) % columns) for place in range(columns))
    return [key[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]


def lowest(means: pd.Series[float], look: Look) -> str:
    """Return, for a title, which arm has the lowest mean score, or that the arms do not differ.

    Parameters
    ----------
    means
        Mean score (0 to 1) by arm.
    look
        The look that names the arms.
    """
    least = f"{means.min():.2f}"
    arms = [str(arm) for arm, score in means.items() if f"{score:.2f}" == least]
    if len(arms) == len(means):
        return f"all arms at {least}"
    return f"lowest {least}, {look.label(arms[0]) if len(arms) == 1 else f'{len(arms)} arms'}"


def in_thousands(axes: Axes) -> None:
    """Print tokens on the y axis as 0, 5k, 10k."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda tokens, _: thousands(tokens)))


def thousands(tokens: float) -> str:
    """Return a count of tokens in three digits or so.

    Examples
    --------
    >>> thousands(640), thousands(5_000), thousands(18_460), thousands(2_310_000)
    ('640', '5k', '18.5k', '2.31M')
    """
    size = abs(tokens)
    if size < _THOUSAND:
        return f"{tokens:.0f}"
    if size < _THOUSAND**2:
        return f"{tokens / _THOUSAND:.1f}".removesuffix(".0") + "k"
    return f"{tokens / _THOUSAND**2:.2f}".rstrip("0").rstrip(".") + "M"


def signed(value: float, *, percent: bool = True) -> str:
    """Return a difference with its sign: in whole percent, or as a share with two digits.

    Examples
    --------
    >>> signed(12.3), signed(-0.2), signed(-0.125, percent=False)
    ('+12 %', '0 %', '−0.12')
    """
    text = f"{value:+.0f}" if percent else f"{value:+.2f}"
    text = text if float(text) else text.lstrip("+-")
    return text.replace("-", "−") + (" %" if percent else "")


def dollars(amount: float) -> str:
    """Return an amount of money, three digits that count."""
    return f"${usd(amount)}"


def spread(wanted: Sequence[float], heights: Sequence[float], low: float, high: float) -> list[float]:
    """Move label centres as little as needed so that none overlap and all stay between ``low`` and ``high``.

    Parameters
    ----------
    wanted
        Where each centre would like to be, in any order.
    heights
        Height of each label, in the same units.

    Returns
    -------
    list[float]
        The centres in the order given, their order along the axis kept, the first of equals on top. Labels too high to
        fit together are taken to be as much lower as it needs.

    Examples
    --------
    >>> spread([5, 5, 0], [2, 2, 2], 0, 10)
    [6.0, 4.0, 1.0]
    """
    squeeze = min(1.0, (high - low) / sum(heights)) if heights else 1.0
    heights = [height * squeeze for height in heights]
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], -i))
    blocks: list[tuple[list[int], float, float]] = []
    for index in order:
        members, size = [index], heights[index]
        centre = min(max(float(wanted[index]), low + size / 2), high - size / 2)
        while blocks and blocks[-1][1] + blocks[-1][2] / 2 > centre - size / 2:
            below, below_centre, below_size = blocks.pop()
            members = [*below, *members]
            total = below_size + size
            weight = len(below) / len(members)
            middle_if_below = below_centre + size / 2
            middle_if_above = centre - below_size / 2
            centre, size = weight * middle_if_below + (1 - weight) * middle_if_above, total
            centre = min(max(centre, low + size / 2), high - size / 2)
        blocks.append((members, centre, size))
    centres = [0.0] * len(wanted)
    for members, centre, size in blocks:
        edge = centre - size / 2
        for index in members:
            centres[index] = edge + heights[index] / 2
            edge += heights[index]
    return centres


def label_lines(figure: Figure, ends: dict[Axes, dict[str, tuple[float, float]]], look: Look) -> None:
    """Name each line at its right end, moving the names apart where they would overlap.

    Parameters
    ----------
    figure
        A figure whose lines and title are drawn and whose limits are final.
    ends
        For each axes, the last point (x, y in data units) of each arm's line.
    """
    labels = {axes: [_name(axes, look, arm, end) for arm, end in lines.items()] for axes, lines in ends.items()}
    figure.draw_without_rendering()
    for axes, texts in labels.items():
        for text, centre in zip(texts, _centres(axes, texts), strict=True):
            text.set_position((_LABEL_X, centre))


def line_key(arms: Sequence[str], look: Look) -> list[Line2D]:
    """Return a key that names the lines of figures with too many of them to be named in place."""
    return [Line2D([], [], label=look.label(arm), **look.line(arm)) for arm in arms]


def _name(axes: Axes, look: Look, arm: str, end: tuple[float, float]) -> Annotation:
    color = look.color(arm)
    leader = {"arrowstyle": "-", "linewidth": 0.5, "color": color, "shrinkA": 0, "shrinkB": 2, "relpos": (0.0, 0.5)}
    return axes.annotate(
        look.label(arm, LABEL_WIDTH),
        xy=end,
        xytext=(_LABEL_X, axes.transAxes.inverted().transform(axes.transData.transform(end))[1]),
        textcoords="axes fraction",
        va="center",
        fontsize=6.5,
        linespacing=0.95,
        color=color,
        annotation_clip=False,
        arrowprops=leader,
    )


def _centres(axes: Axes, texts: list[Annotation]) -> list[float]:
    height = axes.get_window_extent().height
    gap = _LABEL_GAP_PT / 72 * axes.get_figure(root=True).dpi / height  # type: ignore[union-attr]
    # An annotation's own extent includes its leader line; only the words need room.
    heights = [Text.get_window_extent(text).height / height + gap for text in texts]
    return spread([float(text.get_position()[1]) for text in texts], heights, -0.12, 1.08)
