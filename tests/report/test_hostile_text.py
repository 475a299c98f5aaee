"""What a transcript says shows as text in the terminal, in tables and in figures; the page is tested in a browser."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest

from compaction_lab.report import Look
from compaction_lab.report.tables import to_csv, to_markdown, to_tex, to_text
from compaction_lab.report.writing import write_report
from compaction_lab.sweep.loading import Run
from tests.report.conftest import command
from tests.report.hostile import NAME, TEXTS


def acts(text: str) -> list[str]:
    """The characters in a text that would do something to a terminal or a reader's eye."""
    return [sign for sign in text if not (sign.isprintable() or sign in "\n\t\u200d")]


@pytest.mark.parametrize("shown", [(), ("--call", "9")], ids=["calls", "one call"])
def test_the_terminal_shows_a_hostile_unit_as_text(sessions_folder: Path, shown: tuple[str, ...]) -> None:
    done = command(sessions_folder, "show", "sessions", "--unit", "none/<img", *shown)
    assert done.returncode == 0, done.stderr
    assert acts(done.stdout) == []
    assert "<img src=x" in done.stdout
    if shown:
        assert (
            "\\x1b[31mred" in command(sessions_folder, "show", "sessions", "--unit", "none/<img", "--call", "17").stdout
        )


def test_an_error_that_names_a_hostile_unit_is_text(sessions_folder: Path) -> None:
    done = command(sessions_folder, "show", "sessions", "--unit", "none")
    assert done.returncode == 1
    assert "\\x1b" in done.stderr
    assert acts(done.stderr) == []


def test_tables_write_markup_as_text() -> None:
    names = pd.Series([NAME, *TEXTS], dtype=object)  # as text, an Arrow column refuses broken surrogates
    frame = pd.DataFrame({"arm": names, "value": range(len(names))})
    markdown, tex, text = to_markdown(frame), to_tex(frame), to_text(frame)
    assert "<" not in markdown
    assert len(markdown.splitlines()) == len(frame) + 2
    assert "\\input{" not in tex.replace("\\textbackslash{}", "\\\\")
    for table in (markdown, tex, text):
        assert acts(table) == []
    assert to_csv(frame).count("\n") == len(frame) + 1


@pytest.mark.filterwarnings("ignore:Glyph")  # the figure's font has no emoji; a box stands for it
def test_a_report_on_a_hostile_session_is_written_whole(sessions: Run, tmp_path: Path) -> None:
    written = write_report(sessions, tmp_path, ["svg"])
    assert {path.stem for path in written} >= {"frontier", "misses", "reference_recall", "conclusion"}
    for path in written:
        if path.suffix in (".md", ".tex"):
            content = path.read_text(encoding="utf-8")
            assert acts(content) == [], path.name
            if path.parent.name == "tables" and path.suffix == ".md":
                assert "<" not in content
        if path.suffix == ".svg":
            assert "<script" not in path.read_text(encoding="utf-8")


def test_dollar_signs_are_no_formulas(sessions: Run) -> None:
    from compaction_lab.report import figure_style

    with figure_style():
        assert mpl.rcParams["text.parse_math"] is False
    assert Look.of(sessions)
