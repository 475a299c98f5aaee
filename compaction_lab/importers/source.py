"""Files as records: bytes to JSON values with the place of every fault; no format is known here."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import TranscriptError

HEAD_BYTES = 64 * 1024
"""What importers see of a file to tell its format."""

MAX_RECORD_BYTES = 128 * 1024 * 1024
"""Longest line, and longest file that is one JSON document."""

MAX_VALUES = 10_000_000
"""Most values in one record: a few bytes of JSON become a hundred in memory."""

MAX_NESTING = 100
"""Deepest nesting of objects and lists; sessions stay under 20, and deeper ones overflow later readers."""

_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_EXCERPT = 30


@dataclass(frozen=True, slots=True)
class Record:
    """A piece of a file that an importer reads: a line, a whole document, or a part of one.

    Parameters
    ----------
    path
        The file.
    line
        1-based line of a line-oriented file; ``None`` for a document.
    inside
        Path inside the JSON value, such as ``[3].traj``.
    raw
        The bytes to parse; unused when ``parsed`` is given.
    offset
        Byte offset of ``raw`` in the file.
    parsed
        A one-element tuple with the value of a record cut out of a larger one.
    lines
        Set when the record is a whole file with one message or event a line.
    warnings
        What was accepted but odd in the JSON itself, counted by kind.
    keep_media
        Whether importers keep the payload of images and files.
    """

    path: Path
    line: int | None = None
    inside: str = ""
    raw: bytes = b""
    offset: int = 0
    parsed: tuple[JSON] | None = None
    lines: Source | None = None
    warnings: Counter[str] = field(default_factory=Counter)
    keep_media: bool = False

    @property
    def where(self) -> str:
        """The place as error messages state it."""
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.path}{line}{', ' + self.inside if self.inside else ''}"

    def at(self, name: str) -> str:
        """Return the place of a field or item of this record, such as ``messages[2]``."""
        if not self.inside:
            return f"{self.where}, {name}"
        return self.where + (name if name.startswith("[") else f".{name}")

    def part(self, name: str, value: JSON) -> Record:
        """Return the record of a part of this one."""
        joined = name if not self.inside or name.startswith("[") else f".{name}"
        return Record(
            self.path,
            self.line,
            self.inside + joined,
            parsed=(value,),
            warnings=self.warnings,
            keep_media=self.keep_media,
        )

    def value(self) -> JSON:
        """Parse and return the JSON value.

        Raises
        ------
        TranscriptError
            If the bytes are not UTF-8, not JSON, or nested too deeply.
        """
        if self.parsed is not None:
            return self.parsed[0]
        return _parse(self)

    def values(self) -> Iterator[tuple[Record, JSON]]:
        """Yield the values of a whole file with the record each came from: its lines, or those of its one list."""
        if self.lines is None:
            yield self, self.value()
            return
        first = next(self.lines.lines(), None)
        if first is not None and first.is_complete():
            for line in self.lines.lines():
                yield line, line.value()
                self._take_warnings(line)
            return
        document = self.lines.document()
        value = document.value()
        self._take_warnings(document)
        for index, item in enumerate(value if isinstance(value, list) else []):
            yield document.part(f"[{index}]", item), item
        if not isinstance(value, list):
            yield document, value

    def is_complete(self) -> bool:
        """Whether the bytes are a JSON object of their own, as a line of a line-oriented file is."""
        return self.raw.startswith(b"{") and self.raw.endswith(b"}")

    def _take_warnings(self, other: Record) -> None:
        self.warnings.update(other.warnings)

    def refuse(self, name: str, found: str, expected: str, remedy: str) -> NoReturn:
        """Raise the error that names this record's field, what it holds, what it should hold and what to do."""
        raise TranscriptError(f"{self.at(name) if name else self.where}: {found}, expected {expected}; {remedy}.")


@dataclass(frozen=True, slots=True)
class Source:
    """One file to import."""

    path: Path
    max_record_bytes: int = MAX_RECORD_BYTES
    keep_media: bool = False

    def head(self) -> bytes:
        """Return the first bytes, without a byte-order mark."""
        with self.path.open("rb") as file:
            return file.read(HEAD_BYTES).removeprefix(_BOM)

    def lines(self) -> Iterator[Record]:
        """Yield a record for each line that is not blank.

        Lines end in LF or CRLF and nothing else: other separators that Unicode knows may stand inside JSON text.
        """
        with self.path.open("rb") as file:
            offset, number = 0, 0
            while raw := file.readline(self.max_record_bytes + 1):
                number += 1
                if len(raw) > self.max_record_bytes:
                    raise TranscriptError(self._too_long(f"{self.path}, line {number}"))
                start = len(_BOM) if offset == 0 and raw.startswith(_BOM) else 0
                if text := raw[start:].strip(b" \t\r\n"):
                    yield Record(self.path, number, raw=text, offset=offset + start, keep_media=self.keep_media)
                offset += len(raw)

    def document(self) -> Record:
        """Return the whole file as one record."""
        if self.path.stat().st_size > self.max_record_bytes:
            raise TranscriptError(self._too_long(str(self.path)))
        raw = self.path.read_bytes()
        start = len(_BOM) if raw.startswith(_BOM) else 0
        return Record(self.path, raw=raw[start:] if start else raw, offset=start, keep_media=self.keep_media)

    def whole(self) -> Record:
        """Return the file as one record whose values :meth:`Record.values` gives one by one."""
        return Record(self.path, lines=self, keep_media=self.keep_media)

    def is_blank(self) -> bool:
        """Return whether the file holds nothing but white space."""
        with self.path.open("rb") as file:
            head = file.read(HEAD_BYTES).removeprefix(_BOM)
            while head and not head.strip():
                head = file.read(HEAD_BYTES)
            return not head

    def _too_long(self, where: str) -> str:
        megabytes = self.max_record_bytes // 1024**2
        return (
            f"{where}: found a record longer than {megabytes} MiB, expected at most that; "
            "split the file into one conversation a line, or take payloads such as images out of it."
        )


def _parse(record: Record) -> JSON:
    raw = record.raw
    for mark, name in _OTHER_BOMS.items():
        if raw.startswith(mark):
            record.refuse("", f"found {name} text", "UTF-8", f"convert it: iconv -f {name} -t UTF-8")
    _refuse_too_many_values(record)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        record.refuse(
            "",
            f"byte {raw[error.start]:#04x} at offset {record.offset + error.start} of the file is not UTF-8",
            "UTF-8 text",
            "convert the file to UTF-8 with its real encoding",
        )

    def constant(name: str) -> float:
        record.warnings["non_finite_number"] += 1
        return float(name.replace("Infinity", "inf"))

    def integer(digits: str) -> JSON:
        try:
            return int(digits)
        except ValueError:  # longer than Python converts; kept as the text it is
            record.warnings["huge_integer"] += 1
            return digits

    def fraction(digits: str) -> float:
        number = float(digits)
        if math.isinf(number):
            record.warnings["non_finite_number"] += 1
        return number

    try:
        value: JSON = json.loads(text, parse_constant=constant, parse_int=integer, parse_float=fraction)
    except json.JSONDecodeError as error:
        _refuse_json(record, text, error)
    except RecursionError:
        _refuse_nesting(record)
    if _nested_deeper(value, MAX_NESTING):
        _refuse_nesting(record)
    return value


def _refuse_too_many_values(record: Record) -> None:
    raw = record.raw
    if len(raw) <= MAX_VALUES:
        return
    found = sum(map(raw.count, (b",", b"[", b"{")))
    if found > MAX_VALUES:
        record.refuse(
            "",
            f"found {found:,} commas and brackets in one record",
            f"at most {MAX_VALUES:,}",
            "split it into one conversation a line",
        )


def _refuse_json(record: Record, text: str, error: json.JSONDecodeError) -> NoReturn:
    line = error.lineno if record.line is None else record.line
    column = error.colno
    cut_off = " (the file may be cut off)" if not text[error.pos :] or error.msg.startswith("Unterminated") else ""
    rest = text[error.pos : error.pos + _EXCERPT].encode("ascii", "backslashreplace").decode()
    found = f"{rest!r}" if rest else "the end"
    raise TranscriptError(
        f"{record.path}, line {line}, column {column}: malformed JSON ({error.msg}), found {found}{cut_off}, "
        "expected valid JSON; correct or remove the record."
    )


def _refuse_nesting(record: Record) -> NoReturn:
    record.refuse(
        "",
        f"objects and lists are nested more than {MAX_NESTING} deep",
        "a conversation",
        "write deeply nested values as JSON text",
    )


def _nested_deeper(value: JSON, limit: int) -> bool:
    level: list[JSON] = [value]
    for _ in range(limit):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True
