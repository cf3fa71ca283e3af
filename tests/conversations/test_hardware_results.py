"""A lab uploads its results, and people see what changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from bot.core.untrusted.limits import AllLimits
from bot.core.untrusted.pool import POOL
from bot.results.service import RESULTS
from bot.results.store.lists.run_lists import list_runs
from tests.bucket import World
from tests.conversations.lab import CHECK, FILES, LAB, TARGET, TEST_FILE, LabTown, junit, lab_town
from tests.conversations.town import REPOSITORY

FIRST = "First run, nothing to compare with"
GIVEN_UP = "The deadline has passed"
GOOD = {"test_add": "passed", "test_mul": "passed"}
BAD = {"test_add": "passed", "test_mul": "AssertionError: 3 != 4"}


@pytest.fixture
async def place(tmp_path: Path, aws_world: World) -> AsyncIterator[LabTown]:
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        yield place


async def test_the_second_nightly_run_reports_what_changed_since_the_first(place: LabTown) -> None:
    first = place.nightly_run()
    second = place.nightly_run({**FILES, ".github/CODEOWNERS": "*.md @octocat\n*.py @hubot\n"})
    place.upload(first, {"ops.xml": junit(**GOOD)})
    await place.settle()
    place.upload(second, {"ops.xml": junit(**BAD)})
    await place.scan()

    first_check, second_check = place.check(first), place.check(second)
    assert (first_check.conclusion, second_check.conclusion) == ("success", "neutral")
    assert second_check.title == "1 new failure · 1 passed"
    assert first[:10] in str(second_check.summary)
    assert second_check.external_id == "run-2"
    assert [(a["path"], a["start_line"], a["annotation_level"]) for a in second_check.annotations] == [
        (TEST_FILE, 1, "warning")
    ]
    assert "@example-lab-ci" not in str(second_check.summary).replace("`@example-lab-ci`", "")

    # The pages name the owners of CODEOWNERS, which the bot reads once.
    (failing,) = (await place.town.ask("/api/v1/repos"))[2]["repositories"][0]["failing_now"]
    assert failing["owners"] == ["@hubot"]
    third = place.nightly_run()
    place.upload(third, {"ops.xml": junit(test_sub="AssertionError", **GOOD)})
    await place.settle()
    assert "1 new failure" in str(place.check(third).title)
    assert place.town.github.requests.count("GET", "/repos/{owner}/{repo}/git/blobs/{file_sha}") == 1


async def test_a_lab_of_a_pattern_uploads_for_each_repository_that_matches(tmp_path: Path, aws_world: World) -> None:
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world, repository="octocat/*") as pattern_town:
        place = replace(pattern_town, repository=REPOSITORY)
        first, second = place.nightly_run(), place.nightly_run()
        place.upload(first, {"ops.xml": junit(**GOOD)})
        await place.settle()
        place.upload(second, {"ops.xml": junit(**BAD)})
        await place.settle()
        assert place.check(second).title == "1 new failure · 1 passed"
        status, _, runs = await place.town.ask(f"/api/v1/repos/{REPOSITORY.upper()}/results/runs")
        assert (status, {run["sha"] for run in runs["runs"]}) == (200, {first, second})
        status, _, _ = await place.town.ask("/api/v1/repos/octocat/unheard-of/results/runs")
        assert status in {401, 404}


async def test_a_check_is_written_once_even_if_a_lab_sends_five_suites(place: LabTown) -> None:
    nightly_runs = [place.nightly_run(), place.nightly_run()]
    for sha in nightly_runs:
        for suite in ("arith", "ir", "relax", "target", "te"):
            place.upload(sha, {"a.xml": junit(**GOOD)}, suite=suite)
        await place.settle()
    assert [len(place.checks(sha)) for sha in nightly_runs] == [1, 1]
    writes = [str(request) for request in place.town.github.requests.writes]
    assert len([write for write in writes if "/check-runs" in write]) == 2, writes


async def test_a_suite_that_disappeared_is_reported_and_prevents_success(place: LabTown) -> None:
    first, second, third = place.nightly_run(), place.nightly_run(), place.nightly_run()
    for suite in ("arith", "relax"):
        place.upload(first, {"a.xml": junit(**GOOD)}, suite=suite)
    await place.settle()
    place.upload(second, {"a.xml": junit(**GOOD)}, suite="arith")
    await place.settle()
    run = place.check(second)
    assert (run.conclusion, run.title) == ("neutral", "Incomplete: relax is missing · Nothing changed · 2 passed")
    assert "Missing: `relax` (reported by the previous nightly run)" in str(run.summary)
    await place.scan(later=7 * 3600)
    assert GIVEN_UP in str(place.check(second).summary)
    place.upload(third, {"a.xml": junit(**GOOD)}, suite="arith")
    await place.settle()
    assert place.check(third).conclusion == "success"


async def test_a_device_that_is_down_for_several_nightly_runs_prevents_success_in_each_of_them(place: LabTown) -> None:
    nightly_runs = [place.nightly_run() for _ in range(4)]
    for sha, verdict in zip(nightly_runs, ("passed", "skipped", "skipped", "passed"), strict=True):
        place.upload(sha, {"a.xml": junit(**{f"test_{number}": verdict for number in range(5)})})
        await place.settle()
    assert [place.check(sha).conclusion for sha in nightly_runs] == ["success", "neutral", "neutral", "success"]
    assert "all 5 tests were skipped, of which 5 passed before" in str(place.check(nightly_runs[2]).title)


async def test_a_commit_that_nobody_asked_to_test_gets_no_check(place: LabTown) -> None:
    sha = place.town.repo.push("main", by="octocat").sha
    place.upload(sha, {"a.xml": junit(**GOOD)})
    await place.settle()
    assert place.town.repo.check_runs(sha) == []
    (run,) = place.town.bot.services.part(RESULTS).store.read(list_runs, "octocat/compiler")
    assert "neither on nightly nor the head of a pull request" in run.reason


async def test_earlier_results_that_arrive_late_change_the_report(place: LabTown) -> None:
    first, second = place.nightly_run(), place.nightly_run()
    place.upload(second, {"ops.xml": junit(**BAD)})
    await place.settle()
    assert place.check(second).title == f"{FIRST}, 1 failing · 1 passed"
    place.upload(first, {"ops.xml": junit(**GOOD)})
    await place.settle()
    assert place.checks(second)[-1].title == "1 new failure · 1 passed"


async def test_a_pull_request_is_compared_with_its_nearest_ancestor_and_its_failures_can_be_ignored(
    place: LabTown,
) -> None:
    nightly_run = place.nightly_run()
    place.upload(nightly_run, {"ops.xml": junit(**GOOD)})
    await place.settle()
    place.town.repo.push("main", onto=nightly_run, by="octocat")
    place.town.github.clock.advance(seconds=20)
    pull = place.town.repo.open_pull_request("octocat")
    place.upload(pull.head_sha, {"ops.xml": junit(**BAD)}, pull_request=pull.number)
    await place.scan()
    run = place.check(pull.head_sha)
    assert (run.conclusion, run.title) == ("neutral", "1 new failure · 1 passed")

    run.press("reader", "ignore")
    await place.town.quiet()
    check = place.checks(pull.head_sha)[-1]
    assert check.conclusion == "neutral"
    assert "write" in str(check.summary)
    page = f"/api/v1/repos/octocat/compiler/pulls/{pull.number}"
    (refused,) = (await place.town.ask(page))[2]["refused_presses"]
    assert (refused["pressed_by"], refused["sha"], "needs write access" in refused["why"]) == (
        "reader",
        pull.head_sha,
        True,
    )

    check.press("hubot", "ignore")
    await place.town.quiet()
    assert (await place.town.ask(page))[2]["refused_presses"] == []
    ignored = place.checks(pull.head_sha)[-1]
    assert ignored.conclusion == "success"
    assert "`hubot`" in str(ignored.summary)


async def test_a_button_works_although_app_yaml_writes_the_repository_in_other_letter_case(
    place: LabTown, tmp_path: Path
) -> None:
    name = "Octocat/Compiler"
    async with lab_town(f"sqlite:///{tmp_path}/other.db", place.bucket, repository=name) as other_place:
        sha = other_place.nightly_run()
        other_place.upload(sha, {"ops.xml": junit(**GOOD)})
        await other_place.settle()
        other_place.check(sha).press("hubot", "re-check")
        await other_place.town.quiet()
        writes = [str(request) for request in other_place.town.github.requests.writes if "/check-runs" in str(request)]
        assert len(writes) == 2


async def test_a_late_shard_is_ingested_although_the_head_has_moved(place: LabTown) -> None:
    place.town.repo.push("main", onto=place.nightly_run(), by="octocat")
    pull = place.town.repo.open_pull_request("octocat")
    tested = pull.head_sha
    place.upload(tested, {"a.xml": junit(test_add="passed")}, shard={"index": 1, "total": 2}, pull_request=pull.number)
    await place.settle()
    pull.push()
    await place.town.quiet()
    await place.scan(later=3600)
    place.upload(tested, {"b.xml": junit(test_mul="passed")}, shard={"index": 2, "total": 2}, pull_request=pull.number)
    await place.settle()
    assert place.check(tested).title == f"{FIRST} · 2 passed"


async def test_a_file_larger_than_its_manifest_says_is_not_read(place: LabTown) -> None:
    sha = place.nightly_run()
    folder = place.upload(sha, {"ops.xml": junit(**GOOD)})
    place.bucket.put(f"{folder}ops.xml", b"x" * 5000)
    await place.settle()
    assert "ops.xml has 5,000 bytes, but manifest.json says" in str(place.check(sha).summary)


async def test_nobody_can_ignore_failures_that_they_have_not_seen(place: LabTown) -> None:
    nightly_run = place.nightly_run()
    place.upload(nightly_run, {"a.xml": junit(**GOOD), "b.xml": junit(test_div="passed")})
    await place.settle()
    place.town.repo.push("main", onto=nightly_run, by="octocat")
    pull = place.town.repo.open_pull_request("octocat")
    place.upload(pull.head_sha, {"a.xml": junit(**BAD)}, shard={"index": 1, "total": 2})
    await place.settle()
    old_check = place.check(pull.head_sha)
    place.upload(pull.head_sha, {"b.xml": junit(test_div="AssertionError")}, shard={"index": 2, "total": 2})
    await place.scan()
    old_check.press("hubot", "ignore")
    await place.town.quiet()
    new_check = place.checks(pull.head_sha)[-1]
    assert (new_check.conclusion, new_check.title) == ("neutral", "2 new failures · 1 passed")
    assert "Press the button again" in str(new_check.summary)
    new_check.press("hubot", "ignore")
    await place.town.quiet()
    assert place.checks(pull.head_sha)[-1].conclusion == "success"


async def test_anybody_may_rerun_a_check(place: LabTown) -> None:
    sha = place.nightly_run()
    place.upload(sha, {"ops.xml": junit(**GOOD)})
    await place.settle()
    run = place.check(sha)
    run.rerequest("hubot")
    await place.town.quiet()
    run.press("hubot", "re-check")
    await place.town.quiet()
    assert place.checks(sha)[-1].conclusion == "success"
    writes = [str(request) for request in place.town.github.requests.writes if "/check-runs" in str(request)]
    assert len(writes) == 3


async def test_anybody_may_rerun_all_checks_of_a_commit(place: LabTown) -> None:
    sha, names = place.nightly_run(), (CHECK, "hardware/example-lab/adreno")
    for target in ("hexagon-v73", "adreno"):
        place.upload(sha, {"ops.xml": junit(**GOOD)}, target=target)
    await place.settle()
    assert [len(place.checks(sha, name)) for name in names] == [1, 1]
    (suite,) = [suite for suite in place.town.repo.suites if suite.head_sha == sha]
    suite.rerequest("hubot")
    await place.town.quiet()
    # Each has a new run, because GitHub has reset the old ones.
    assert [len(place.checks(sha, name)) for name in names] == [2, 2]
    assert await place.town.failures() == []


async def test_a_run_that_is_announced_many_times_is_ingested_once(place: LabTown) -> None:
    sha = place.nightly_run()
    place.upload(sha, {"ops.xml": junit(**GOOD)})
    for _ in range(3):
        await place.settle()
    assert len(place.checks(sha)) == 1
    assert CHECK in {run.name for run in place.town.repo.check_runs(sha)}
    assert await place.town.failures() == []


async def test_operators_see_the_age_of_the_newest_results(place: LabTown) -> None:
    sha = place.nightly_run()
    place.upload(sha, {"ops.xml": junit(**GOOD)})
    place.upload(sha, {"more.xml": junit(**GOOD)}, suite="more", without=("more.xml",))
    await place.settle()
    async with aiohttp.ClientSession() as session, session.get(f"{place.town.url}/metrics") as response:
        metrics = dict(
            line.rsplit(" ", 1) for line in (await response.text()).splitlines() if "nightjar_results" in line
        )
    repository_label = '{repository="octocat/compiler"}'
    assert 0 <= float(metrics[f"nightjar_results_listed_age_seconds{repository_label}"]) < 60
    assert metrics[f"nightjar_results_waiting_runs{repository_label}"] == "1.0"
    for target in ("hexagon-v73", "adreno"):  # no run of the second target has ever arrived
        labels = f'{{lab="example-lab",repository="octocat/compiler",target="{target}"}}'
        assert 0 <= float(metrics[f"nightjar_results_newest_run_age_seconds{labels}"]) < 600


async def test_a_run_with_files_that_exceed_a_limit_is_refused_with_the_limit_and_not_read_again(
    place: LabTown,
) -> None:
    """The kernel stops what our own limits don't catch: the lab sees which limit, and what to do."""
    pool = place.town.bot.services.part(POOL)
    pool.limits = replace(pool.limits, run=replace(pool.limits.run, wall=1e-6))
    nightly_run = place.nightly_run()
    place.upload(nightly_run, {"ops.xml": junit(**GOOD)})
    await place.settle()
    check = place.check(nightly_run)
    assert check.title == "Incomplete: 1 unusable run of operators"
    assert (
        "the files could not be read: reading the files of one run took longer than 1e-06 seconds, the maximum; "
        "upload the run in shards, under another run ID" in str(check.summary)
    )
    assert await place.town.failures() == []
    pool.limits = AllLimits()
    await place.settle()
    assert place.check(nightly_run).title == check.title, "the refusal is final"


async def test_the_check_reports_a_comparison_that_is_too_expensive(place: LabTown) -> None:
    nightly_run = place.nightly_run()
    place.upload(nightly_run, {"ops.xml": junit(**GOOD)})
    await place.settle()
    pool = place.town.bot.services.part(POOL)
    pool.limits = replace(pool.limits, comparison=replace(pool.limits.comparison, wall=1e-6))
    nightly_run = place.nightly_run()
    place.upload(nightly_run, {"ops.xml": junit(**BAD)})
    await place.settle()
    check = place.check(nightly_run)
    assert check.conclusion == "neutral"
    assert str(check.title).startswith(
        "Lab setup problem, no usable results: it could not be compared: comparing one suite took"
    )
    assert await place.town.failures() == []


async def test_control_characters_in_a_report_are_reported_and_lose_no_run(place: LabTown) -> None:
    sha = place.nightly_run()
    content = junit(**BAD).replace(b"3 != 4", b"3 != \x1b[31m4\x07") + b"\n2 tests in 1 s\n"
    place.upload(sha, {"ops.xml": content})
    await place.settle()
    summary = str(place.check(sha).summary)
    assert "AssertionError: 3 != 4�" in summary
    assert "needed repairs" in summary
    assert "ops.xml was repaired: characters that a report must not hold, such as control characters, were" in summary
    assert "; text after the end of the report was ignored" in summary


async def test_a_target_with_an_at_sign_and_a_colon_has_a_check_run(tmp_path: Path, aws_world: World) -> None:
    more_labs = 'board-lab: {targets: ["rpi-4@lab:1"]}'
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world, more_labs=more_labs) as place:
        sha = place.nightly_run()
        place.upload(sha, {"ops.xml": junit(**BAD)}, lab="board-lab", target="rpi-4%40lab%3A1")
        await place.settle()
        [run] = place.checks(sha, "hardware/board-lab/rpi-4@lab:1")
        assert run.external_id == "run-1"


async def test_each_failure_shows_since_when_and_how_often_it_failed_and_where_else_it_fails(place: LabTown) -> None:
    nightly_runs = []
    for verdicts in (GOOD, BAD, GOOD, BAD, BAD):
        nightly_runs.append(sha := place.nightly_run())
        for target in ("adreno", TARGET):
            place.upload(sha, {"ops.xml": junit(**verdicts)}, target=target)
            await place.settle()
    _, _, third, fourth, fifth = nightly_runs
    mul = f"| `{TEST_FILE}::test_mul` | failed | `AssertionError: 3 != 4` |"
    earlier_runs = f"last passed at `{third[:10]}`; failed in 1 of 3 earlier runs"
    also = f"also fails on `{LAB}/adreno`"
    assert f"{mul} {earlier_runs}; {also} |" in str(place.check(fourth).summary)
    row = f"| by this run | `AssertionError: 3 != 4` | since `{fourth[:10]}`; {earlier_runs}; {also} |"
    assert row in str(place.check(fifth).text)
    path = f"{place.town.url}/api/v1/repos/octocat/compiler/results/failures"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{path}?lab={LAB}&target={TARGET}") as answer:
            assert await answer.json() == {
                "failures": [
                    {
                        "suite": "operators",
                        "test": f"{TEST_FILE}::test_mul",
                        "sha": fifth,
                        "since": fourth,
                        "last_passed_at": third,
                        "failed_before": 1,
                        "runs_before": 3,
                        "also_on": [f"{LAB}/adreno"],
                        "known_flaky": False,
                        "quarantine": None,
                    }
                ],
                "total": 1,
                "unreliable": [],
            }
        for query, detail in {
            "?lab=example-lab": "target must be written as in the bucket's keys.",
            f"?lab={LAB}&target={TARGET}&limit=0": "limit must be a whole number from 1 to 200.",
            f"?lab={LAB}&target={TARGET}&suite=a": "Unknown parameter suite. Available: lab, target, limit, each once.",
        }.items():
            async with session.get(path + query) as answer:
                assert (answer.status, (await answer.json())["detail"]) == (400, detail)
        async with session.get(f"{path.replace('compiler', 'unknown')}?lab={LAB}&target={TARGET}") as answer:
            assert answer.status in (401, 404)
