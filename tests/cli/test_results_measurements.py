"""`nightjar results measurements` as an operator runs it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nightjar_formats.measurements import Better, Measurement

from bot.cli.results import texts
from bot.cli.results.group import results
from bot.results.store.measurements.search import find_moves, store_moves
from bot.results.store.store import ResultsStore
from tests.results.uploads import ABOUT, Upload, sha
from tests.tables import with_tables

TEST = "te/a.py::test_a"


def listed(*options: str) -> Result:
    return CliRunner().invoke(results, ["measurements", *options])


def test_what_moved_is_listed_and_what_a_test_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = with_tables(f"sqlite:///{tmp_path}/nightjar.db")
    monkeypatch.setenv("DATABASE_URL", url)
    with closing(ResultsStore(url)) as store:
        store.open()
        for night, nodes in enumerate((12, 12, 11, 12), 1):
            measured = (
                Measurement("delegated_nodes", float(nodes), "nodes", Better.HIGHER),
                Measurement("latency", 1.5, "ms", Better.LOWER),
            )
            upload = Upload(night, {TEST: "passed"}, measured={TEST: measured})
            store.put(upload.run, upload.columns)
        assert listed().output == f"{texts.NO_MOVES}\n"
        store.write(store_moves, store.read(find_moves, ABOUT))
    moves = [
        "SINCE       COMMITTED             TARGET              TEST             CHANGE                          STATE",
        *(
            f"0000000000  1970-01-01 {time} UTC  example-lab/adreno  {TEST}  {change}  {state}"
            for time, change, state in (
                ("01:06", "delegated_nodes 11 -> 12 nodes", "improvement"),
                ("00:50", "delegated_nodes 12 -> 11 nodes", "ended at 0000000000"),
            )
        ),
    ]
    assert listed().output.splitlines() == moves
    assert listed("--target", ABOUT.full_name, "--limit", "1").output.splitlines()[1:] == moves[1:2]
    of_test = listed("--test", TEST)
    assert of_test.output.splitlines() == [
        "TARGET              SUITE      MEASUREMENT      NIGHTS  NEWEST    COMMIT      EXPECTED",
        "example-lab/adreno  operators  delegated_nodes  4       12 nodes  0000000000",
        "example-lab/adreno  operators  latency          4       1.5 ms    0000000000",
        "",
        *moves,
    ]
    document = json.loads(listed("--test", TEST, "--repo", ABOUT.repository, "--json").output)
    assert [(change["since"], change["state"], change["ended_at"]) for change in document["moved"]] == [
        (sha(4), "improvement", None),
        (sha(3), "ended", "1970-01-01T01:06:40Z"),
    ]
    assert [night["value"] for night in document["series"][0]["nights"]] == [12, 12, 11, 12]
    refused = listed("--test", "no such test")
    assert (refused.exit_code, texts.NO_MEASUREMENTS.format(test="no such test") in refused.output) == (1, True)


def test_what_the_tests_of_files_measure_is_listed_without_a_database(tmp_path: Path) -> None:
    file = tmp_path / "pytest.xml"
    case = '<testcase classname="te.a" name="test_a"><properties>{}</properties></testcase>'
    property_text = '<property name="measurement.latency" value="1.5 ms lower 1.4,1.5,1.6"/>'
    file.write_text(f"<testsuite>{case.format(property_text)}</testsuite>")
    assert listed(str(file)).output.splitlines() == [
        "FILE        TEST          MEASUREMENT  VALUE   BETTER  SAMPLES",
        "pytest.xml  te.a::test_a  latency      1.5 ms  lower   3",
    ]
    (row,) = json.loads(listed(str(file), "--json").output)["measurements"]
    assert row == {
        "file": "pytest.xml",
        "test": "te.a::test_a",
        "name": "latency",
        "value": 1.5,
        "unit": "ms",
        "better": "lower",
        "samples": [1.4, 1.5, 1.6],
    }
    assert listed(str(file), "--test", "te.b::test_b").output == f"{texts.NOTHING_MEASURED}\n"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.xml"
    file.write_text("<testsuite>")
    assert listed(str(file)).exit_code == 1
    assert listed(str(file)).stderr.startswith("broken.xml: ")
    missing = listed(str(tmp_path / "missing.xml"))
    assert (missing.exit_code, "missing.xml could not be read: No such file" in missing.stderr) == (1, True)
    assert texts.ONLY_STORED in listed(str(file), "--target", "example-lab/adreno").stderr
