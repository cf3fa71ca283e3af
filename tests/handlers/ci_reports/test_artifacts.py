"""Reading the artifacts of a workflow run, however many, large or broken they are."""

from __future__ import annotations

import asyncio
import gzip
import io
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from nightjar_formats.model import Status
from nightjar_formats.refused import Refused, TooMuch

from bot.core.errors import TryAgain
from bot.core.untrusted.limits import AllLimits, Limits
from bot.core.untrusted.pool import POOL, Pool
from bot.github.client import GitHub
from bot.results.ingest.files import FileLists
from handlers.ci_reports import archives, artifacts
from handlers.ci_reports.archives import ArchiveBudget
from handlers.ci_reports.artifacts import ARTIFACTS_READER, MOST_ARTIFACTS, Artifacts, Reports, RunAttempt
from handlers.ci_reports.outcomes import SuiteOutcomes
from handlers.ci_reports.texts import ARTIFACTS_LEFT_OUT
from sandbox.model import workflows
from sandbox.model.workflows import zipped
from tests.handlers.driver import FULL_NAME, World, a_world

FILE = "tests/test_ops.py"
ADD, MUL = f"{FILE}::test_add", f"{FILE}::test_mul"
LIST = "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts"
ZIP = "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}"
TREE = "/repos/{owner}/{repo}/git/trees/{tree_sha}"


def junit(**cases: str) -> str:
    """Return a pytest JUnit file: `add="passed 1.5"` is a status with optional seconds."""
    written = []
    for name, case in cases.items():
        status, _, seconds = case.partition(" ")
        inner = '<skipped type="pytest.skip" message="no device">x</skipped>' if status == "skipped" else ""
        written.append(
            f'<testcase classname="tests.test_ops" name="test_{name}" time="{seconds or 0}">{inner}</testcase>'
        )
    return f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{"".join(written)}</testsuite></testsuites>'


def archive(**files: str) -> io.BytesIO:
    return io.BytesIO(zipped({f"{name}.xml": text for name, text in files.items()}))


def parsed(file: io.BytesIO, listed: frozenset[str], limit: int = 1 << 20) -> tuple[SuiteOutcomes, tuple[str, ...]]:
    return archives.parse_archive(file, listed, ArchiveBudget(limit))


def test_the_tests_of_an_archive_have_the_ids_that_the_repository_gives_them() -> None:
    suite, wrong = parsed(archive(a=junit(add="passed 1.5", mul="skipped")), frozenset({FILE}))
    assert {test: seen.status for test, seen in suite.seen.items()} == {ADD: Status.PASSED, MUL: Status.SKIPPED}
    assert suite.seconds[ADD] == pytest.approx(1.5, rel=0.03)
    assert (suite.complete, wrong) == (True, ())


def test_several_files_form_one_suite_and_a_test_that_ran_in_one_of_them_ran() -> None:
    files = archive(shard_1=junit(add="skipped", mul="passed 2"), shard_2=junit(add="passed 1"))
    suite, _ = parsed(files, frozenset({FILE}))
    assert {test: seen.status for test, seen in suite.seen.items()} == {ADD: Status.PASSED, MUL: Status.PASSED}


def test_an_unreadable_file_does_not_stop_the_others() -> None:
    """A process that crashed leaves a truncated file."""
    suite, wrong = parsed(archive(good=junit(add="passed"), torn=junit(mul="passed")[:-40]), frozenset({FILE}))
    assert list(suite.seen) == [ADD]
    assert not suite.complete
    assert [error.partition(":")[0] for error in wrong] == ["torn.xml"]


def test_only_a_few_of_many_unreadable_files_are_reported() -> None:
    """Anybody may open a pull request whose CI creates two thousand of them."""
    suite, wrong = parsed(archive(**{f"torn_{number:02}": "<" for number in range(12)}), frozenset())
    assert [complaint.split(".xml")[0] for complaint in wrong] == [
        *(f"torn_{number:02}" for number in range(3)),
        "and 9 more of its files cannot be read",
    ]
    assert not suite.complete


def test_doubly_compressed_files_share_one_limit() -> None:
    text = junit(**{f"case_{number}": "passed" for number in range(200)}).encode()
    files = {f"{number}.xml.gz": gzip.compress(text) for number in range(4)}
    assert len(parsed(io.BytesIO(zipped(files)), frozenset())[0].seen) == 200
    assert len(zipped(files)) < len(text)
    with pytest.raises(TooMuch, match="have more than"):
        parsed(io.BytesIO(zipped(files)), frozenset(), limit=3 * len(text))


def test_a_file_that_decompresses_to_nothing_counts_with_its_compressed_size() -> None:
    """It costs work: 25 million empty members fit into an archive below the limit."""
    nothing = gzip.compress(b"") * 10_000
    with pytest.raises(TooMuch, match="have more than"):
        parsed(io.BytesIO(zipped({"a.xml.gz": nothing})), frozenset(), limit=len(nothing) // 2)


def test_other_files_are_ignored() -> None:
    files = io.BytesIO(zipped({"report.html": "<html/>", "log.txt": "x", "sub/a.xml": junit(add="passed")}))
    assert list(parsed(files, frozenset({FILE}))[0].seen) == [ADD]
    with pytest.raises(Refused, match=r"no file that ends with \.xml"):
        parsed(io.BytesIO(zipped({"report.html": "<html/>"})), frozenset())


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        world.repository.push("main", {FILE: "def test_add(): ...\n"}, by="octocat")
        yield world


async def client(world: World) -> GitHub:
    app = world.pipeline.app
    return await app.reader(FULL_NAME)


def a_run(world: World) -> workflows.WorkflowRun:
    return world.repository.add_workflow_run(world.repository.branch("main"), "CI", event="push")


async def read(world: World, run: workflows.WorkflowRun, *patterns: str, reader: Artifacts | None = None) -> Reports:
    attempt = RunAttempt(run.id, run.attempt, run.head_sha, "")
    return await (reader or world.pipeline.parts[ARTIFACTS_READER]).reports_of(
        await client(world), FULL_NAME, attempt, patterns or ("*",)
    )


async def test_each_artifact_is_a_suite(world: World) -> None:
    run = a_run(world)
    run.upload("tests-cpu", {"a.xml": junit(add="passed")})
    run.upload("tests-gpu", {"a.xml": junit(add="skipped")})
    run.upload("wheel", {"a.whl": "x"})
    reports = await read(world, run, "tests-*")
    assert {name: suite.ran(ADD) for name, suite in reports.suites.items()} == {"tests-cpu": True, "tests-gpu": False}
    assert (reports.unread, reports.troubles) == (frozenset(), ())


async def test_the_last_of_several_attempts_counts_and_expired_artifacts_do_not(world: World) -> None:
    run = a_run(world)
    run.upload("tests", {"a.xml": junit(add="skipped")})
    run.upload("tests", {"a.xml": junit(add="passed")})
    run.upload("old", {"a.xml": junit(add="passed")}).expired = True
    reports = await read(world, run)
    assert list(reports.suites) == ["tests"]
    assert reports.suites["tests"].ran(ADD)


async def test_without_artifacts_nothing_more_is_requested(world: World) -> None:
    run = a_run(world)
    run.upload("wheel", {})
    world.github.requests.clear()
    assert await read(world, run, "tests-*") == Reports({})
    assert [r.route for r in world.github.requests.of_installation] == [LIST]


async def test_an_unreadable_artifact_is_reported_and_the_others_count(world: World) -> None:
    """TVM #12824: one fault stopped everything else."""
    run = a_run(world)
    run.upload("good", {"a.xml": junit(add="passed")})
    run.upload("bad", {}, content=b"no archive")
    run.upload("empty", {})
    run.upload("`@hubot`", {"a.xml": "<html>"})
    large = run.upload("large", {"a.xml": junit(add="passed")})
    large.content += b"\0" * artifacts.MAX_ARTIFACT_BYTES
    reports = await read(world, run)
    assert list(reports.suites) == ["`@hubot`", "good"]
    assert reports.unread == {"bad", "empty", "large"}
    troubles = "\n".join(reports.troubles)
    assert "The artifact `bad` cannot be read: `it is not a complete zip archive`." in troubles
    assert "The artifact `large` cannot be read: `it is larger than 64 MiB`." in troubles
    assert "The artifact `` `@hubot` `` cannot be read: `a.xml" in troubles


async def test_an_artifact_that_has_just_expired_is_reported(world: World) -> None:
    run = a_run(world)
    run.upload("tests", {"a.xml": junit(add="passed")})
    world.github.faults.add("GET", ZIP, status=410, message="Artifact has expired", times=1)
    assert (await read(world, run)).troubles == ("The artifact `tests` cannot be read: `GitHub no longer has it`.",)


async def test_if_github_is_down_the_reading_is_tried_again_later(world: World) -> None:
    run = a_run(world)
    run.upload("tests", {"a.xml": junit(add="passed")})
    world.github.faults.add("GET", ZIP, status=502, times=3)
    with pytest.raises(TryAgain):
        await read(world, run)


async def test_of_very_many_artifacts_the_first_are_read_and_the_section_says_so(world: World) -> None:
    run = a_run(world)
    for number in range(MOST_ARTIFACTS + 2):
        run.upload(f"tests-{number:02}", {"a.xml": junit(add="passed")})
    world.github.requests.clear()
    reports = await read(world, run)
    assert len(reports.suites) == MOST_ARTIFACTS
    assert reports.troubles == (ARTIFACTS_LEFT_OUT.format(count=MOST_ARTIFACTS + 2, most=MOST_ARTIFACTS),)
    assert world.github.requests.count("GET", ZIP) == MOST_ARTIFACTS


async def test_all_artifacts_of_a_run_share_one_limit(world: World) -> None:
    """A pull request's code writes them: no number of them may keep a core busy for minutes."""
    run, text = a_run(world), junit(add="passed")
    for number in range(4):
        run.upload(f"tests-{number}", {"a.xml": text})
    world.github.requests.clear()
    reports = await read(world, run, reader=Artifacts(FileLists(), world.pipeline.parts[POOL], most=2 * len(text)))
    assert list(reports.suites) == ["tests-0", "tests-1"]
    assert reports.unread == {"tests-2", "tests-3"}
    reason = f"`the files of all artifacts together have more than {2 * len(text):,} bytes"
    assert [reason in trouble for trouble in reports.troubles] == [True, True]
    assert world.github.requests.count("GET", ZIP) == 3, "nothing is downloaded beyond the limit"


async def test_an_artifact_that_is_too_expensive_is_reported_with_the_limit_and_ends_the_reading(world: World) -> None:
    """Each artifact may use its seconds: twenty of them in a row would keep a core busy for minutes."""
    run = a_run(world)
    run.upload("tests-1", {"a.xml": junit(add="passed")})
    run.upload("tests-2", {"a.xml": junit(add="passed")})
    world.github.requests.clear()
    with closing(
        Pool(limits=AllLimits(artifact=Limits("reading one artifact", cpu=1, wall=1e-6, memory=1 << 30)))
    ) as pool:
        reports = await read(world, run, reader=Artifacts(FileLists(), pool))
    assert not reports.suites
    assert reports.unread == {"tests-1", "tests-2"}
    cost = "`reading one artifact took longer than 1e-06 seconds, the maximum`"
    unread_reason = "`an earlier artifact of this run was too expensive to read, so the rest of the run is skipped`"
    assert reports.troubles == (
        f"The artifact `tests-1` cannot be read: {cost}.",
        f"The artifact `tests-2` cannot be read: {unread_reason}.",
    )
    assert world.github.requests.count("GET", ZIP) == 1


async def test_concurrent_readers_of_a_run_read_it_once(world: World) -> None:
    """Two sections use one run, and one run of the base branch serves many pull requests."""
    run, reader = a_run(world), world.pipeline.parts[ARTIFACTS_READER]
    run.upload("tests", {"a.xml": junit(add="passed")})
    first, second = await asyncio.gather(read(world, run, reader=reader), read(world, run, reader=reader))
    assert second is first, "both asked at the same time"
    world.github.requests.clear()
    assert await read(world, run, reader=reader) is first
    assert world.github.requests.of_installation == []
    run.attempt += 1
    assert await read(world, run, reader=reader) is not first
