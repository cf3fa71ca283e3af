"""Archives from anybody: their files are read within limits, and nothing else happens."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import BinaryIO

import pytest
from nightjar_formats.limits import RATIO_FREE_BYTES
from nightjar_formats.refused import Refused, TooMuch

from handlers.ci_reports.zips import MOST_DIRECTORY_BYTES, MOST_FILES, read_zip
from sandbox.model.workflows import zipped


def read(content: bytes, ending: str = ".xml") -> dict[str, bytes]:
    """Read all files in an archive whose names have this ending."""
    pairs = read_zip(io.BytesIO(content), lambda name: name.endswith(ending), lambda name, file: (name, file.read()))
    return dict(pairs)


def test_the_wanted_files_are_read_by_name() -> None:
    files = {"z.xml": "<z/>", "deep/er/a.xml": "<a/>", "notes.txt": "no", "../out.xml": "<out/>", "folder.xml/": ""}
    assert list(read(zipped(files)).items()) == [
        ("../out.xml", b"<out/>"),
        ("deep/er/a.xml", b"<a/>"),
        ("z.xml", b"<z/>"),
    ]


def test_an_empty_archive_holds_nothing() -> None:
    assert read(zipped({})) == {}


GOOD = zipped({"a.xml": "<a/>" * 1000})


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"no archive", GOOD[:-30], GOOD[50:], b"\0" * 100 + GOOD[-22:]],
    ids=["empty", "short", "text", "cut off", "without its beginning", "a missing directory"],
)
def test_an_invalid_archive_is_refused(content: bytes) -> None:
    with pytest.raises(Refused):
        read(content)


def test_a_broken_file_is_refused_by_name() -> None:
    content = bytearray(zipped({"a.xml": bytes(range(256)) * 100}))
    content[60] ^= 0xFF
    with pytest.raises(Refused, match=r"a\.xml cannot be decompressed"):
        read(bytes(content))


def test_an_encrypted_file_is_refused() -> None:
    content = bytearray(zipped({"a.xml": "<a/>"}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(Refused, match="encrypted"):
        read(bytes(content))


def test_a_bomb_ends_early() -> None:
    """No report compresses a thousandfold."""
    with pytest.raises(TooMuch, match="200 times as large uncompressed"):
        read(zipped({"a.xml": b"\0" * (RATIO_FREE_BYTES + 1)}))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_methods_other_than_deflate_are_refused_before_decompression(method: int) -> None:
    """A kilobyte of bzip2 decompresses to more than a gigabyte, in one piece."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        archive.writestr("a.xml", "<a/>")
    with pytest.raises(Refused, match=r"a\.xml is compressed with something other than deflate"):
        read(content.getvalue())


def test_a_file_before_the_beginning_of_the_archive_is_refused(tmp_path: Path) -> None:
    """This is no disk error that another try might cure."""
    content = bytearray(GOOD)
    begins = struct.unpack_from("<L", content, len(content) - 6)[0]
    struct.pack_into("<L", content, len(content) - 6, begins + 100)
    (tmp_path / "a.zip").write_bytes(content)
    with (tmp_path / "a.zip").open("rb") as file, pytest.raises(Refused):
        list(read_zip(file, lambda name: True, lambda name, inner: inner.read()))


def test_all_files_share_one_limit() -> None:
    taken = 0

    def count(name: str, file: BinaryIO) -> None:
        nonlocal taken
        while piece := file.read(300):
            taken += len(piece)

    archive = zipped({f"{number}.xml": bytes(range(250)) * 2 for number in range(10)})
    assert len(list(read_zip(io.BytesIO(archive), lambda name: True, count, limit=5_000))) == 10
    taken = 0
    with pytest.raises(TooMuch, match="together have more than 4,999 bytes"):
        list(read_zip(io.BytesIO(archive), lambda name: True, count, limit=4_999))
    assert taken <= 4_999


def test_the_sizes_in_an_archive_are_not_trusted() -> None:
    """The directory at its end says that the file is empty: then its content does not count as complete."""
    content = bytearray(zipped({"a.xml": "<a/>" * 10}))
    struct.pack_into("<L", content, content.index(b"PK\x01\x02") + 24, 0)
    with pytest.raises(Refused):
        read(bytes(content))


def test_too_many_files_are_refused() -> None:
    with pytest.raises(TooMuch, match="more than 2,000 files"):
        read(zipped({f"{number}.txt": "" for number in range(MOST_FILES + 1)}))


def test_a_directory_that_would_fill_the_memory_is_not_read() -> None:
    content = bytearray(GOOD)
    struct.pack_into("<L", content, len(content) - 10, MOST_DIRECTORY_BYTES + 1)
    with pytest.raises(TooMuch, match="its list of files"):
        read(bytes(content))
    # Nor a directory whose size stands only in the zip64 record.
    end, longer = GOOD[-22:], b"PK\x06\x07" + b"\0" * 16
    with pytest.raises(TooMuch, match="its list of files"):
        read(GOOD[:-22] + longer + end)
