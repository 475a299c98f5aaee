"""Writes the page: the run's data is embedded compressed, the pictures as data URIs, and nothing is fetched."""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from numbers import Real
from pathlib import Path

import pandas as pd

from compaction_lab import analysis
from compaction_lab.conversation.messages import JSON
from compaction_lab.report.page.contexts import context_data
from compaction_lab.report.page.words import summary_words
from compaction_lab.report.writing import provenance, report_tables
from compaction_lab.sweep.loading import Run

NAME = "report.html"
_MIMES = {".svg": "image/svg+xml", ".png": "image/png"}


def write_page(run: Run, out: Path, pictures: Sequence[Path] = (), left_out: Mapping[str, str] | None = None) -> Path:
    """Write a run's page.

    Parameters
    ----------
    run
        A run with its messages.
    out
        Folder to write ``report.html`` to.
    pictures
        Files of the figures, in their order: SVG or PNG.
    left_out
        Figures that could not be drawn, and why.

    Returns
    -------
    Path
        The page: one file, without any address in it, that opens from disk.
    """
    tables = report_tables(run)
    parts = {
        "title": html.escape(f"{run.name} · Compaction Lab"),
        "heading": html.escape(run.name),
        "simulated": html.escape(analysis.simulated_note(run.simulated) or ""),
        "words": "".join(f"<p>{html.escape(line)}</p>" for line in summary_words(run)),
        "table": html_table(tables["headline"], sortable=True),
        "tables": "".join(
            f"<details><summary>{html.escape(name.replace('_', ' '))}</summary>{html_table(frame)}</details>"
            for name, frame in tables.items()
            if name != "headline"
        ),
        "figures": "".join(map(_picture, pictures)),
        "left_out": "".join(
            f"<li>{html.escape(name)}: {html.escape(why)}</li>" for name, why in (left_out or {}).items()
        ),
        "provenance": html.escape(json.dumps(provenance(run), indent=2)),
        "data": embedded(context_data(run)),
        "style": _asset("page.css"),
        "script": _asset("page.js"),
    }
    page = _asset("page.html")
    for name, content in parts.items():
        page = page.replace(f"<!--{name}-->", content, 1)
    out.mkdir(parents=True, exist_ok=True)
    path = out / NAME
    path.write_text(page, encoding="utf-8", errors="replace")
    return path


def picture_files(written: Sequence[Path]) -> list[Path]:
    """Return, of a report's files, one picture for each figure: the SVG, or else the PNG."""
    found: dict[str, Path] = {}
    for path in written:
        if path.suffix in _MIMES and (path.suffix == ".svg" or path.stem not in found):
            found[path.stem] = path
    return list(found.values())


def embedded(data: JSON) -> str:
    """Return data as base64 of gzip of JSON: compact, and unable to end the element it stands in."""
    return base64.b64encode(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)).decode()


def html_table(frame: pd.DataFrame, *, sortable: bool = False) -> str:
    """Return a frame as an HTML table; every text is escaped, missing values are dashes."""
    head = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in frame.columns)
    rows = []
    for values in frame.itertuples(index=False):
        cells = "".join(map(_cell, values))
        rows.append(f"<tr>{cells}</tr>")
    kind = ' class="sortable"' if sortable else ""
    return f'<div class="wide"><table{kind}><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _cell(value: object) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):  # noqa: PLR0124 - NaN
        return '<td class="number" data-value="">–</td>'
    if isinstance(value, bool) or not isinstance(value, Real):
        return f"<td>{html.escape(str(value))}</td>"
    number = float(value)
    small = 0 < abs(number) < 0.01  # noqa: PLR2004 - two decimals would show nothing
    shown = f"{number:.2g}" if small else f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"
    return f'<td class="number" data-value="{number!r}">{shown}</td>'


def _picture(path: Path) -> str:
    name = html.escape(path.stem.replace("_", " "))
    source = f"data:{_MIMES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"
    return f'<figure><img alt="{name}" src="{source}"><figcaption>{name}</figcaption></figure>'


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
