import io
import json
import struct
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from compaction_lab.errors import TranscriptError
from compaction_lab.importers import load_transcripts

SAMPLE = json.dumps({"id": "s", "epoch": 1, "messages": [{"role": "user", "content": "go"}], "events": []})
HEADER = json.dumps({"eval": {"task": "store"}})


def archive(path: Path, members: dict[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def zstd_archive(path: Path, content: bytes, *, size: int | None = None) -> Path:
    """A zip whose sample is packed with zstd, which Python below 3.14 cannot write itself."""
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor().compress(content)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        file.writestr("samples/s_epoch_1.json", packed)
        info = file.infolist()[0]
        info.compress_type = 93
        info.file_size = len(content) if size is None else size
        info.CRC = __import__("zlib").crc32(content)
    raw = bytearray(buffer.getvalue())
    struct.pack_into("<H", raw, 8, 93)  # the method in the local header
    path.write_bytes(raw)
    return path


def test_samples_are_read_from_deflate_and_zstd(tmp_path: Path) -> None:
    plain = archive(
        tmp_path / "a.eval", {"header.json": HEADER, "samples/s_epoch_1.json": SAMPLE, "summaries.json": "["}
    )
    (transcript,) = load_transcripts(plain)
    assert (transcript.id, transcript.meta["task"]) == ("s_epoch_1", "store")
    assert [m.text for m in load_transcripts(zstd_archive(tmp_path / "z.eval", SAMPLE.encode()))[0].messages] == ["go"]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the standard library reads zstd from 3.14 on")
def test_zstd_without_its_package_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zstd_archive(tmp_path / "z.eval", SAMPLE.encode())
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(TranscriptError, match=r"pip install 'compaction-lab\[zstd\]'"):
        load_transcripts(path)


@pytest.mark.parametrize(
    "name", ["../../evil.json", "/etc/evil.json", "samples/../../evil.json", "C:\\evil.json", "..\\e"]
)
def test_names_that_lead_out_of_the_archive_are_refused(name: str, tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    path = archive(inside / "a.eval", {"samples/s_epoch_1.json": SAMPLE, name: SAMPLE})
    with pytest.raises(TranscriptError, match="expected names inside the archive"):
        load_transcripts(path)
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["a.eval"]


@pytest.mark.parametrize("packing", ["deflate", "zstd", "zstd that lies"])
def test_a_bomb_is_refused_before_it_fills_the_memory(packing: str, tmp_path: Path) -> None:
    limit = 128 * 1024**2
    bomb = b" " * (limit + 4096)
    if packing == "deflate":
        path = archive(tmp_path / "a.eval", {"samples/s_epoch_1.json": bomb})
    else:
        path = zstd_archive(tmp_path / "z.eval", bomb, size=10 if "lies" in packing else None)
    assert path.stat().st_size < 1024**2
    del bomb
    tracemalloc.start()
    with pytest.raises(TranscriptError, match="unpacks to more, expected at most 128 MiB"):
        load_transcripts(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * limit


@pytest.mark.parametrize("damage", ["cut off", "flipped", "no archive", "encrypted"])
def test_damaged_archives_are_refused(damage: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.eval", {"header.json": HEADER, "samples/s_epoch_1.json": SAMPLE * 50})
    raw = bytearray(path.read_bytes())
    if damage == "cut off":
        raw = raw[: len(raw) // 2]
    elif damage == "no archive":
        raw = bytearray(b"not a zip")
    elif damage == "encrypted":
        for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            raw[raw.rindex(mark) + offset] |= 1
    else:
        at = raw.index(b"samples/s_epoch_1.json") + 40
        raw[at : at + 8] = bytes(8)
    path.write_bytes(raw)
    with pytest.raises(TranscriptError, match=r"a\.eval"):
        load_transcripts(path)
