"""What other processes run of the plugin, called directly: options, lines of a report, and the shard of a worker."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any, cast

import pytest
from _pytest.config.argparsing import Parser
from nightjar_lab.pytest import report_lines, run_plugin, run_texts
from nightjar_lab.pytest.durations import KnownDuration
from nightjar_lab.pytest.report_lines import MOST_LINE, MOST_NAME, MOST_TEXT, line_of, poor_line, report_line
from nightjar_lab.pytest.shard_plugin import Sharding, past_durations, shard_summary
from nightjar_lab.pytest.shards import ShardSpec

A_REPORT: dict[str, Any] = {
    "nodeid": "t.py::test_a",
    "location": ("t.py", 3, "test_a"),
    "keywords": {},
    "outcome": "passed",
    "longrepr": None,
    "when": "call",
}


@pytest.fixture
def parser() -> Parser:
    """Return pytest's parser with the options of the plugin."""
    parser = Parser(_ispytest=True)
    run_plugin.pytest_addoption(parser)
    return parser


def test_options_have_defaults(parser: Parser) -> None:
    options = vars(parser.parse_known_args([]))
    assert options == {
        "slow_report": False,
        "shard": None,
        "durations_from": None,
        "nightjar_report": None,
        "nightjar_reproduce": "auto",
        "file_or_dir": [],
    }
    given = ["--slow-report", "--shard", "2/3", "--nightjar-reproduce", "never", "--nightjar-report", "r.jsonl"]
    options = vars(parser.parse_known_args([*given, "--durations-from", "old.xml"]))
    assert options == {
        "slow_report": True,
        "shard": ShardSpec(2, 3),
        "durations_from": "old.xml",
        "nightjar_report": "r.jsonl",
        "nightjar_reproduce": "never",
        "file_or_dir": [],
    }


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--nightjar-reproduce", "sometimes"], "invalid choice: 'sometimes'"),
        (["--shard", "3/2"], run_texts.SHARD_BAD.format(value='"3/2"')),
        (["--shard", "1/100000"], "100000"),
        (["--slow-report=yes"], "ignored explicit argument"),
    ],
)
def test_options_refuse_other_values(parser: Parser, words: list[str], reason: str) -> None:
    with pytest.raises(pytest.UsageError) as refused:
        parser.parse(words)
    assert reason in str(refused.value)


def a_report(**members: Any) -> pytest.TestReport:
    return pytest.TestReport(**{**A_REPORT, **members})


def test_a_report_that_json_cannot_hold_leaves_its_outcome() -> None:
    for duration, written in ((1.5, 1.5), (math.nan, 0.0), (math.inf, 0.0), ("long", 0.0)):
        assert json.loads(poor_line(a_report(duration=duration), "TestReport", "too deep")) == {
            "$report_type": "TestReport",
            "nodeid": "t.py::test_a",
            "outcome": "passed",
            "when": "call",
            "duration": written,
            "longrepr": "too deep",
        }
    collected = pytest.CollectReport("t.py", "failed", None, [])
    poor = json.loads(poor_line(collected, "CollectReport", "too deep"))
    assert (poor["nodeid"], poor["when"], poor["duration"]) == ("t.py", "collect", 0.0)


def test_the_line_of_a_report_has_what_the_server_reads(pytestconfig: pytest.Config) -> None:
    passed = a_report(duration=0.5, start=1.0, stop=1.5, sections=[("Captured stdout call", "text")])
    members = {
        "$report_type": "TestReport",
        "nodeid": "t.py::test_a",
        "location": ["t.py", 3, "test_a"],
        "outcome": "passed",
        "when": "call",
        "duration": 0.5,
        "start": 1.0,
        "stop": 1.5,
        "longrepr": None,
    }
    assert json.loads(report_line(pytestconfig, passed, "TestReport")) == members
    failed = a_report(outcome="failed", longrepr="boom", sections=passed.sections, user_properties=[("a", 1)])
    failed.node = SimpleNamespace(gateway=SimpleNamespace(id="gw1"))  # type: ignore[attr-defined]  # as pytest-xdist
    line = json.loads(report_line(pytestconfig, failed, "TestReport"))
    assert (line["longrepr"], line["sections"]) == ("boom", [["Captured stdout call", "text"]])
    assert (line["user_properties"], line["worker_id"]) == ([["a", 1]], "gw1")


def test_a_line_that_is_too_long_is_cut_to_head_and_tail(pytestconfig: pytest.Config) -> None:
    text = "a" * MOST_LINE + "z"
    line = json.loads(report_line(pytestconfig, a_report(outcome="failed", longrepr=text), "TestReport"))
    half = MOST_TEXT // 2
    assert line["longrepr"] == f"{'a' * half}\n…\n{'a' * (half - 1)}z"
    exact = "a" * MOST_TEXT
    numbers = list(range(101))
    values = {"longrepr": text, "user_properties": [("exact", exact), ("numbers", numbers)]}
    line = json.loads(report_line(pytestconfig, a_report(outcome="failed", **values), "TestReport"))
    assert line["user_properties"] == [["exact", exact], ["numbers", [*range(50), *range(51, 101)]]]
    assert "sections" not in json.loads(
        report_line(pytestconfig, a_report(outcome="failed", longrepr="", sections=[("out", text)]), "TestReport")
    )
    assert report_lines._cut({"reprlocals": 1, "lines": [1] * 100}) == {"lines": [1] * 100}


def test_a_name_that_is_too_long_is_cut_and_stays_unique() -> None:
    def name_of(nodeid: str) -> str:
        return str(json.loads(line_of("TestReport", nodeid=nodeid))["nodeid"])

    longest = "n" * MOST_NAME
    assert name_of(longest) == longest
    first, second = name_of(f"{longest}1"), name_of(f"{longest}\udc80")
    assert first != second
    assert (first[: MOST_NAME + 1], len(first)) == (f"{longest}…", MOST_NAME + 17)
    assert json.loads(line_of("TestReport", **{"nodeid": None}, value=object))["value"] == repr(object)


def test_a_worker_has_the_durations_that_were_read_once() -> None:
    durations = {"t.py::test_a": KnownDuration(1.5, 1, 4), "t.py::test_b": KnownDuration(2.0)}
    controller = Sharding(cast("pytest.Config", SimpleNamespace()), ShardSpec(1, 2), None)
    assert (controller.durations, controller.pytest_report_header()) == ({}, [])
    controller.durations = durations
    node = SimpleNamespace(workerinput={})
    controller.pytest_configure_node(node)
    worker = Sharding(cast("pytest.Config", node), ShardSpec(1, 2), "missing.xml")
    assert (worker.durations, worker.pytest_report_header()) == (durations, [])


def test_durations_that_cannot_be_read_have_a_notice() -> None:
    known, notice = past_durations("no\nsuch.xml", "{source}: {reason}")
    assert known == {}
    assert notice.startswith("no\\nsuch.xml: ")
    assert past_durations("", "{source}") == past_durations(None, "{source}") == ({}, "")


def test_the_line_about_a_shard() -> None:
    counts = {"mine": 1200, "all": 2400, "known": 1000, "plan": "c0ffee", "seconds": 90.0, "all_seconds": 240.0}
    shard = ShardSpec(1, 2)
    time = run_texts.SHARD_TIME.format(mine="1.5", all="4.0")
    assert shard_summary(shard, counts) == run_texts.SHARD_SUMMARY.format(
        shard=shard, mine="1,200", all="2,400 tests", time=time, known="1,000", plan="c0ffee"
    )
    assert shard_summary(shard, {"mine": 0, "all": 1}) == run_texts.SHARD_EMPTY.format(shard=shard, all="1 test")
    without_times = {"mine": 0, "all": 0, "known": 0, "plan": ""}
    assert shard_summary(shard, without_times) == run_texts.SHARD_SUMMARY.format(
        shard=shard, mine="0", all="0 tests", time="", known="0", plan=""
    )
