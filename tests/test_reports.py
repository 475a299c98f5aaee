"""What is kept in the repository is what its programs write: tables and figures' data, and our own sessions."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from compaction_lab.analysis.studies import semantic_kernel
from compaction_lab.analysis.studies.tables import write_study
from compaction_lab.commands.study import USUAL_RUN
from compaction_lab.report.tables import to_csv
from compaction_lab.report.writing import FIGURES, write_tables
from compaction_lab.sweep.loading import Run, load_run
from tests.documents import ROOT, run_command

MADE = re.findall(r"^REPORTS := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)[0].split()


@pytest.fixture(scope="module", params=MADE)
def fresh_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fresh")
    run_command(f"compaction-lab run experiment={request.param} --quiet", folder)
    return folder / "experiments" / str(request.param)


@pytest.fixture(scope="module")
def fresh(fresh_folder: Path) -> Run:
    return load_run(fresh_folder)


def test_kept_tables_equal_those_of_a_fresh_run(fresh: Run, tmp_path: Path) -> None:
    kept = ROOT / "reports" / fresh.name / "tables"
    written = write_tables(fresh, tmp_path)
    assert {path.name for path in kept.iterdir()} == {path.name for path in written}
    for path in written:
        assert (kept / path.name).read_bytes() == path.read_bytes(), f"{path.name}: run `make reports`"


def test_kept_figures_show_the_data_of_a_fresh_run(fresh: Run) -> None:
    kept = ROOT / "reports" / fresh.name / "figures"
    drawn = {spec.name: spec for spec in FIGURES if spec.applies(fresh)}
    assert {path.stem for path in kept.iterdir()} == set(drawn)
    for name, spec in drawn.items():
        assert (kept / f"{name}.csv").read_text(encoding="utf-8") == to_csv(spec.frame(fresh)), name


@pytest.mark.parametrize("fresh_folder", [USUAL_RUN], indirect=True)
def test_the_kept_study_of_the_article_equals_that_of_a_fresh_run(fresh_folder: Path, tmp_path: Path) -> None:
    for path in write_study(semantic_kernel.recompute(fresh_folder), tmp_path):
        assert path.read_bytes() == (ROOT / "reports/studies" / path.name).read_bytes(), f"{path.name}: `make studies`"


def test_every_report_that_make_writes_lists_its_files() -> None:
    reports = ROOT / "reports"
    for name in MADE:
        listed = json.loads((reports / name / "report.json").read_text(encoding="utf-8"))["files"]
        found = {path.relative_to(reports / name).as_posix() for path in (reports / name).rglob("*") if path.is_file()}
        assert found - {"report.html", "report.json"} == set(listed)


def test_our_help_desk_sessions_are_what_their_program_writes() -> None:
    folder = ROOT / "datasets" / "help_desk"
    session = runpy.run_path(str(folder / "make.py"))["session"]
    lines = (folder / "sessions.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [session(number) for number in range(len(lines))]
