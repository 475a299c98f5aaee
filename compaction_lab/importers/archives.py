"""Members of untrusted zip archives, read one at a time into bounded memory; nothing is ever unpacked to disk."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn, cast

from compaction_lab.errors import TranscriptError

MAX_MEMBERS = 100_000
MAX_ARCHIVE_BYTES = 4 * 1024**3
"""Largest total of all members read from one archive, unpacked."""

_ZSTD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_CHUNK = 1024 * 1024


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive whose names stay inside it.

    Raises
    ------
    TranscriptError
        If it is no archive, is cut off, has too many members, or one is named like a path out of it.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise TranscriptError(
            f"{path}: found no readable zip archive ({error}), expected an .eval log; "
            "the file may be cut off: copy it again."
        ) from error
    with archive:
        members = archive.infolist()
        if len(members) > MAX_MEMBERS:
            _refuse(path, f"found {len(members):,} members", f"at most {MAX_MEMBERS:,}", "split the log")
        for member in members:
            name = member.filename.replace("\\", "/")
            if PurePosixPath(name).is_absolute() or ".." in name.split("/") or ":" in name.split("/")[0]:
                _refuse(
                    path,
                    f"found a member named {member.filename!r}",
                    "names inside the archive",
                    "do not trust the file",
                )
        yield archive


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    """Return a member's content, at most ``limit`` bytes of it however small it says it is.

    Raises
    ------
    TranscriptError
        If it is larger, damaged, encrypted, or packed by a method that is not available.
    """
    path = Path(archive.filename or "")
    where = f"{path}, member {member.filename}"
    try:
        if member.compress_type == _ZSTD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
            content = _read_zstd(archive, member, limit, where)
        else:
            with archive.open(member) as file:
                content = file.read(limit + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, ValueError) as error:
        raise TranscriptError(
            f"{where}: found damaged data ({error}), expected a complete member; copy the archive again."
        ) from error
    except (RuntimeError, NotImplementedError) as error:
        raise TranscriptError(
            f"{where}: {error}, expected a member packed with deflate or zstd; write the log again."
        ) from error
    if len(content) > limit:
        _refuse(where, "found a member that unpacks to more", f"at most {limit // 1024**2} MiB", "leave the file out")
    return content


def _read_zstd(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int, where: str) -> bytes:
    """Unpack a member that Python below 3.14 cannot."""
    try:
        import zstandard
    except ImportError as error:
        raise TranscriptError(
            f"{where}: found zstd compression, which Python below 3.14 needs a package for, expected zstandard to be "
            "installed; run: pip install 'compaction-lab[zstd]'"
        ) from error
    if member.flag_bits & 1:
        raise TranscriptError(f"{where}: found an encrypted member, expected a plain one; write the log without.")
    file = cast("IO[bytes]", archive.fp)
    file.seek(member.header_offset)
    signature, name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise zipfile.BadZipFile("no local header")
    file.seek(name_length + extra_length, io.SEEK_CUR)
    content = bytearray()
    unpacker = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
    left = member.compress_size
    try:
        while left > 0 and len(content) <= limit and (packed := file.read(min(left, _CHUNK // 64))):
            left -= len(packed)
            content += unpacker.decompress(packed)
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(str(error)) from error
    if len(content) <= limit and (left or zlib.crc32(content) != member.CRC):
        raise zipfile.BadZipFile("wrong checksum")
    return bytes(content)


def _refuse(where: object, found: str, expected: str, remedy: str) -> NoReturn:
    raise TranscriptError(f"{where}: {found}, expected {expected}; {remedy}.")
