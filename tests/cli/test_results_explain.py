"""`nightjar results explain` as an operator runs it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bot.cli.results.group import results
from bot.engine.service import Engine
from bot.github.repositories.in_force import REPOSITORY_FILE, StoredFile, ValidFile
from bot.results.compare.ancestors import Relation
from bot.results.explain import texts
from bot.results.store.failures.failures import Failure, store_reports
from bot.results.store.store import ResultsStore
from bot.results.store.tables.ancestry import learn
from tests.results.explain.test_explainer import OTHERS, TEST, store_story
from tests.results.uploads import ABOUT, SUITE, Upload, sha
from tests.tables import with_tables

AT = 1_795_152_400.0  # 2026-11-20 05:26:40 UTC
TARGET = f"{ABOUT.lab}/{ABOUT.target}"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ResultsStore]:
    url = with_tables(f"sqlite:///{tmp_path}/nightjar.db")
    monkeypatch.setenv("DATABASE_URL", url)
    with closing(ResultsStore(url, clock=lambda: AT)) as store:
        store.open()
        yield store


def explain(*options: str, test: str = TEST, commit: int = 3, target: str = TARGET) -> Result:
    return CliRunner().invoke(results, ["explain", "--test", test, "--target", target, "--sha", sha(commit), *options])


def test_a_regression_is_explained_with_its_runs_and_messages(store: ResultsStore) -> None:
    store_story(store, "PFF")
    store.write(store_reports, ABOUT, sha(3), store.clock(), [Failure(SUITE, TEST, sha(2), sha(1))], {})
    explained = explain()
    assert explained.exit_code == 0, explained.output
    assert explained.output.splitlines() == [
        "test_a",
        "operators on example-lab/adreno at 0000000000 (octocat/compiler)",
        "",
        "Class     regression",
        f"Rule      {texts.RULE_REGRESSION}",
        "Baseline  0000000000 of 1970-01-01 00:33 UTC: failed",
        "Since     0000000000; it last passed at 0000000000",
        "Messages  2026-11-20 05:26 UTC: began to fail at 0000000000, reported with the run of 0000000000",
        "",
        "RUN         COMMITTED             RESULT  NOTE",
        "0000000000  1970-01-01 00:50 UTC  failed  this run",
        "0000000000  1970-01-01 00:33 UTC  failed  baseline",
        "0000000000  1970-01-01 00:16 UTC  passed",
    ]


def test_programs_get_everything_as_json(store: ResultsStore) -> None:
    store_story(store, "PFF")
    store.write(store_reports, ABOUT, sha(3), store.clock(), [Failure(SUITE, TEST, sha(2), sha(1))], {})
    (explanation,) = json.loads(explain("--json", "--repo", "octocat/compiler").output)
    assert (explanation["class"], explanation["since"], explanation["last_passed"]) == ("regression", sha(2), sha(1))
    assert explanation["baseline"] == {"sha": sha(2), "url": "/commit/2"}
    assert [run["status"] for run in explanation["runs"]] == ["failed", "failed", "passed"]
    assert explanation["messages"][0]["reported_at"] == "2026-11-20T05:26:40Z"
    assert explanation["messages"][0]["ended_at"] is None


def test_the_number_of_listed_runs_is_limited(store: ResultsStore) -> None:
    store_story(store, "PPFF")
    lines = explain("--runs", "2", commit=4).output.splitlines()
    assert lines[-1] == "and 2 earlier runs; --runs shows more"


def test_renames_of_the_configuration_file_count(store: ResultsStore, tmp_path: Path) -> None:
    store_story(store, "PF", test="old")
    upload = Upload(3, OTHERS | {"new": "failed"})
    store.put(upload.run, upload.columns)
    store.write(learn, ABOUT.repository, [Relation(sha(3), sha(2), is_ancestor=True, url="/commit/2")])
    config = tmp_path / "app.yaml"
    config.write_text("repositories: {octocat/compiler: {renames: [{from: old, to: new}]}}")
    lines = explain("--config", str(config), test="new").output.splitlines()
    assert "Class     regression" in lines
    assert [line.split()[4] for line in lines[-3:]] == ["failed", "failed", "passed"]
    assert lines[-2].endswith("baseline; called old")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"test": "test_b"}, "no run of example-lab/adreno has a test test_b; similar: test_a; "),
        ({"target": "example-lab/mali"}, "no results for example-lab/mali are stored; stored: example-lab/adreno"),
        ({"test": " "}, "name a test with --test"),
        ({"commit": 99}, "no results for example-lab/adreno are stored at 0000"),
    ],
)
def test_an_unknown_name_ends_with_1_and_one_helpful_line(
    store: ResultsStore, arguments: dict[str, object], problem: str
) -> None:
    store_story(store, "PFF")
    explained = explain(**arguments)  # type: ignore[arg-type]
    assert (explained.exit_code, explained.stdout) == (1, "")
    assert explained.stderr.startswith(problem)
    assert len(explained.stderr.splitlines()) == 1


def test_without_a_database_a_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/none.db")
    explained = explain()
    assert explained.exit_code == 1
    assert "none.db" in explained.stderr


def test_a_quarantine_is_shown_with_owner_and_reason(store: ResultsStore, tmp_path: Path) -> None:
    store_story(store, "PFF")
    config = tmp_path / "app.yaml"
    item = {"owner": "octocat", "reason": "Old firmware", "issue": "https://example.org/12", "until": "2999-12-31"}
    results_of_lab = {"bucket": "device-results", "labs": {ABOUT.lab: {"targets": [ABOUT.target]}}}
    keys = {"results": results_of_lab, "quarantine": [{"test": TEST} | item]}
    config.write_text(json.dumps({"repositories": {"octocat/compiler": keys}}))
    assert (
        "Quarantine  until 2999-12-31 (octocat): Old firmware, https://example.org/12. No message is sent about new "
        "failures until then." in explain("--config", str(config)).output.splitlines()
    )
    (explanation,) = json.loads(explain("--json", "--config", str(config)).output)
    assert explanation["quarantine"] == item
    config.write_text(json.dumps({"repositories": {"octocat/compiler": {"results": results_of_lab}}}))
    assert "Quarantine" not in explain("--config", str(config)).output
    assert json.loads(explain("--json", "--config", str(config)).output)[0]["quarantine"] is None


def test_a_quarantine_of_the_repositorys_own_file_is_shown(store: ResultsStore, tmp_path: Path) -> None:
    store_story(store, "PFF")
    config = tmp_path / "app.yaml"
    results_of_lab = {"bucket": "device-results", "labs": {ABOUT.lab: {"targets": [ABOUT.target]}}}
    config.write_text(json.dumps({"repositories": {"octocat/compiler": {"results": results_of_lab}}}))
    item = {"owner": "octocat", "reason": "Old firmware", "issue": "https://example.org/12", "until": "2999-12-31"}
    text = json.dumps({"quarantine": [{"test": TEST} | item]})

    async def store_file() -> None:
        async with Engine(f"sqlite:///{tmp_path}/nightjar.db") as engine:
            stored_file = StoredFile(seen="1", good=ValidFile("1", "2", text))
            await engine.records.put(REPOSITORY_FILE.of("octocat/compiler"), stored_file)

    asyncio.run(store_file())
    (explanation,) = json.loads(explain("--json", "--config", str(config)).output)
    assert explanation["quarantine"] == item


def test_a_named_configuration_file_must_exist(store: ResultsStore, tmp_path: Path) -> None:
    store_story(store, "PFF")
    explained = explain("--config", str(tmp_path / "none.yaml"))
    assert (explained.exit_code, explained.stdout) == (1, "")
    assert "none.yaml" in explained.stderr


def test_names_are_accepted_as_they_are_copied(store: ResultsStore) -> None:
    """The target as the name of its check run, the SHA in capitals, the test with white space around it."""
    store_story(store, "PFF")
    expected = explain()
    assert expected.exit_code == 0
    arguments = ["--test", f" {TEST}\n", "--target", f"hardware/{TARGET}", "--sha", sha(3).upper()]
    assert CliRunner().invoke(results, ["explain", *arguments]).output == expected.output


def test_an_unknown_commit_is_answered_with_a_few_abbreviated_ones(store: ResultsStore) -> None:
    store_story(store, "PFFPFFPFF")
    explained = explain(commit=99)
    assert explained.stderr.strip().partition("newest commits: ")[2] == ", ".join([sha(1)[:10]] * 5)


def test_flakiness_is_shown_with_its_proof(store: ResultsStore) -> None:
    for number, letter in enumerate("fPPF", 11):
        flaky = frozenset({"test_flaky"} if letter == "f" else ())
        upload = Upload(
            number, {"test_flaky": "failed" if letter == "F" else "passed", "test_ok": "passed"}, flaky=flaky
        )
        store.put(upload.run, upload.columns)
    explained = explain(test="test_flaky", commit=14)
    assert (
        "Flakiness  too few runs for a rate; proven: it passed and failed on one commit, in runs: 1\n"
        in explained.output
    )
    (explanation,) = json.loads(explain("--json", test="test_flaky", commit=14).output)
    assert explanation["flakiness"] == {"runs": 3, "failed": 0, "proved": 1, "suspected": 0, "row": 1, "needed": 3}
