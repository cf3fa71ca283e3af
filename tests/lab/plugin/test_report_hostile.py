"""Reports that cannot be written, and tests that try to break them: errors are clear and nothing reported is lost."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from nightjar_lab.pytest.printable import printable

from tests.lab.plugin.reports import OPTION, cases, lines, outcomes

TWO = "def test_good(): pass\ndef test_bad(): assert 0"


def refused(pytester: pytest.Pytester, path: str, reason: str) -> None:
    """Check that tests run with their exit status, and that the missing report is named at the start and the end."""
    result = pytester.runpytest_inprocess("--nightjar-report", path)
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    notices = [line for line in result.outlines if line.startswith("nightjar: THERE IS NO REPORT: ")]
    assert len(notices) == 2
    assert reason in notices[0]


def test_a_report_that_cannot_be_opened_is_named_and_does_not_change_the_exit_status(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TWO)
    os.mkfifo("fifo")
    Path("folder").mkdir()
    refused(pytester, "folder", "Is a directory")
    refused(pytester, "missing/report", "No such file or directory")
    refused(pytester, "fifo", "nobody reads the pipe")
    refused(pytester, "/proc/self/none", "No such file or directory")


@pytest.mark.skipif(os.getuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder_is_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TWO)
    Path("folder").mkdir(mode=0o500)
    refused(pytester, "folder/report", "Permission denied")


def test_a_results_folder_that_is_a_file_is_named(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile("def test_good(): pass")
    Path("results").touch()
    monkeypatch.setenv("NIGHTJAR_RESULTS", "results")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["nightjar: THERE IS NO REPORT: *results cannot be written (File exists)*"])


def test_a_full_disk_is_named_at_the_end_and_does_not_change_the_exit_status(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TWO)
    result = pytester.runpytest_inprocess("--nightjar-report", "/dev/full")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, failed=1)
    [notice] = [line for line in result.outlines if "THE REPORT IS INCOMPLETE" in line]
    assert "10 of 10 lines could not be written to /dev/full (No space left on device)" in notice


def test_a_disk_that_is_full_for_a_while_loses_nothing(pytester: pytest.Pytester) -> None:
    """Files may not exceed some bytes while the first tests run, which cuts a line in the middle."""
    pytester.makepyfile(
        """
        import os, resource, signal

        def test_full():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            room = os.path.getsize("report.jsonl") + 10
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

        def test_still_full(): pass

        def test_room():
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *OPTION)
    assert result.ret == pytest.ExitCode.OK
    assert "INCOMPLETE" not in result.stdout.str()
    assert outcomes() == {"test_full": "passed", "test_still_full": "passed", "test_room": "passed"}
    assert len(lines()) == 14


def test_a_pipe_with_a_reader_and_a_device_get_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_good(): pass")
    os.mkfifo("fifo")
    read: list[bytes] = []
    descriptor = os.open("fifo", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)

    def drain() -> None:
        with os.fdopen(descriptor, "rb") as file:
            read.append(file.read())

    reader = threading.Thread(target=drain)
    # Before somebody writes, a read would end at once: the run opens the report.
    result = None
    started = os.open("fifo", os.O_WRONLY)
    reader.start()
    try:
        result = pytester.runpytest_inprocess("--nightjar-report", "fifo")
    finally:
        os.close(started)
        reader.join()
    assert result.ret == pytest.ExitCode.OK
    Path("copy").write_bytes(read[0])
    assert outcomes("copy") == {"test_good": "passed"}
    assert pytester.runpytest_inprocess("--nightjar-report", "/dev/null").ret == pytest.ExitCode.OK


HOSTILE = """
    import pytest

    NAMES = [
        "".join(map(chr, range(1, 0x20))),
        "".join(map(chr, range(0x7F, 0xA0))),
        "\\udc80\\udcff",
        "\\u202e\\u2066\\u200b\\ufeff\\u2028",
        "::error::\\n::set-output name=a::b",
        "x" * 20_000,
    ]

    def pytest_collection_modifyitems(items):
        for item, name in zip(items, NAMES):
            item._nodeid = f"test_h.py::test_h[{name}]"
            item.name = f"test_h[{name}]"
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "worker"])
def test_tests_with_any_name_are_reported(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    pytester.makeconftest(HOSTILE)
    # Half surrogates are not UTF-8: pytest cannot print or cache them, and pytest-xdist cannot send them.
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:backslashreplace")
    names = 6
    if workers:
        pytester.makeconftest(HOSTILE.replace("udc80", "xa0").replace("udcff", "xa1"))
    pytester.makepyfile(
        test_h=f"""
        import pytest

        @pytest.mark.parametrize("number", range({names}))
        def test_h(number): assert number == 1
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *OPTION, *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    reported = cases()
    assert len({case.nodeid for case in reported}) == names
    assert sorted(case.status for case in reported) == ["failed"] * (names - 1) + ["passed"]


def test_values_that_json_does_not_have_are_still_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        class Odd:
            def __repr__(self): raise RuntimeError("no repr")

        def test_object(record_property): record_property("device", object())
        def test_odd(record_property): record_property("device", Odd())
        def test_long(): assert "x" * 5_000_000 == "y"
        def test_number(record_property): record_property("device", float("nan"))
        """
    )
    result = pytester.runpytest_inprocess(*OPTION)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes() == {
        "test_object": "passed",
        "test_odd": "passed",
        "test_long": "failed",
        "test_number": "passed",
    }
    result.stdout.fnmatch_lines(["nightjar: 2 of pytest's reports could not be written as JSON (RuntimeError)*"])
    assert Path(OPTION[1]).stat().st_size < 3_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tests/a.py::b[é-1]", "tests/a.py::b[é-1]"),
        ("a\nb\r\t\x1b[31m\x9b", "a\\nb\\r\\t\\x1b[31m\\x9b"),
        ("\udc80\u202e\u200b", "\\udc80\\u202e\\u200b"),
        ("x" * 3000, "x" * 1999 + "…"),
    ],
)
def test_text_from_outside_is_printed_on_one_line_without_control_characters(text: str, expected: str) -> None:
    assert printable(text) == expected
