"""A result file is read by its content, compressed or not, and none of its claims can cost much."""

import gzip
import io
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats import zstd as zstd_module
from nightjar_formats.limits import MAX_RATIO, RATIO_FREE_BYTES
from nightjar_formats.readers.decoding.inflate import inflated
from nightjar_formats.refused import Refused, TooMuch

from tests.results.formats.samples import MOST_SECONDS, cost_of

TEXT = b"<testsuites>" + bytes(range(256)) * 40 + b"</testsuites>"
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"

Compress = Callable[[bytes], bytes]


def zstd(content: bytes) -> bytes:
    return zstd_module.compress(content)


class Trickle(io.RawIOBase):
    """A stream that returns less than requested, as a socket does."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def read(self, size: int = -1) -> bytes:
        return self._content.read(min(size, 7) if size >= 0 else 7)


def opened(content: bytes) -> bytes:
    return inflated(io.BytesIO(content), "te.xml.gz").read()


def refusal(content: bytes, kind: type[Refused] = Refused) -> str:
    with pytest.raises(kind) as caught:
        opened(content)
    text = str(caught.value)
    assert text.startswith("te.xml.gz ")
    assert "None" not in text
    return text


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstd])
def test_the_content_decides_whatever_the_name_says(compress: Compress) -> None:
    assert opened(compress(TEXT)) == TEXT


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstd])
def test_a_stream_may_return_little_at_a_time(compress: Compress) -> None:
    assert inflated(Trickle(compress(TEXT)), "te.xml").read() == TEXT  # type: ignore[arg-type]


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_all_members_and_frames_are_read(compress: Compress) -> None:
    assert opened(compress(TEXT) + compress(b"") + compress(b"more")) == TEXT + b"more"


def test_zstd_frames_without_data_are_skipped() -> None:
    assert opened(SKIPPABLE + zstd(TEXT) + SKIPPABLE + zstd(b"more")) == TEXT + b"more"


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
@settings(deadline=None, max_examples=30)
@given(parts=st.lists(st.binary(max_size=300).map(b"<".__add__), min_size=1, max_size=4), cut=st.integers(1, 300))
def test_a_file_truncated_anywhere_is_refused(compress: Compress, parts: list[bytes], cut: int) -> None:
    members = [compress(part) for part in parts]
    assert opened(b"".join(members)) == b"".join(parts)
    last = members[-1]
    remainder = last[: max(4, len(last) - cut)]
    with pytest.raises(Refused):
        opened(b"".join(members[:-1]) + remainder)


def test_a_truncated_file_says_where_it_ends() -> None:
    content = gzip.compress(TEXT)
    assert "te.xml.gz ends too early: its compressed data is cut off after 100 bytes" in refusal(content[:100])


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
@pytest.mark.parametrize("behind", [b"x", b"\0" * 512, b"<html>504 Gateway Time-out</html>", b"\x1f"])
def test_data_after_the_end_is_refused(compress: Compress, behind: bytes) -> None:
    assert "other data after the end of its compressed data" in refusal(compress(TEXT) + behind)


def test_gzip_and_zstd_must_not_be_mixed_in_one_file() -> None:
    assert "after the end" in refusal(gzip.compress(TEXT) + zstd(TEXT))


def test_damaged_data_is_not_called_truncated() -> None:
    content = bytearray(gzip.compress(TEXT))
    content[-8] ^= 1
    assert "cannot be decompressed" in refusal(bytes(content))
    assert "incorrect data check" in refusal(bytes(content))


@pytest.mark.parametrize("outer", [gzip.compress, zstd])
@pytest.mark.parametrize("inner", [gzip.compress, zstd])
def test_double_compression_is_refused(outer: Compress, inner: Compress) -> None:
    assert "compressed twice" in refusal(outer(inner(TEXT)))


@pytest.mark.parametrize(
    ("head", "contents"),
    [
        (b"PK\x03\x04rest", "a zip archive"),
        (b"te.xml" + b"\0" * 251 + b"ustar\0" + b"\0" * 300, "a tar archive"),
        (b"BZh91AY&SY", "bzip2 data"),
        (b"\xfd7zXZ\x00\x00", "xz data"),
        (b"7z\xbc\xaf\x27\x1c\x00", "a 7z archive"),
    ],
)
def test_archives_are_refused_with_the_accepted_formats(head: bytes, contents: str) -> None:
    text = (
        f"te.xml.gz is, or contains, {contents}, which is not accepted. Send it as it is, or compressed as .gz or .zst"
    )
    assert refusal(head) == refusal(gzip.compress(head)) == text


def test_an_empty_file_is_refused() -> None:
    assert "te.xml.gz is empty: the program ended before it wrote the report" in refusal(b"")
    assert "is empty after decompression" in refusal(gzip.compress(b""))


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_a_bomb_is_refused_by_its_ratio(compress: Compress) -> None:
    assert f"more than {MAX_RATIO} times as large uncompressed" in refusal(compress(bytes(4 << 20)), TooMuch)


@pytest.mark.parametrize("compress", [gzip.compress, zstd])
def test_a_short_file_may_repeat_itself(compress: Compress) -> None:
    assert opened(compress(bytes(RATIO_FREE_BYTES))) == bytes(RATIO_FREE_BYTES)


def test_a_file_that_is_not_compressed_has_the_same_limit() -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return b" " * size

    stream = inflated(Endless(), "te.xml")  # type: ignore[arg-type]
    with pytest.raises(TooMuch, match="longer than 512 MiB"):
        deque(iter(lambda: stream.read(1 << 20), b""), maxlen=0)


def test_a_zstd_frame_must_not_need_much_memory() -> None:
    options: dict[int, int] = {zstd_module.CompressionParameter.window_log: 27}
    content = zstd_module.compress(bytes(1 << 27), options=options)
    assert "zstd up to level 19" in refusal(content)


@settings(deadline=None, max_examples=100)
@given(st.sampled_from([b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", SKIPPABLE]), st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(head: bytes, rest: bytes) -> None:
    with suppress(Refused):
        opened(head + rest)


def gzip_bomb(path: Path) -> None:
    with gzip.open(path, "wb", 1) as file:
        file.write(b"<testsuites>")
        for _ in range(1 << 8):
            file.write(b" " * (1 << 20))


def zstd_bomb(path: Path) -> None:
    with zstd_module.ZstdFile(path, "wb") as file:
        file.write(b"<testsuites>")
        for _ in range(1 << 9):
            file.write(b" " * (1 << 20))


def bomb_of_many_frames(path: Path) -> None:
    path.write_bytes(zstd(b"<testsuites>") + zstd(b" " * (1 << 21)) * 2000)


def bomb_in_gzip(path: Path) -> None:
    gzip_bomb(path)
    path.write_bytes(gzip.compress(path.read_bytes()))


@pytest.mark.parametrize("bomb", [gzip_bomb, zstd_bomb, bomb_of_many_frames, bomb_in_gzip])
def test_a_bomb_costs_neither_time_nor_memory(bomb: Callable[[Path], None], tmp_path: Path) -> None:
    bomb(tmp_path / "bomb")
    cost = cost_of(tmp_path / "bomb", "junit")
    assert cost.output.startswith(("TooMuch", "Refused"))
    assert cost.seconds < MOST_SECONDS
    assert cost.megabytes < 100
