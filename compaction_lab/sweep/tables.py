"""Tables of a run as bytes for other tools: csv, parquet, markdown and LaTeX; equal cells export equal bytes."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from typing import Literal, TypeAlias

import pandas as pd

from compaction_lab.errors import ConfigurationError
from compaction_lab.sweep.loading import Run

Format: TypeAlias = Literal["csv", "parquet", "md", "tex"]
FORMATS: tuple[Format, ...] = ("csv", "parquet", "md", "tex")
TABLES = ("calls", "turns", "compactions", "probes", "units", "cells", "timings")

_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\n": " ",
    "\r": " ",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}


def export(run: Run, table: str, format: Format = "csv", *, timings: bool = False) -> bytes:  # noqa: A002 - the option's name
    """Return one table of a run as the bytes of a file.

    Parameters
    ----------
    run
        A stored run or one in memory.
    table
        ``calls``, ``turns``, ``compactions``, ``probes``, ``units``, ``cells`` or ``timings``.
    format
        ``csv`` (UTF-8, newline line ends), ``parquet``, ``md`` or ``tex`` (booktabs).
    timings
        Also measured times, which differ from run to run; without them their columns are there and empty.

    Raises
    ------
    ConfigurationError
        For a table or format that does not exist, or Parquet without pyarrow.
    """
    if table not in TABLES:
        raise ConfigurationError(f"table {table!r} does not exist; tables: {', '.join(TABLES)}")
    source = run if timings or table in ("cells", "probes", "compactions") else run.untimed()
    return render(getattr(source, table), format)


def render(frame: pd.DataFrame, format: Format) -> bytes:  # noqa: A002 - the option's name
    """Return a table as the bytes of a file; numbers are written so that reading them gives the same number.

    Raises
    ------
    ConfigurationError
        For a format that does not exist, or Parquet without pyarrow.
    """
    if format == "parquet":
        return _parquet(frame)
    writers: dict[str, Callable[[pd.DataFrame], str]] = {"csv": _csv, "md": _markdown, "tex": _latex}
    if format not in writers:
        raise ConfigurationError(f"format {format!r} does not exist; formats: {', '.join(FORMATS)}")
    return writers[format](frame).encode()


def _texts(frame: pd.DataFrame) -> list[list[str]]:
    """Return the rows as text, missing values empty."""
    columns = [[_value(value) for value in frame[name].astype(object)] for name in frame]
    return [list(row) for row in zip(*columns, strict=True)]


def _value(value: object) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(float(value))
    return str(value).encode("utf-8", "backslashreplace").decode()


def _csv(frame: pd.DataFrame) -> str:
    rows = [[str(name) for name in frame], *_texts(frame)]
    return "".join(",".join(map(_quoted, row)) + "\n" for row in rows)


def _quoted(value: str) -> str:
    """Quote a csv field where a reader could take it for more or less than it is (RFC 4180)."""
    return '"' + value.replace('"', '""') + '"' if re.search(r'[",\r\n]|^\s|\s$', value) else value


def _markdown(frame: pd.DataFrame) -> str:
    rows = [[str(name) for name in frame], *_texts(frame)]
    lines = ["| " + " | ".join(map(_plain_markdown, row)) + " |\n" for row in rows]
    rule = "| " + " | ".join("---:" if _is_number(frame[name]) else "---" for name in frame) + " |\n"
    return lines[0] + rule + "".join(lines[1:])


def _plain_markdown(value: str) -> str:
    """Escape what GitHub's markdown would read as markup; an underscore inside a word is none."""
    escaped = re.sub(r"([\\`*\[\]<>|&~$])|(?<!\w)_|_(?!\w)", r"\\\g<0>", value)
    return re.sub(r"\r\n|\r|\n", "<br>", escaped)


def _latex(frame: pd.DataFrame) -> str:
    align = "".join("r" if _is_number(frame[name]) else "l" for name in frame)
    rows = [[str(name) for name in frame], *_texts(frame)]
    lines = [" & ".join("".join(_TEX.get(sign, sign) for sign in value) for value in row) + " \\\\\n" for row in rows]
    body = "".join(lines[1:])
    return f"\\begin{{tabular}}{{{align}}}\n\\toprule\n{lines[0]}\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n"


def _is_number(values: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values)) and not pd.api.types.is_bool_dtype(values)


def _parquet(frame: pd.DataFrame) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        message = "format parquet needs pyarrow: pip install 'compaction-lab[parquet]', or export csv"
        raise ConfigurationError(message) from error
    # Columns one by one under a schema of our own: pandas' metadata would carry its version into the bytes.
    types = {"Int64": pa.int64(), "float64": pa.float64(), "boolean": pa.bool_()}
    names = [str(name) for name in frame]
    columns = []
    for name in names:
        kind = types.get(str(frame[name].dtype))
        values = [None if pd.isna(value) else value for value in frame[name].astype(object)]
        columns.append(pa.array(values if kind else [_none_or_text(value) for value in values], kind or pa.string()))
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, names=names), buffer, compression="snappy", store_schema=False)
    return buffer.getvalue()


def _none_or_text(value: object) -> str | None:
    return None if value is None else _value(value)
