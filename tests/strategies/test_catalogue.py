"""The strategies' page says what the presets say, and every preset says what a reader needs."""

from pathlib import Path

import pytest

from compaction_lab.strategies.catalogue import COLUMNS, page, rows
from compaction_lab.strategies.registry import build, preset

ROOT = Path(__file__).resolve().parents[2]
ROWS = rows()
NEED_A_LIMIT = {"pydantic_ai_harness/sliding_window_compaction"}
"""As their originals do: one of several limits must be given, and none is the default."""


def test_the_page_is_current() -> None:
    written = (ROOT / "docs/strategies.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m compaction_lab.strategies.catalogue > docs/strategies.md"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["strategy"])
def test_every_preset_tells_what_it_is(row: dict[str, str]) -> None:
    lacking = [name for name, _ in COLUMNS if not row[name] and name != "mirrors"]
    assert not lacking
    assert row["parity"].split(" ")[0] in ("faithful", "approximate", "interface", "own")
    assert row["parity"].startswith("own") or row["mirrors"]


@pytest.mark.parametrize("name", [row["strategy"] for row in ROWS])
def test_every_preset_documents_each_of_its_parameters_and_builds(name: str) -> None:
    node = preset(name)
    about = node["about"]
    assert isinstance(about, dict)
    documented = about["parameters"]
    assert isinstance(documented, dict)
    own = [key for key in node if key not in ("kind", "preset", "about", "trigger", "tokenizer", "placement")]
    assert not [key for key in own if key not in documented]
    if "???" not in node.values() and name not in NEED_A_LIMIT:
        build(node)
