"""A report is complete, the same bytes for the same run, and honest about what it left out."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from compaction_lab.errors import ConfigurationError
from compaction_lab.report import terminal_table, to_csv, to_markdown, to_tex, to_text, write_report
from compaction_lab.report.tables import shown
from compaction_lab.report.writing import report_tables
from compaction_lab.sweep.loading import Run
from tests.synthetic_runs import ARMS, BASIC, HYBRID, MASKING, synthetic_run

UNMEASURED = {"context_over_calls", "cost_stack", "cost_with_and_without_cache"}
"""What the synthetic run holds no numbers for: it has neither the sizes of contexts nor prices."""


def test_two_reports_of_equal_runs_are_equal_bytes(tmp_path: Path) -> None:
    first, second = (
        write_report(synthetic_run(arms=(BASIC, HYBRID), transcripts=("en",)), tmp_path / folder, ("png", "svg", "pdf"))
        for folder in "ab"
    )
    assert [path.relative_to(tmp_path / "a") for path in first] == [path.relative_to(tmp_path / "b") for path in second]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_a_report_holds_every_figure_with_its_data_and_origin(tmp_path: Path) -> None:
    written = write_report(synthetic_run(), tmp_path, ("svg",))
    assert all(path.is_file() for path in written)
    contents = json.loads((tmp_path / "report.json").read_text())
    assert set(contents["left_out"]) == UNMEASURED
    assert contents["simulated"]
    assert len(contents["files"]) == len(written) - 1
    for image in (tmp_path / "figures").glob("*.svg"):
        assert image.with_suffix(".csv").stat().st_size
        origin = json.loads(image.with_suffix(".json").read_text())
        assert [cell["arm"] for cell in origin["cells"]].count(MASKING) == 1
        assert set(origin["versions"]) == {"compaction-lab", "matplotlib", "numpy", "pandas", "python"}
        assert origin["manifest"] == {"tokenizer": "o200k_base", "seeds": [0]}
        assert "dc:date" not in image.read_text()


def test_a_session_of_one_turn_is_drawn_by_call(tmp_path: Path) -> None:
    run = synthetic_run(arms=(BASIC, MASKING), transcripts=("session",))
    run.turns = run.turns[run.turns["turn"] == 1]
    run.calls["turn"] = 1
    write_report(run, tmp_path, ("svg",))
    left_out = json.loads((tmp_path / "report.json").read_text())["left_out"]
    assert set(left_out) == UNMEASURED
    header = (tmp_path / "figures/reduction_vs_baseline.csv").read_text().splitlines()[0]
    assert header.startswith("arm,model,dataset,transcript,call,")
    assert (tmp_path / "figures/input_tokens_per_call.svg").is_file()
    assert not (tmp_path / "figures/input_tokens_per_turn.svg").exists()


def test_a_run_without_baseline_or_probes_says_what_it_left_out(tmp_path: Path) -> None:
    run = synthetic_run(arms=(MASKING, "truncation"))
    run.probes = run.probes.iloc[:0]
    write_report(run, tmp_path, ("svg",))
    left_out = json.loads((tmp_path / "report.json").read_text())["left_out"]
    relative = {"percent_of_baseline", "reduction_vs_baseline", "frontier", "paired_differences"}
    assert set(left_out) == relative | {"rubric_per_turn", "probe_recall"} | UNMEASURED
    for name in ("reduction_vs_baseline", "paired_differences"):
        assert "baseline" in left_out[name]


def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gif"):
        write_report(synthetic_run(), tmp_path / "out", ("png", "gif"))
    assert not (tmp_path / "out").exists()


@pytest.fixture(name="run")
def _run() -> Run:
    return synthetic_run()


def test_every_format_of_a_table_has_the_same_cells(run: Run) -> None:
    table = report_tables(run)["summary"]
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert len(rows) == len(ARMS) + 1
    markdown = [line.strip("| ").split(" | ") for line in to_markdown(table).splitlines() if "---" not in line]
    tex = [line.removesuffix(r" \\").split(" & ") for line in to_tex(table).splitlines() if " & " in line]
    assert [len(row) for row in markdown] == [len(row) for row in rows] == [len(row) for row in tex]
    assert markdown[1][0] == BASIC
    assert markdown[1][4] == "–"
    assert rows[1][4] == ""


def test_tex_escapes_what_latex_reads_as_commands(run: Run) -> None:
    tex = to_tex(report_tables(run)["headline"])
    assert not re.search(r"(?<!\\)[_%]", tex)


def test_the_terminal_table_fits_eighty_columns_and_says_simulated(run: Run) -> None:
    text = terminal_table(run)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "simulated" in text
    assert "planned 10, ran 10, failed 0, missing 0" in text
    assert max(len(line) for line in to_text(report_tables(run)["headline"]).splitlines()) <= 80


def test_numbers_are_printed_by_their_unit() -> None:
    assert shown("cost USD", 0.0123456) == "0.0123"
    assert shown("tool calls", 21.5) == "21.50"
    assert shown("failed", 0) == "0"
    assert shown("peak at turn", None) == "–"
