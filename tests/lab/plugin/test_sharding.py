"""`--shard` as pytest runs it: with and without workers, with good, invalid or missing durations."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from nightjar_lab.pytest.durations import KnownDuration, durations_from

SUITE = """
    import pytest

    class TestOp:
        @pytest.mark.parametrize("name", ["a", "b[", "c::d"])
        def test_op(self, name): pass

    def test_long(): pass
    def test_short(): pass
"""
TESTS = {
    "test_s.py::TestOp::test_op[a]",
    "test_s.py::TestOp::test_op[b[]",
    "test_s.py::TestOp::test_op[c::d]",
    "test_s.py::test_long",
    "test_s.py::test_short",
}


def ran(pytester: pytest.Pytester, *options: str) -> set[str]:
    """Return the tests that pytest ran, all of which passed."""
    result = pytester.runpytest_inprocess("-v", "-p", "no:cacheprovider", *options)
    assert result.ret == pytest.ExitCode.OK
    return {
        word for line in result.outlines if "PASSED" in line for word in line.split() if word.startswith("test_s.py::")
    }


def test_all_shards_together_are_the_whole_with_and_without_workers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_s=SUITE)
    durations = {"cut_offs": [], "pages": 1, "tests": [{"test": "test_s.py::test_long", "seconds": 100.0}]}
    Path("slow.json").write_text(json.dumps(durations))
    options = ("--durations-from", "slow.json")
    first, second = (ran(pytester, "--shard", f"{index}/2", *options) for index in (1, 2))
    assert first | second == TESTS
    assert not first & second
    assert {"test_s.py::test_long"} <= first or {"test_s.py::test_long"} <= second
    assert ran(pytester, "--shard", "1/2", *options, "-n", "2") == first


def test_a_shard_without_tests_passes_and_says_why(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_only(): pass")
    empty = []
    for index in (1, 2):
        result = pytester.runpytest_inprocess("--shard", f"{index}/2")
        assert result.ret == pytest.ExitCode.OK
        empty.append("has no tests, because there are only 1 test" in result.stdout.str())
    assert sorted(empty) == [False, True]


def test_a_run_without_any_tests_is_still_reported_as_such(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("")
    assert pytester.runpytest_inprocess("--shard", "1/2").ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize("bad", ["0/4", "5/4", "x"])
def test_a_bad_shard_is_a_usage_error(pytester: pytest.Pytester, bad: str) -> None:
    result = pytester.runpytest_inprocess("--shard", bad)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f'*"{bad}" is not a shard: write NUMBER/TOTAL, such as 2/4*'])


def test_durations_without_shards_are_a_usage_error(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--durations-from", "x.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--durations-from has no effect without --shard or --slow-report*"])


@pytest.mark.parametrize("source", ["missing.json", "http://127.0.0.1:1/slow", "http://[/", ".", "nonsense.txt"])
def test_without_its_durations_a_shard_runs_and_says_so_even_if_warnings_are_errors(
    pytester: pytest.Pytester, source: str
) -> None:
    pytester.makepyfile(test_s=SUITE)
    Path("nonsense.txt").write_text("\x00 no report")
    outcomes = 0
    for index in (1, 2):
        result = pytester.runpytest_inprocess("-W", "error", "--shard", f"{index}/2", "--durations-from", source)
        assert result.ret == pytest.ExitCode.OK
        result.stdout.fnmatch_lines(
            ["could not read the durations of * (*), so tests are assigned to shards by a hash *"]
        )
        outcomes += result.parseoutcomes().get("passed", 0)
    assert outcomes == len(TESTS)


class _Api(BaseHTTPRequestHandler):
    """Answers as the bot's API does: two pages, the first one after a failure."""

    requests: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        self.requests.append((self.path, self.headers.get("Authorization")))
        if len(self.requests) == 1:
            self.send_error(503)
            return
        page = 2 if "page=2" in self.path else 1
        tests = [{"suite": "te", "test": f"t.py::test_{page}", "seconds": page, "failed": 1, "runs": 40}, {"test": 3}]
        body = json.dumps({"cut_offs": [], "pages": 2, "tests": tests}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def api() -> Iterator[str]:
    _Api.requests.clear()
    server = HTTPServer(("127.0.0.1", 0), _Api)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api/v1/repos/octocat/compiler/slow?target=example-lab/adreno"
    server.shutdown()
    thread.join()
    server.server_close()


def test_all_pages_of_the_api_are_read_and_a_failure_is_tried_again(api: str) -> None:
    durations = durations_from(api, {"NIGHTJAR_TOKEN": "secret", "NIGHTJAR_URL": api})
    assert durations == {"t.py::test_1": KnownDuration(1.0, 1, 40), "t.py::test_2": KnownDuration(2.0, 1, 40)}
    assert [path.partition("?")[2] for path, _ in _Api.requests] == [
        "target=example-lab/adreno",
        "target=example-lab/adreno",
        "target=example-lab%2Fadreno&page=2",
    ]
    # The token is not sent over an unencrypted connection.
    assert {token for _, token in _Api.requests} == {None}
