"""Writes the page: the run's data is embedded compressed, the pictures as data URIs, and nothing is fetched."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from numbers import Real
from pathlib import Path

import pandas as pd

from compaction_lab import analysis
from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.printable import printable
from compaction_lab.report.page.contexts import context_data, shown_sessions
from compaction_lab.report.page.prose import html_prose
from compaction_lab.report.page.words import summary_words
from compaction_lab.report.tables import MISSING, shown
from compaction_lab.report.writing import conclusion_text, provenance, report_tables
from compaction_lab.sweep.loading import Run

NAME = "report.html"
LONG = 40
"""Characters from which a cell is given room."""
_BREAKABLE = re.compile(r"(?<=\w)([/_])(?=\w)")
"""Where a long name may go on in the next line."""
_MIMES = {".svg": "image/svg+xml", ".png": "image/png"}


def write_page(
    run: Run,
    out: Path,
    pictures: Sequence[Path] = (),
    left_out: Mapping[str, str] | None = None,
    most_sessions: int | None = None,
) -> Path:
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
    most_sessions
        Sessions whose contexts it shows, those with the most misses first; ``None``: as many as keep it a few
        megabytes (``contexts.CALL_LIMIT``).

    Returns
    -------
    Path
        The page: one file, without any address in it, that opens from disk.
    """
    tables = {name: _single_valued_left_out(frame) for name, frame in report_tables(run).items()}
    others = [name for name in tables if name not in ("headline", "firing", "misses")]
    style, script = _asset("page.css"), _asset("page.js")
    sessions = shown_sessions(run, most_sessions)
    parts = {
        "policy": f"style-src '{_digest(style)}'; script-src '{_digest(script)}'",
        "title": html.escape(f"{run.name} · Compaction Lab"),
        "heading": html.escape(printable(run.name)),
        "simulated": html.escape(analysis.simulated_note(run.simulated) or ""),
        "words": "".join(
            f"<p>{html.escape(printable(line))}</p>" for line in [*summary_words(run), *_omitted(run, sessions)]
        ),
        "table": html_table(tables["headline"]),
        "conclusion": _folded("What this run says", html_prose(conclusion_text(run))),
        "firing": html_table(tables["firing"]) if len(tables["firing"]) else "<p>No arm has made a call yet.</p>",
        "misses": _misses(tables.get("misses")),
        "tables": "".join(_folded(name.replace("_", " "), html_table(tables[name])) for name in others),
        "figures": "".join(map(_picture, pictures)),
        "left_out": _left_out(left_out or {}),
        "provenance": html.escape(json.dumps(provenance(run), indent=2)),
        "data": embedded(context_data(run, set(sessions))),
        "style": style,
        "script": script,
    }
    page = _asset("page.html")
    for name, content in parts.items():
        page = page.replace(f"<!--{name}-->", content, 1)
    out.mkdir(parents=True, exist_ok=True)
    path = out / NAME
    path.write_text(page, encoding="utf-8", errors="backslashreplace")
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


def html_table(frame: pd.DataFrame) -> str:
    """Return a frame as an HTML table that the page can sort; every text is escaped, missing values are dashes."""
    names = [str(name) for name in frame.columns]
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names)
    rows = [
        "".join(_cell(name, value) for name, value in zip(names, values, strict=True))
        for values in frame.to_numpy(object)
    ]
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(name: str, value: object) -> str:
    value = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
    text = shown(name, value)
    if isinstance(value, str) or (text != MISSING and not isinstance(value, Real)):
        kind = ' class="long"' if len(text) > LONG else ""
        return f"<td{kind}>" + _BREAKABLE.sub(r"\1<wbr>", html.escape(text)) + "</td>"
    number = "" if text == MISSING else repr(float(str(value)))
    return f'<td class="number" data-value="{number}">{text}</td>'


def _single_valued_left_out(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave model and dataset out where the whole table has but one."""
    single = [name for name in ("model", "dataset") if name in frame and len(frame[name].unique()) == 1]
    return frame.drop(columns=single)


def _omitted(run: Run, sessions: Sequence[tuple[str, str]]) -> list[str]:
    """Say so when some sessions' contexts are not on the page."""
    all_sessions = len(run.units[["dataset", "transcript"]].drop_duplicates())
    held = f"The context view holds {len(sessions)} of {all_sessions} sessions, those with the most misses; "
    return [f"{held}report --sessions {all_sessions} writes them all."] if len(sessions) < all_sessions else []


def _misses(table: pd.DataFrame | None) -> str:
    if table is None:
        return (
            "<p>Nothing in this run looks at what the agent used again; "
            "the context view lists the questions each arm answered wrongly.</p>"
        )
    return html_table(table)


def _left_out(left_out: Mapping[str, str]) -> str:
    items = "".join(f"<li>{html.escape(f'{name}: {why}')}</li>" for name, why in left_out.items())
    return _folded("Figures this run has no data for", f"<ul>{items}</ul>") if items else ""


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{content}</details>" if content else ""


def _digest(content: str) -> str:
    """Return the hash under which a content security policy lets exactly this style or script act."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _picture(path: Path) -> str:
    name = html.escape(path.stem.replace("_", " "))
    source = f"data:{_MIMES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"
    return f'<figure><img alt="{name}" src="{source}"><figcaption>{name}</figcaption></figure>'


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
