"""Every notebook runs from a clean kernel, and its stored form is its paired text with small outputs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
TEXTS = sorted((ROOT / "notebooks").glob("*.py"))
MOST_BYTES = 800_000


@pytest.fixture(params=TEXTS, ids=lambda path: path.stem)
def text(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def sources(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


# The kernel's client opens sockets and an event loop of its own; what it leaves open is not the lab's to mend.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_notebook_runs_from_a_clean_kernel(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    (tmp_path / "notebooks").mkdir()
    shutil.copytree(ROOT / "reports" / "studies", tmp_path / "reports" / "studies")
    notebook = jupytext.read(text)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path / "notebooks")}}
    )
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output.output_type == "stream" and output.name == "stderr"]


def test_stored_notebook_is_its_text_executed(text: Path) -> None:
    stored = text.with_suffix(".ipynb")
    notebook = nbformat.read(stored, as_version=4)
    assert sources(notebook) == sources(jupytext.read(text)), f"run: jupytext --sync {text.relative_to(ROOT)}"
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    assert stored.stat().st_size < MOST_BYTES
    assert str(ROOT) not in stored.read_text(encoding="utf-8")
