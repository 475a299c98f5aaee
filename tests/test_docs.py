"""Every command and Python block of docs/ runs, and every exported column is described."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compaction_lab.sweep.loading import load_run
from compaction_lab.sweep.tables import export
from tests.documents import ROOT, Document, python, reader_folder, run_command

DOCUMENTS = [Document.read(path) for path in sorted((ROOT / "docs").glob("*.md"))]
TABLES = ("calls", "turns", "compactions", "probes", "units")


@pytest.fixture(params=[document for document in DOCUMENTS if document.blocks], ids=lambda document: document.path.stem)
def document(request: pytest.FixtureRequest) -> Document:
    found: Document = request.param
    return found


def test_the_blocks_of_a_page_run_in_order(document: Document, tmp_path: Path) -> None:
    folder = reader_folder(tmp_path)
    for command in document.commands:
        run_command(command, folder)
    script = "\n".join(document.bodies("python"))
    done = python(folder, "-W", "error", "-c", script)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_kind_of_block_is_one_that_runs() -> None:
    assert {kind for document in DOCUMENTS for kind, _ in document.blocks} == {"console", "python"}


def test_links_between_pages_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.path.read_text(encoding="utf-8")):
            assert (document.path.parent / target).exists(), f"{document.path.name}: {target}"


def sections(text: str) -> dict[str, str]:
    return {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}


@pytest.mark.parametrize("table", TABLES)
def test_every_exported_column_is_described(table: str, tmp_path: Path) -> None:
    described = sections((ROOT / "docs/metrics.md").read_text(encoding="utf-8"))
    words = set(re.findall(r"`([^`]+)`", described["Every table"] + described[table]))
    run_command(
        "compaction-lab run dataset=coding_session strategy=truncation strategy.max_tokens=4000 --name t", tmp_path
    )
    header = export(load_run(tmp_path / "experiments/t"), table).decode().splitlines()[0]
    assert set(header.split(",")) <= words
