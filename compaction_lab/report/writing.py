"""A run's report as files: figures with the data behind them and where they came from, and tables.

Equal runs give equal bytes: nothing here reads the clock, and image files carry no dates.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import compaction_lab
from compaction_lab import analysis
from compaction_lab.analysis.lost_in_middle import (
    accuracy_by_place,
    cost_per_correct,
    placed_answers,
    places_conclusion,
)
from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.printable import printable
from compaction_lab.errors import ConfigurationError, FigureError, StatisticsError
from compaction_lab.report import figures
from compaction_lab.report.style import Look, figure_style, style_hashes
from compaction_lab.report.tables import to_csv, to_markdown, to_tex, to_text
from compaction_lab.sweep.loading import Run

FORMATS = ("png", "svg", "pdf")

_NO_DATE: Mapping[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
_FACTS = (
    "experiment",
    "git",
    "packages",
    "datasets",
    "probes",
    "transcripts",
    "trials",
    "tokenizer",
    "pricing",
    "seeds",
    "baseline_arm",
)
"""What a figure repeats of the manifest; times, commands and machines are not what made the numbers."""


@dataclass(frozen=True)
class FigureSpec:
    """A figure of the report: its file name, the frame behind it, the function that draws it, the runs it is for."""

    name: str
    frame: Callable[[Run], pd.DataFrame]
    draw: Callable[[pd.DataFrame, Look], Figure]
    applies: Callable[[Run], bool] = lambda _: True


def _baseline(run: Run) -> str:
    found = analysis.baseline_arm(run.cells)
    if found is None:
        message = f"Run {run.name!r}: it has no baseline arm to compare with. Run it without baseline=null."
        raise FigureError(message)
    return found


def _along(run: Run) -> str:
    """Figures follow the turns; a replayed session with a single user turn is followed by call."""
    return "turn" if len(run.turns["turn"].unique()) > 1 else "call"


def _reduction(run: Run) -> pd.DataFrame:
    baseline, along = _baseline(run), _along(run)
    table = run.turns if along == "turn" else run.calls[run.calls["purpose"] == "agent"]
    return analysis.reduction_per_turn(table, baseline, along)


def _is_of_sessions(run: Run) -> bool:
    """Whether references were looked for: what an agent used again of what it had read."""
    return bool((run.probes["kind"] == "reference").any())


def _is_replay(run: Run) -> bool:
    return all(cell.config.get("mode", "replay") == "replay" for cell in run.cell_by_key.values())


def _has_probes(run: Run) -> bool:
    """Whether several arms were asked questions."""
    return len(run.cells["arm"].unique()) > 1 and not run.probes["kind"].isin(["reference", "rubric"]).all()


def _has_places(run: Run) -> bool:
    return len(placed_answers(run)) > 0


def _frontier(run: Run) -> pd.DataFrame:
    kind = "reference" if _is_of_sessions(run) else "probe"
    return analysis.frontier(run, analysis.baseline_arm(run.cells), kind=kind).assign(recall_of=kind)


def _differences(run: Run) -> pd.DataFrame:
    _baseline(run)
    return analysis.paired_differences(run, METRICS)


METRICS = ("whole_run_tokens", "cost_usd", "score")
"""What a report compares arms by; one that a run does not have is left out."""

FIGURES = (
    FigureSpec(
        "input_tokens_per_turn",
        lambda run: analysis.input_tokens_per_turn(run.turns),
        figures.input_tokens_per_turn,
        lambda run: _along(run) == "turn",
    ),
    FigureSpec(
        "input_tokens_per_call",
        lambda run: analysis.input_tokens_per_call(run.calls),
        figures.input_tokens_per_call,
        lambda run: _along(run) == "call",
    ),
    FigureSpec("total_tokens", lambda run: analysis.total_tokens(run.turns), figures.total_tokens),
    FigureSpec("percent_of_baseline", _reduction, figures.percent_of_baseline),
    FigureSpec("reduction_vs_baseline", _reduction, figures.reduction_vs_baseline),
    FigureSpec(
        "cumulative_cost", lambda run: analysis.cumulative_cost(run.calls, _along(run)), figures.cumulative_cost
    ),
    FigureSpec("cost_stack", analysis.cost_buckets, figures.cost_stack),
    FigureSpec(
        "cost_with_and_without_cache", analysis.cost_with_and_without_cache, figures.cost_with_and_without_cache
    ),
    FigureSpec("frontier", _frontier, figures.frontier),
    FigureSpec("paired_differences", _differences, figures.paired_differences),
    FigureSpec(
        "parameter_sweep",
        lambda run: analysis.parameter_sweep(run, METRICS),
        figures.parameter_sweep,
        lambda run: len(analysis.swept(run)) > 0,
    ),
    FigureSpec(
        "parameter_map",
        lambda run: analysis.parameter_map(run, METRICS[0]),
        figures.parameter_map,
        lambda run: len(analysis.swept_twice(run)) > 0,
    ),
    FigureSpec("firing_timeline", analysis.firing_timeline, figures.firing_timeline),
    FigureSpec("context_over_calls", analysis.context_over_calls, figures.context_over_calls, _is_replay),
    FigureSpec("rubric_per_turn", lambda run: analysis.rubric_per_turn(run.probes), figures.rubric_per_turn),
    FigureSpec("probe_recall", lambda run: analysis.probe_recall(run.probes), figures.probe_recall),
    FigureSpec(
        "retention",
        lambda run: analysis.retention_by_age_and_position(run.probes),
        figures.retention,
        _has_probes,
    ),
    FigureSpec("recall_by_age", lambda run: analysis.recall_by_age(run.probes), figures.recall_by_age, _is_of_sessions),
    FigureSpec(
        "accuracy_by_place",
        lambda run: accuracy_by_place(placed_answers(run)),
        figures.accuracy_by_place,
        _has_places,
    ),
)
"""Every figure of a report, in its order; a new figure is a line here."""


def write_report(run: Run, out: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write every figure and table a run supports.

    A figure the run has no data for is left out and ``report.json`` says why.

    Parameters
    ----------
    run
        A run's tables.
    out
        Folder to write to: ``figures/NAME.{format,csv,json}``, ``tables/NAME.{md,csv,tex}`` and ``report.json``.
    formats
        Of the figures: ``png``, ``svg``, ``pdf``.

    Returns
    -------
    list[Path]
        The files written, figures first.

    Raises
    ------
    ConfigurationError
        When a format is unknown.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        message = f"report: unknown format {', '.join(unknown)}; expected some of {', '.join(FORMATS)}."
        raise ConfigurationError(message)
    drawn, skipped = write_figures(run, out / "figures", formats)
    tables = write_tables(run, out / "tables")
    written = [*drawn, *tables, *_conclusion(run, out)]
    contents = {
        "run": run.name,
        "files": [path.relative_to(out).as_posix() for path in written],
        "left_out": skipped,
        "simulated": analysis.simulated_note(run.simulated),
        "made_from": fingerprint(run, formats),
    }
    return [*written, _write(out / "report.json", _json(contents))]


def current_files(run: Run, out: Path, formats: Sequence[str]) -> list[Path]:
    """Return the files of the report in ``out`` if writing it again would change none of them, else an empty list."""
    try:
        contents = json.loads((out / "report.json").read_bytes())
        files = [out / name for name in contents["files"]]
        current = contents["made_from"] == fingerprint(run, formats) and all(file.is_file() for file in files)
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return files if current else []


def left_out(out: Path) -> dict[str, str]:
    """Return why each figure missing from the report in ``out`` could not be drawn, as it was written down there."""
    contents = json.loads((out / "report.json").read_bytes())
    return {str(name): str(why) for name, why in contents["left_out"].items()}


def fingerprint(run: Run, formats: Sequence[str]) -> str:
    """Return a hash of all that a report depends on: cells and results, formats, and the code that draws."""
    digest = hashlib.sha256()
    origin = provenance(run)
    digest.update(_json({"cells": origin["cells"], "versions": origin["versions"], "style": origin["style"]}))
    digest.update(_json({"formats": list(formats)}))
    for table in (run.calls, run.probes, run.units):
        digest.update(to_csv(table).encode("utf-8", "surrogatepass"))
    package = Path(compaction_lab.__file__).parent
    for folder in ("analysis", "report"):
        for source in sorted((package / folder).rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()


def write_figures(run: Run, out: Path, formats: Sequence[str]) -> tuple[list[Path], dict[str, str]]:
    """Write each figure in each format, its frame as CSV and its provenance as JSON.

    Returns
    -------
    tuple[list[Path], dict[str, str]]
        The files written, and why each figure left out could not be drawn.
    """
    look, origin = Look.of(run), provenance(run)
    written: list[Path] = []
    skipped: dict[str, str] = {}
    for spec in FIGURES:
        if not spec.applies(run):
            continue
        try:
            frame = spec.frame(run)
            figure = spec.draw(_labels_printable(frame), look)
        except (FigureError, StatisticsError) as error:
            skipped[spec.name] = str(error)
            continue
        with figure_style():
            for _ in range(2):  # ticks chosen in the first pass move what the second lays out
                figure.draw_without_rendering()
        figure.set_layout_engine("none")  # or each file would do it again
        for axes in figure.axes:  # the solver's last digits differ from run to run, and files are to be equal bytes
            left, bottom, width, height = (round(float(edge), 6) for edge in axes.get_position().bounds)
            axes.set_position((left, bottom, width, height))
        written += [_write(out / f"{spec.name}.{kind}", image_bytes(figure, kind)) for kind in formats]
        written.append(_write(out / f"{spec.name}.csv", to_csv(frame)))
        written.append(_write(out / f"{spec.name}.json", _json({"figure": spec.name, **origin})))
    return written, skipped


def _labels_printable(frame: pd.DataFrame) -> pd.DataFrame:
    """Write out what a transcript's own name would do to a figure; file names and ids are anyone's text."""
    names = [name for name in ("transcript", "dataset") if name in frame and frame[name].dtype != "category"]
    return frame.assign(**{name: frame[name].map(lambda text: printable(str(text))) for name in names})


def write_tables(run: Run, out: Path) -> list[Path]:
    """Write each table the run supports as Markdown, CSV and LaTeX."""
    written = []
    note = analysis.simulated_note(run.simulated)
    for name, frame in report_tables(run).items():
        labelled = frame.assign(simulated=note) if note else frame
        contents = {
            "md": to_markdown(frame) + (f"\n*{note}*\n" if note else ""),
            "csv": to_csv(labelled),
            "tex": (f"% {note}\n" if note else "") + to_tex(frame),
        }
        written += [_write(out / f"{name}.{kind}", content) for kind, content in contents.items()]
    return written


def conclusion_text(run: Run) -> str:
    """Return what a run of recorded sessions or placed questions says in plain words, as Markdown, or nothing."""
    parts = [analysis.conclusion(run) if _is_of_sessions(run) else "", places_conclusion(run)]
    return "\n".join(filter(None, parts))


def _conclusion(run: Run, out: Path) -> list[Path]:
    text = conclusion_text(run)
    return [_write(out / "conclusion.md", text)] if text else []


def terminal_table(run: Run, width: int = 80) -> str:
    """Return the headline table as plain text, with what it stands on and whether a stub made it.

    Parameters
    ----------
    run
        A run's tables.
    width
        Columns of the terminal.
    """
    summary = analysis.summary_table(run)
    labels = analysis.short_labels(summary["arm"], analysis.baseline_arm(run.cells))
    counts = [f"{name} {int(summary[name].sum())}" for name in ("planned", "ran", "failed", "missing")]
    notes = [f"units: {', '.join(counts)}", analysis.simulated_note(run.simulated)]
    table = analysis.headline_table(summary).replace({"arm": labels})
    return "\n".join([to_text(table, width), *(note for note in notes if note)]) + "\n"


def report_tables(run: Run) -> dict[str, pd.DataFrame]:
    """Return the tables of a run's report by name: headline, summary, firing, and those that the run has data for."""
    summary = analysis.summary_table(run)
    tables = {"headline": analysis.headline_table(summary), "summary": summary}
    if "laptop_catalog" in set(run.cells["dataset"]):
        beside = analysis.beside_article(summary)
        if len(beside):
            tables["beside_article"] = beside
    tables["firing"] = analysis.printed_firings(analysis.firing_table(run))
    found = {
        "validity": analysis.validity_table(run),
        "break_even": analysis.break_even_table(run),
        "recorded_usage": analysis.recorded_usage(run),
        "retention": analysis.retention_by_kind(run.probes),
        "stale_answers": analysis.stale_answers(run.probe_details),
        "constraints": analysis.constraint_survival(run.probes),
    }
    if _is_of_sessions(run):
        found |= {
            "reference_recall": analysis.reference_recall(run.probes),
            "recall_by_age": analysis.recall_by_age(run.probes),
            "recall_by_kind": analysis.value_kinds(run),
            "frontier": analysis.printed_frontier(_frontier(run)),
            "misses": analysis.misses_worth_reading(run),
        }
    if _has_places(run):
        found |= {"accuracy_by_place": accuracy_by_place(placed_answers(run)), "cost_per_right": cost_per_correct(run)}
    tables |= {name: table for name, table in found.items() if len(table)}
    effects = [
        analysis.order_effect(run, *pair).assign(arms=" / ".join(pair)) for pair in analysis.hybrid_orders(run.cells)
    ]
    if effects:
        tables["order_effect"] = pd.concat(effects, ignore_index=True)
    return tables


def provenance(run: Run) -> dict[str, JSON]:
    """Return where a run's figures came from: its cells, what its manifest says of them, versions and style."""
    cells = run.cells[["cell", "arm", "model", "dataset", "seed"]].astype({"seed": int})
    rows: list[JSON] = [{str(name): value for name, value in row.items()} for row in cells.to_dict("records")]
    styles: dict[str, JSON] = dict(style_hashes())
    return {
        "run": run.name,
        "simulated": analysis.simulated_note(run.simulated),
        "cells": rows,
        "manifest": {fact: run.manifest[fact] for fact in _FACTS if fact in run.manifest},
        "versions": {
            "compaction-lab": compaction_lab.__version__,
            "matplotlib": mpl.__version__,
            "numpy": np.__version__,
            "pandas": pd.__version__,
            "python": platform.python_version(),
        },
        "style": styles,
    }


def image_bytes(figure: Figure, kind: str) -> bytes:
    """Return a figure as an image file that carries no date; ``kind`` is ``png``, ``svg`` or ``pdf``."""
    buffer = io.BytesIO()
    with figure_style():
        figure.savefig(buffer, format=kind, metadata=_NO_DATE[kind])
    return buffer.getvalue()


def _json(value: Mapping[str, object]) -> bytes:
    return _bytes(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _bytes(text: str) -> bytes:
    """Encode a text whose transcripts may have brought broken surrogates."""
    return text.encode("utf-8", "backslashreplace")


def _write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else _bytes(content))
    return path
