"""Reports in other encodings than UTF-8: every format is read in UTF-16 and UTF-32, compressed or not."""

from __future__ import annotations

import codecs
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats import zstd
from nightjar_formats.readers import FORMATS, read
from nightjar_formats.readers.decoding.wide_text import encoding_of
from nightjar_formats.readers.repairs import Repairs
from nightjar_formats.runs.offline_check import check_files

from tests.results.formats.samples import cases_of, plain, samples_in_folders

SAMPLES = {
    "pytest/crash.junit.xml": "junit",
    "pytest/died.reportlog.jsonl": "pytest-reportlog",
    "pytest/crash.pytest-json-report.json": "pytest-json-report",
    "executorch/operators.csv": "executorch-csv",
    "pytest/kinds.ctrf.json.gz": "ctrf",
    "go/kinds-1.27.jsonl": "go-test-json",
    "rust/kinds-1.95.jsonl": "libtest-json",
    "dotnet/xunit-v2.xml": "xunit-net",
    "dotnet/nunit-3.xml": "nunit3",
    "dotnet/vstest.trx": "trx",
    "tap/node24.tap": "tap",
    "ktap/kselftest.log": "ktap",
}
SAMPLES |= samples_in_folders(FORMATS.keys() - set(SAMPLES.values()))
WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
MARKS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("marked", [True, False], ids=["mark", "no mark"])
@pytest.mark.parametrize("path", SAMPLES)
def test_a_report_is_read_in_every_encoding_of_unicode(path: str, marked: bool, encoding: str) -> None:
    content = plain(path)
    wide = (MARKS[encoding] if marked else b"") + content.decode().replace("\n", "\r\n").encode(encoding)
    expected = cases_of(content)
    for compress in (bytes, gzip.compress, zstd.compress):
        read = cases_of(compress(wide))
        assert [case[:2] for case in read] == [case[:2] for case in expected]
    assert [case.nodeid for case in cases_of(wide, SAMPLES[path])] == [case.nodeid for case in expected]


@pytest.mark.parametrize("path", SAMPLES)
def test_a_mark_of_utf_8_is_ignored(path: str) -> None:
    content = plain(path)
    assert cases_of(codecs.BOM_UTF8 + content) == cases_of(content)
    assert cases_of(codecs.BOM_UTF8 + content, SAMPLES[path]) == cases_of(content)


@pytest.mark.parametrize("path", [path for path, form in SAMPLES.items() if form in ("tap", "ktap", "go-test-json")])
def test_reports_that_were_joined_have_marks_inside(path: str) -> None:
    content = codecs.BOM_UTF8 + plain(path)
    assert [case.name for case in cases_of(content * 2)][-1:] == [case.name for case in cases_of(content)][-1:]
    assert len(cases_of(content * 2)) == 2 * len(cases_of(content))


@pytest.mark.parametrize("path", [path for path in SAMPLES if path.endswith((".tap", ".csv", ".jsonl"))])
def test_a_lab_learns_that_its_report_was_converted(path: str, tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_bytes(plain(path).decode().encode("utf-16"))
    [checked] = check_files([report]).files
    assert (checked.format, checked.problem) == (SAMPLES[path], "")
    assert any("converted from UTF-16 or UTF-32" in warning for warning in checked.warnings)


def test_xml_may_be_in_the_encoding_that_it_declares() -> None:
    content = '<?xml version="1.0" encoding="utf-16"?><testsuite><testcase classname="a" name="größe"/></testsuite>'
    for encoding in WIDE:
        repairs = Repairs()
        (case,) = read(io.BytesIO(MARKS[encoding] + content.encode(encoding)), "report", None, repairs)
        assert (case.name, list(repairs.sentences())) == ("größe", [])


@pytest.mark.parametrize("form", ["tap", "ktap"])
@given(name=st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20))
def test_a_name_is_the_same_in_every_encoding(form: str, name: str) -> None:
    version = "KTAP version 1" if form == "ktap" else "TAP version 13"
    report = f"{version}\n1..2\nok 1 - a{name}\nnot ok 2 - b\n"
    expected = cases_of(report)
    assert [cases_of((f"\ufeff{report}").encode(encoding)) for encoding in WIDE] == [expected] * len(WIDE)


@given(st.binary(max_size=40))
def test_zero_bytes_before_a_log_are_no_encoding(noise: bytes) -> None:
    head = b"\0" * 40 + b"TAP version 13\n1..1\nok 1 - a\n" * 40
    assert encoding_of(head) == (b"", "")
    assert encoding_of(noise + b"TAP version 13\n" * 40)[1] in ("", *WIDE)
    assert [case.name for case in cases_of(b"\0\0\0\0\nTAP version 13\n1..1\nok 1 - a\n")] == ["a"]


@pytest.mark.parametrize("form", ["tap", "go-test-json", "pytest-reportlog", "executorch-csv"])
def test_latin_1_is_read(form: str) -> None:
    path = next(path for path, name in SAMPLES.items() if name == form)
    content = plain(path).replace(b"fails", "größe".encode("latin-1"))
    assert len(cases_of(content)) == len(cases_of(plain(path)))
