"""Recorded sessions in, transcripts out: one small module a format, told from the content."""

from compaction_lab.importers.lab import write_transcripts
from compaction_lab.importers.load import ImportReport, Skipped, known_formats, load_transcripts, read_transcripts

__all__ = ["ImportReport", "Skipped", "known_formats", "load_transcripts", "read_transcripts", "write_transcripts"]
