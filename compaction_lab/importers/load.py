"""Loads files and folders of recorded sessions: tells the format, reads what it can, says what it could not."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from compaction_lab.conversation.transcript import Transcript
from compaction_lab.errors import ConfigurationError, TranscriptError
from compaction_lab.importers import (
    agent_framework,
    anthropic,
    call_log,
    claude_code,
    codex,
    inspect_log,
    lab,
    langfuse,
    langsmith,
    longmemeval,
    mini_swe_agent,
    openai_chat,
    openai_responses,
    openhands,
    openhands_v1,
    otel_genai,
    semantic_kernel,
    sharegpt,
    swe_agent,
    tau2_bench,
    tau_bench,
)
from compaction_lab.importers.base import Importer
from compaction_lab.importers.source import HEAD_BYTES, Record, Source

_MODULES = (
    lab,
    openai_chat,
    openai_responses,
    anthropic,
    call_log,
    claude_code,
    codex,
    otel_genai,
    langsmith,
    langfuse,
    swe_agent,
    mini_swe_agent,
    openhands,
    openhands_v1,
    tau_bench,
    tau2_bench,
    inspect_log,
    longmemeval,
    sharegpt,
    agent_framework,
    semantic_kernel,
)
IMPORTERS: Mapping[str, Importer] = {module.IMPORTER.name: module.IMPORTER for module in _MODULES}
"""Every known format by name."""

OnError = Literal["stop", "skip"]
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".traj", ".eval"})
_PARTS = {"events": "base_state.json", "simulations": "results.json"}
"""Folders whose files are parts of a session, and the file beside them through which they are read."""

REPORT = "import_report.json"
"""What ``import`` writes beside the sessions of a folder: what it found, accepted and left out."""

_SURE = 0.6
"""From which confidence on a record is said to look like another format."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record or file that was not read, and the error that says why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was found in the files, and what could not be read.

    ``warnings`` counts what was accepted but odd, by kind, over all transcripts; ``formats`` counts transcripts.
    ``model_calls`` are answers of a model, of which ``calls_with_usage`` have recorded token counts; ``compactions``
    are those the recording agents made, which hide earlier messages from later calls.
    """

    files: int = 0
    transcripts: int = 0
    messages: int = 0
    turns: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    unanswered_calls: int = 0
    model_calls: int = 0
    calls_with_usage: int = 0
    compactions: int = 0
    formats: Mapping[str, int] = field(default_factory=dict)
    warnings: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()

    @property
    def usage_coverage(self) -> float | None:
        """Share of the model calls with recorded usage, ``None`` without calls."""
        return self.calls_with_usage / self.model_calls if self.model_calls else None


def load_transcripts(
    paths: Paths,
    *,
    format: str | None = None,  # noqa: A002
    on_error: OnError = "stop",
    keep_media: bool = False,
) -> list[Transcript]:
    """Return the transcripts of recorded sessions.

    Parameters
    ----------
    paths
        A file, a folder (searched for ``.json``, ``.jsonl``, ``.ndjson``, ``.traj``, ``.eval``), or several of them.
    format
        Name of the format; told from the content by default.
    on_error
        ``stop`` raises at the first record that is not a conversation, ``skip`` leaves it out;
        :func:`read_transcripts` also returns what was left out.
    keep_media
        Keep the payload of images, sounds and files, not only their type and size.

    Raises
    ------
    TranscriptError
        If a path does not exist, and as ``on_error`` says.
    ConfigurationError
        If the format is unknown.
    """
    return read_transcripts(paths, format=format, on_error=on_error, keep_media=keep_media)[0]


def read_transcripts(
    paths: Paths,
    *,
    format: str | None = None,  # noqa: A002
    on_error: OnError = "stop",
    keep_media: bool = False,
) -> tuple[list[Transcript], ImportReport]:
    """Return the transcripts of :func:`load_transcripts` and a report of what was found and skipped."""
    if format is not None and format not in IMPORTERS:
        raise ConfigurationError(
            f"format={format!r}: found an unknown format, expected one of:\n{known_formats()}\n"
            "Leave the format out to have it told from the content."
        )
    files = _files(paths)
    found: list[Transcript] = []
    skipped: list[Skipped] = []
    for file in files:
        read: list[tuple[int, Transcript]] = []
        number = 0
        try:
            importer = IMPORTERS[format] if format else sniff_format(file)
            for number, record in enumerate(importer.records(Source(file, keep_media=keep_media)), start=1):
                try:
                    read.extend([(record.line or number, transcript) for transcript in importer.read(record)])
                except TranscriptError as error:
                    told = error if format else _another_format(error, record, importer)
                    if on_error == "stop":
                        raise told from error
                    skipped.append(Skipped(record.where, str(told)))
        except TranscriptError as error:
            if on_error == "stop":
                raise
            skipped.append(Skipped(str(file), str(error)))
        found.extend(_named(read, file, several=number > 1))
    transcripts = list(_distinct(found))
    return transcripts, _report(len(files), transcripts, skipped)


def sniff_format(path: Path) -> Importer:
    """Return the importer that is surest of a file.

    Raises
    ------
    TranscriptError
        If the file is empty, or no importer knows it.
    """
    source = Source(path)
    if source.is_blank():
        raise TranscriptError(f"{path}: found an empty file, expected recorded sessions; give a file with content.")
    confidence, importer = _surest(source.head(), path)
    if confidence > 0:
        return importer
    _first_record(source).value()  # a fault in the file itself says more than an unknown format
    raise TranscriptError(
        f"{path}: found JSON in no format the lab knows, expected one of:\n{known_formats()}\n"
        "Convert the file to one of them, or name its format."
    )


def known_formats() -> str:
    """Return the names of all formats with a line each."""
    return "\n".join(f"  {importer.name:<16} {importer.summary}" for importer in IMPORTERS.values())


def _surest(head: bytes, path: Path) -> tuple[float, Importer]:
    sniffed = [(importer.sniff(head, path), importer) for importer in IMPORTERS.values()]
    return max(sniffed, key=lambda pair: pair[0])


def _another_format(error: TranscriptError, record: Record, importer: Importer) -> TranscriptError:
    """Say which format a line looks like when it is not that of the file, which its first line told."""
    if record.line is None or not record.raw:
        return error
    confidence, other = _surest(record.raw[:HEAD_BYTES], record.path)
    if other is importer or confidence < _SURE:
        return error
    return TranscriptError(
        f"{error} The file was told to be {importer.name} and this line looks like {other.name}: "
        "keep one format a file."
    )


def _first_record(source: Source) -> Record:
    if source.path.suffix in {".jsonl", ".ndjson"}:
        return next(source.lines())
    return source.document()


def _files(paths: Paths) -> list[Path]:
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files: list[Path] = []
    for path in map(Path, listed):
        if path.is_dir():
            found = (file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
            inside = sorted(file for file in found if file.name != REPORT)
            if not inside:
                raise TranscriptError(
                    f"{path}: found a folder without sessions, expected files ending in "
                    f"{', '.join(sorted(_SUFFIXES))}; name the files themselves."
                )
            files.extend(file for file in inside if not _is_part(file))
        elif path.is_file():
            files.append(path)
        elif path.exists():
            raise TranscriptError(f"{path}: found a pipe, socket or device, expected a file or folder; save it first.")
        else:
            raise TranscriptError(f"{path}: found no such file, expected a file or folder; correct the path.")
    return files


def _is_part(file: Path) -> bool:
    whole = _PARTS.get(file.parent.name)
    return whole is not None and (file.parent.parent / whole).is_file()


def _named(numbered: list[tuple[int, Transcript]], file: Path, *, several: bool) -> Iterator[Transcript]:
    """Name what has no id after its file and, where the file has several records, its line or number."""
    stem = file.name.split(".")[0] or file.name
    for number, transcript in numbered:
        if transcript.id:
            yield transcript
        else:
            yield replace(transcript, id=f"{stem}:{number}" if several else stem)


def _distinct(transcripts: list[Transcript]) -> Iterator[Transcript]:
    taken: set[str] = set()
    reserved = {transcript.id for transcript in transcripts}
    for transcript in transcripts:
        name, number = transcript.id, 1
        while name in taken or (number > 1 and name in reserved):
            number += 1
            name = f"{transcript.id}~{number}"
        taken.add(name)
        if number == 1:
            yield transcript
        else:
            yield replace(transcript, id=name, warnings={**transcript.warnings, "renamed_id": 1})


def _report(files: int, transcripts: Sequence[Transcript], skipped: Sequence[Skipped]) -> ImportReport:
    warnings: Counter[str] = Counter()
    roles: Counter[str] = Counter()
    turns = calls = unanswered = answers = measured = 0
    for transcript in transcripts:
        warnings.update(transcript.warnings)
        roles.update(message.role for message in transcript.messages)
        turns += sum(message.role == "user" and message.source != "summary" for message in transcript.messages)
        calls += sum(len(message.calls) for message in transcript.messages)
        unanswered += transcript.warnings.get("unanswered_call", 0)
        by_call: dict[str, bool] = {}
        for number, message in enumerate(transcript.messages):
            if message.role == "assistant" and message.source != "summary":
                name = message.response_id or f"#{number}"
                by_call[name] = by_call.get(name, False) or message.usage is not None
        answers += len(by_call)
        measured += sum(by_call.values())
    return ImportReport(
        files=files,
        transcripts=len(transcripts),
        messages=roles.total(),
        turns=turns,
        tool_calls=calls,
        tool_results=roles["tool"],
        unanswered_calls=unanswered,
        model_calls=answers,
        calls_with_usage=measured,
        compactions=sum(len(transcript.compactions) for transcript in transcripts),
        formats=dict(Counter(transcript.format for transcript in transcripts)),
        warnings=dict(sorted(warnings.items())),
        skipped=tuple(skipped),
    )
