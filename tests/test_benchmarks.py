"""The benchmarks' own code: a fault in it would look like a measurement."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.before_after import side_by_side
from benchmarks.commands import NIGHTJAR, NIGHTJAR_POSTGRESQL, PROBOT
from benchmarks.durable_server import in_sqlite
from benchmarks.goals import GOALS, NOTHING, Figure, Goal, Reached, reached
from benchmarks.processes import running, tree_seconds
from benchmarks.report import Row
from benchmarks.scale import QUICK_STEPS, measured
from benchmarks.scale_rows import ROWS
from benchmarks.scaling import CONSTANT, LINEAR, ScaleRow, scaling
from benchmarks.slow_disk import LIBRARY
from benchmarks.slow_disk import main as slow_disk
from benchmarks.stage import waiting_in
from benchmarks.traffic import COMMANDS, COMMENTS, UNWANTED, Template, mixed, read, write

UNWANTED_ONES = [Template("status", (b'{"id":', b"}")), Template("issue_comment", (b'{"id":', b', "deleted": true}'))]
COMMENT = Template("issue_comment", (b'{"id":', b', "body": "two\nlines"}'))
ASKING = [Template("issue_comment", (b'{"id":', b', "body": "@ci help %d"}' % place), (7, 8)) for place in range(3)]
MADE = {UNWANTED: UNWANTED_ONES, COMMENTS: [COMMENT], COMMANDS: ASKING}

LONG = ("idle-rows", "idle-wakes", "last-good", "command-cpu")
"""Rows that take longest. `tests/app/test_idle.py` tests what the first two measure; the third is like `nightly`."""

METRICS = """\
# HELP nightjar_waiting_jobs Jobs that wait to be done.
nightjar_waiting_jobs{task="deliver"} 40.0
nightjar_waiting_jobs{task="effect"} 2.0
nightjar_waiting_jobs_total 99.0
"""


def test_of_twenty_deliveries_sixteen_are_unwanted_three_comments_and_one_a_command() -> None:
    order = mixed(MADE)
    assert len(order) == 60
    for start in (0, 20, 40):
        kinds = Counter(
            "command" if template in ASKING else "comment" if template is COMMENT else "unwanted"
            for template in order[start : start + 20]
        )
        assert kinds == {"unwanted": 16, "comment": 3, "command": 1}
    assert [template for template in order if template in ASKING] == ASKING


def test_stored_deliveries_are_read_back_unchanged(tmp_path: Path) -> None:
    order = mixed(MADE)
    write(tmp_path / "mix", order)
    assert read(tmp_path / "mix") == order


def test_a_copy_has_its_own_number() -> None:
    assert COMMENT.body(12) == b'{"id":12, "body": "two\nlines"}'


def test_waiting_jobs_are_counted_by_task_or_in_total() -> None:
    assert waiting_in(METRICS, ()) == 42
    assert waiting_in(METRICS, ["deliver", "handle"]) == 40


@pytest.mark.parametrize(
    ("at_least", "ratios", "met"),
    [
        pytest.param(True, [0.2, 0.5, 0.3], "met", id="the median equals the goal"),
        pytest.param(True, [0.2, 0.5, 0.29], "**missed**", id="too little"),
        pytest.param(False, [0.2, 0.5, 0.31], "**missed**", id="too much"),
    ],
)
def test_a_goal_is_compared_with_the_median_of_its_rounds(at_least: bool, ratios: list[float], met: str) -> None:
    goal = Goal("accepted", "accepted", 0.3, lambda rows: Figure(100, float(rows[0]["ratio"])), "/s", at_least)
    answer = reached(goal, [[{"ratio": ratio}] for ratio in ratios])
    assert (answer.met, answer.ratio, answer.lowest, answer.highest) == (met, sorted(ratios)[1], 0.2, 0.5)


def test_each_database_has_its_own_aims_beside_others() -> None:
    aims = {
        part: [goal.aim for goal in GOALS if goal.part == part and goal.at_least]
        for part in ("durable", "durable-postgresql")
    }
    assert aims == {"durable": [1.2, 1.5, 2.0, 2.0] * 2, "durable-postgresql": [1.0, 1.2, 1.8, 1.8] * 2}


def test_a_goal_that_could_not_be_measured_is_not_missed() -> None:
    goal = Goal("of probot", "accepted", 0.5, lambda _: None, "/s", at_least=True)
    command = "python -m benchmarks.goals --only accepted"
    assert reached(goal, [[]]) == Reached("of probot", "≥ 0.5", NOTHING, None, None, None, 0, NOTHING, command)


def test_commands_are_compared_with_probot_by_what_the_server_and_its_database_take() -> None:
    rows: list[Row] = [
        {"server": server, "commands": load, "handled /s": rate, "both ms each": both}
        for server, rate, both in ((NIGHTJAR, 60, 12), (NIGHTJAR_POSTGRESQL, 30, 24), (PROBOT, 30, 8))
        for load in ("one at a time", "2,000 at once")
    ]
    goals = [goal for goal in GOALS if goal.part == "commands"]
    ratios = [(row.ratio, row.met) for row in (reached(goal, [rows]) for goal in goals)]
    missed = "**missed**"
    assert ratios == [(2, "met"), (1.5, missed), (1.5, missed), (1, missed), (3, missed), (3, missed)]
    assert {reached(goal, [rows[:4]]).met for goal in goals} == {NOTHING}


async def test_processor_time_of_a_process_contains_that_of_its_children() -> None:
    """Of one that still runs, and of one that has ended; each takes far longer than their parent."""
    program = """
import subprocess, sys
work = "sum(range(20_000_000)); print(flush=True); input()"
ended, live = (subprocess.Popen([sys.executable, "-c", work], stdin=-1, stdout=-1) for _ in range(2))
ended.stdout.readline(), live.stdout.readline(), ended.communicate(b"\\n")
print(live.pid, flush=True)
input()
"""
    async with running(sys.executable, "-c", program) as server:
        of_child = tree_seconds(server.port)
        assert of_child > 0
        assert tree_seconds(server.pid) > 1.5 * of_child


def test_before_and_after_are_compared_by_place_or_by_name() -> None:
    own_row: Row = {"load": "1", "server": "ours", "p50": 4.0, "busy": 9.0}
    old_rounds: list[list[Row]] = [[{"load": "1", "server": "bare", "p50": ms}, own_row] for ms in (1, 2, 9)]
    renamed: Row = {"load": "one", "server": "ours", "p50": 2.0, "p99": 1, "busy": 9.0}
    new_rounds: list[list[Row]] = [[{"load": "1", "server": "bare", "p50": 3}, renamed]]
    compared = [
        tuple(row[head] for head in ("what", "before", "after", "ratio"))
        for row in side_by_side(old_rounds, new_rounds)
    ]
    assert compared == [("1, bare", 2, 3, "1.50"), ("one, ours", 4, 2, "0.50")]
    assert [row["what"] for row in side_by_side(old_rounds, [new_rounds[0][:1]])] == ["1, bare"]


@pytest.mark.parametrize(
    ("law", "figures", "grows", "met"),
    [
        pytest.param(CONSTANT, {1: 1, 10: 1.2, 100: 0.9, 1000: 1}, "constant", "met", id="constant"),
        pytest.param(CONSTANT, {1: 1, 10: 1, 100: 2, 1000: 6}, "below linear", "**missed**", id="begins to grow"),
        pytest.param(CONSTANT, {1: 1, 10: 1, 100: 2, 1000: 20}, "linear", "**missed**", id="linear"),
        pytest.param(CONSTANT, {1: 1e-3, 10: 1e-3, 100: 1e-3, 1000: 8e-3}, "linear", "met", id="next to nothing"),
        pytest.param(CONSTANT, {1: 11, 10: 11, 100: 11, 1000: 11}, "constant", "**missed**", id="above the goal"),
        pytest.param(LINEAR, {1: 0.01, 10: 0.1, 100: 1, 1000: 10}, "linear", "met", id="linear and allowed"),
        pytest.param(LINEAR, {1: 0.01, 10: 0.01, 100: 0.1, 1000: 9}, "above linear", "**missed**", id="quadratic"),
        pytest.param(CONSTANT, {1: 0, 10: 0, 100: 0, 1000: 0}, "constant", "met", id="nothing"),
        pytest.param(LINEAR, {1: 1, 10: 10}, "linear", "met", id="two sizes"),
    ],
)
def test_a_row_is_compared_with_its_law_and_its_goal(law: str, figures: dict[int, float], grows: str, met: str) -> None:
    row = ScaleRow("to read", "records", "ms", 1, law, 10.0, ROWS["record"].measure)
    result = scaling("record", row, figures)
    assert (result.grows, result.met, result.sizes) == (grows, met, tuple(figures))


@pytest.mark.exhaustive(*(name for name in ROWS if name not in LONG))
@pytest.mark.parametrize("name", ROWS)
def test_every_row_can_be_measured_at_its_small_sizes(name: str) -> None:
    result = measured(name, "sqlite", QUICK_STEPS)
    assert result.sizes == tuple(ROWS[name].base * step for step in QUICK_STEPS)
    assert all(figure >= 0 for figure in result.figures)


async def test_the_handler_to_compare_with_has_stored_a_delivery_when_it_answers(tmp_path: Path) -> None:
    path = tmp_path / "others.db"
    async with in_sqlite(str(path)) as store:
        await store("guid", "push", b"{}")
        await store("guid", "push", b"{}")
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("SELECT * FROM deliveries").fetchall() == [("guid", "push", b"{}")]


FLUSH = f"""
import os, sys, tempfile
with tempfile.TemporaryFile() as file:
    os.fsync(file.fileno())
    os.fdatasync(file.fileno())
with open("/proc/self/maps") as maps:
    sys.exit(7 if {LIBRARY!r} in maps.read() else 1)
"""


def test_a_command_on_a_slower_disk_flushes_through_the_library_and_its_status_is_passed_on() -> None:
    assert CliRunner().invoke(slow_disk, ["0.001", sys.executable, "-c", FLUSH]).exit_code == 7


def test_a_slower_disk_says_which_program_is_missing() -> None:
    result = CliRunner().invoke(slow_disk, ["0.001", "no-such-program"])
    assert (result.exit_code, result.output) == (1, "Error: there is no program no-such-program\n")
