"""Equal cells export equal bytes, and every format can be read back."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_lab.errors import ConfigurationError
from compaction_lab.records import CALL_COLUMNS, IDENTITY, Cell, UnitResult
from compaction_lab.sweep.loading import Run, load_run
from compaction_lab.sweep.store import RunStore
from compaction_lab.sweep.tables import FORMATS, TABLES, export, render

CELLS = [Cell(f"k{n}", f"arm {n} | x_y & 50%", "m", "d", 0, {"baseline_arm": None, "n": [n, "a"]}) for n in range(3)]


def result(number: int, seconds: float) -> UnitResult:
    row = {"purpose": "agent", "output_tokens": 1, "input_tokens": number, "cost_uncached_usd": 0.1 + 0.2, "turn": 1}
    measured = {"latency_s": seconds, "latency_source": "measured"}
    modelled = {"latency_s": 0.5, "latency_source": "modelled"}
    return UnitResult(
        calls=[row | measured | {"call": 1}, row | modelled | {"call": 2, "turn": 2}],
        probes=[{"turn": 1, "probe": "p", "kind": "fact", "answer": 'a,"b"\r\n\u2028|\udcb2', "gold": ["x", "y"]}],
        timings=[{"call": 1, "slot": 0, "strategy_s": seconds}],
    )


def stored(folder: Path, order: list[int], seconds: float) -> Run:
    with RunStore.open(folder, create=True) as store:
        for number in order:
            store.freeze([CELLS[number]], {"command": str(order)})
            store.write(CELLS[number], "t", 0, UnitResult("failed", "first attempt", calls=result(9, 9.0).calls))
            store.write(CELLS[number], "t", 0, result(number, seconds))
    return load_run(folder)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("format", FORMATS)
def test_equal_cells_export_equal_bytes(tmp_path: Path, table: str, format: str) -> None:  # noqa: A002
    one = stored(tmp_path / "one", [0, 1, 2], seconds=1.25)
    two = stored(tmp_path / "two", [2, 0, 1], seconds=7.5)
    memory = Run.from_results(CELLS, {(cell.key, "t", 0): result(n, 3.0) for n, cell in enumerate(CELLS)})
    assert export(one, table, format) == export(two, table, format) == export(memory, table, format)  # type: ignore[arg-type]


def test_measured_times_are_exported_on_request_only() -> None:
    run = Run.from_results(CELLS[:1], {("k0", "t", 0): result(1, 1.25)})

    def times(table: str, *, timings: bool) -> list[str]:
        rows = csv.DictReader(io.StringIO(export(run, table, timings=timings).decode()))
        return [row["strategy_s" if table == "timings" else "latency_s"] for row in rows]

    assert times("calls", timings=False) == ["", "0.5"]
    assert times("calls", timings=True) == ["1.25", "0.5"]
    assert times("turns", timings=False) == ["", "0.5"]
    assert times("units", timings=False) == [""]
    assert times("units", timings=True) == ["1.75"]
    assert times("timings", timings=False) == [""]
    assert times("timings", timings=True) == ["1.25"]


def test_csv_reads_back() -> None:
    run = Run.from_results(CELLS, {(cell.key, "t", 0): result(n, 3.0) for n, cell in enumerate(CELLS)})
    data = export(run, "calls")
    assert b"\r" not in data
    frame = pd.read_csv(io.BytesIO(data))
    assert list(frame.columns) == [*IDENTITY, *CALL_COLUMNS]
    assert frame["cost_usd"].tolist() == [0.1 + 0.2] * 6
    probes = list(csv.DictReader(io.StringIO(export(run, "probes").decode(), newline="")))
    assert probes[0]["answer"] == 'a,"b"\r\n\u2028|\\udcb2'
    assert probes[0]["gold"] == '["x","y"]'


def test_parquet_keeps_types_and_carries_no_versions_of_pandas() -> None:
    run = Run.from_results(CELLS, {(cell.key, "t", 0): result(n, 3.0) for n, cell in enumerate(CELLS)})
    data = export(run, "calls", "parquet")
    assert b"pandas" not in data
    table = pq.read_table(io.BytesIO(data))
    types = {field.name: str(field.type) for field in table.schema}
    assert types["input_tokens"] == types["cache_read_tokens"] == "int64"
    assert types["cost_usd"] == "double"
    assert types["compacted"] == "bool"
    assert types["cost_kind"] == "string"
    assert table["cache_read_tokens"].null_count == 6


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), min_size=1)


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4))
def test_markdown_keeps_one_cell_a_value(values: list[str]) -> None:
    markdown = render(pd.DataFrame({"x": values, "y": ["end"] * len(values)}), "md").decode()
    rows = markdown.split("\n")[2:-1]
    assert len(rows) == len(values)
    for row, value in zip(rows, values, strict=True):
        cells = re.split(r"(?<!\\)(?:\\\\)*\|", row)
        assert len(cells) == 4
        assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", row) == f"| {value} | end |"


def test_markdown_and_latex_escape_markup() -> None:
    frame = pd.DataFrame(
        {"input_tokens": pd.array([1, None], dtype="Int64"), "arm": ["*a* _b_ c_d|<e>\n`f`", "50% & #1 {x}^~\\"]}
    )
    assert render(frame, "md").decode() == (
        "| input_tokens | arm |\n| ---: | --- |\n"
        "| 1 | \\*a\\* \\_b\\_ c_d\\|\\<e\\><br>\\`f\\` |\n"
        "|  | 50% \\& #1 {x}^\\~\\\\ |\n"
    )
    assert render(frame, "tex").decode() == (
        "\\begin{tabular}{rl}\n\\toprule\ninput\\_tokens & arm \\\\\n\\midrule\n"
        "1 & *a* \\_b\\_ c\\_d\\textbar{}\\textless{}e\\textgreater{} `f` \\\\\n"
        " & 50\\% \\& \\#1 \\{x\\}\\textasciicircum{}\\textasciitilde{}\\textbackslash{} \\\\\n"
        "\\bottomrule\n\\end{tabular}\n"
    )


def test_unknown_tables_and_formats_are_refused() -> None:
    run = Run.from_results([], {})
    with pytest.raises(ConfigurationError, match="tables: calls, turns"):
        export(run, "call")
    with pytest.raises(ConfigurationError, match="formats: csv"):
        export(run, "calls", "xlsx")  # type: ignore[arg-type]
