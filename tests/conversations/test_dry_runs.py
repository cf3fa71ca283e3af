"""A dry run shows exactly what the whole bot then writes, with buckets, chats, Docker Hub, CI, and labs.

Together with those of `tests/handlers/test_dry_run.py` and of each `tests/handlers/<feature>/scenes.py`, these scenes
cover every handler and every kind of effect; the last test fails for a new one that no scene shows.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bot.app.features import CODEC, full_router
from sandbox.model.rules import Rules
from tests.bucket import World
from tests.conversations.alarms import alarm_town
from tests.conversations.channels import town_with_channels
from tests.conversations.device_lab import device_lab
from tests.conversations.devices import ADRENO, device_town
from tests.conversations.dry_runs import DryFirst, Scene, SceneFixtures
from tests.conversations.lab import LAB, junit, lab_town
from tests.conversations.merges import CPU, KEYS, approve, merge_town, ready, report, says
from tests.conversations.nightly_runs import nightly_town
from tests.conversations.stale import stale_town
from tests.conversations.test_ci_artifacts import ADD_SKIPPED, ALL_PASS, BOTH, REQUIRED, on_main, run_ci
from tests.conversations.test_ci_uploads import FEATURES as UPLOADED
from tests.conversations.test_ci_uploads import based, sections, uploaded
from tests.conversations.test_degraded_targets import TARGETS, Targets
from tests.conversations.test_docker_update import NEW, image_town
from tests.conversations.test_lab_webhook import SECRET, listening, ticked, webhook
from tests.conversations.test_lab_workflow import town_with_workflow
from tests.conversations.test_paused_targets import day_after
from tests.conversations.test_team_tags import CONFIG as TEAMS
from tests.conversations.town import town as start_town
from tests.conversations.town import works
from tests.handlers.test_dry_run import SCENES as DRIVEN_SCENES
from tests.of_features import constants


async def nightly_runs_fail_on_several_targets(fixtures: SceneFixtures) -> DryFirst:
    """Labs upload: two targets fail in the same tests, a third in another one, and all of them recover."""
    async with town_with_channels(fixtures.folder, fixtures.bucket, "lab-2: {targets: [a]}") as (place, channels):
        dry = DryFirst.attached(place.town.bot)
        for failed in ("", "ab", "ab", ""):
            sha = place.nightly_run()
            targets = (LAB, "hexagon-v73", failed), (LAB, "adreno", failed), ("lab-2", "a", failed.replace("ab", "c"))
            for lab, target, broken in targets:
                verdicts = {
                    f"test_{letter}": "AssertionError: 3 != 4" if letter in broken else "passed" for letter in "abcd"
                }
                place.upload(sha, {"ops.xml": junit(**verdicts)}, lab=lab, target=target)
            await place.settle()
            await place.scan()
            await dry.quiet(place.town)
        assert {"❌ 2 tests failing on 2 targets", "❌ 1 test began to fail on lab-2/a"} <= {
            message.partition(" since ")[0].partition(" at ")[0] for message in channels.discord.said
        }
        (suite,) = (suite for suite in place.town.repo.suites if suite.head_sha == sha)
        suite.rerequest("hubot")
        await dry.quiet(place.town)
    return dry


async def people_request_device_tests(fixtures: SceneFixtures) -> DryFirst:
    """A contributor's request is approved and a lab runs it; a push, a command and a closing cancel others."""
    async with device_town(fixtures.database, fixtures.bucket) as devices:
        town = devices.place.town
        dry = DryFirst.attached(town.bot)
        pull = devices.pull("somebody")
        await devices.says(pull, "somebody", "@ci test on hexagon-v73 adreno")
        await devices.says(pull, "triager", "@ci approve tests")
        claimed = await devices.claim()
        await devices.store.heartbeat(LAB, claimed.job.id, claimed.lease)
        await devices.sweep()
        devices.place.upload(pull.head_sha, {"a.xml": junit(test_add="passed")}, job=claimed.job.id)
        await devices.place.settle()
        pull.label("hubot", "test: hexagon")
        await dry.quiet(town)
        pull.push()
        await dry.quiet(town)
        await devices.says(pull, "octocat", f"@ci lab pause hexagon-v73 until {day_after(devices, 2)}")
        town.repo.open_issue("somebody", "Propose a lab").comment("octocat", "@ci lab accept")
        await devices.says(pull, "hubot", "@ci cancel tests")
        # Who comments in the second of the push may have seen another head, so their request would need an approval.
        town.github.clock.advance(seconds=2)
        await devices.says(pull, "hubot", "@ci benchmark on adreno")
        await devices.store.end_unable((await devices.claim(ADRENO)).job)
        await devices.sweep()
        assert "cannot run two commits in turn" in devices.place.town.answers(pull)[-1]
        pull.close("octocat")
        await dry.quiet(town)
    return dry


async def a_target_is_degraded_and_restored(fixtures: SceneFixtures) -> DryFirst:
    """A target has no nightly run for a day, then two good ones."""
    async with lab_town(fixtures.database, fixtures.bucket, targets=TARGETS) as place:
        dry, targets = DryFirst.attached(place.town.bot), Targets(place)
        await targets.nightly_run()
        await targets.nightly_run(hexagon=None)
        await targets.later(24)
        assert targets.issue.state == "open"
        await dry.quiet(place.town)
        for _ in range(2):
            await targets.nightly_run()
            await targets.check()
        assert targets.issue.state == "closed"
        await dry.quiet(place.town)
    return dry


async def a_lab_is_notified_of_a_job(fixtures: SceneFixtures) -> DryFirst:
    """The bot calls the webhook of one lab, and starts the workflow of another."""
    fixtures.monkeypatch.setenv("LAB_SECRET", SECRET)
    dry = DryFirst()
    async with listening() as listener:
        async with device_lab(
            fixtures.database, fixtures.bucket, extra=webhook(listener.url, allow_private=True)
        ) as lab:
            dry.attach(lab.town.bot)
            await lab.asked_for()
            await ticked(lab)
            await dry.quiet(lab.town)
        assert len(listener.heard) == 1
    (fixtures.folder / "workflow").mkdir()
    async with town_with_workflow(fixtures.folder / "workflow", fixtures.bucket) as (lab, devices):
        dry.attach(lab.town.bot)
        await lab.asked_for()
        await ticked(lab)
        await dry.quiet(lab.town)
        assert len(devices.workflow_runs) == 1
    return dry


async def the_nightly_branch_moves(fixtures: SceneFixtures) -> DryFirst:
    """The bot moves the branch, and writes its state to the bucket of a lab."""
    async with nightly_town(fixtures.database, bucket=fixtures.bucket) as place:
        dry = DryFirst.attached(place.town.bot)
        place.push()
        await place.nightly_run()
        assert fixtures.bucket.keys("")
        await dry.quiet(place.town)
    return dry


async def ci_uploads_artifacts(fixtures: SceneFixtures) -> DryFirst:
    """CI uploads reports for a base and a head, and the head moves on."""
    async with start_town(fixtures.database, config=BOTH) as town:
        town.repo.push("main", REQUIRED, by="octocat")
        dry = DryFirst.attached(town.bot)
        on_main(town, ALL_PASS)
        pull = town.repo.open_pull_request("hubot", "Faster")
        await dry.quiet(town)
        run_ci(town, pull.head_sha, ADD_SKIPPED)
        await dry.quiet(town)
        pull.push()
        await dry.quiet(town)
        assert "Out of date" in town.answers(pull)[0]
    return dry


async def ci_uploads_to_the_bucket(fixtures: SceneFixtures) -> DryFirst:
    """CI uploads as a lab of its own: results of a base, and of a head."""
    async with lab_town(fixtures.database, fixtures.bucket, features=UPLOADED) as place:
        dry = DryFirst.attached(place.town.bot)
        _, pull = await based(place, add="passed 100", mul="skipped")
        uploaded(place, pull.head_sha, pull, add="skipped", mul="passed 20")
        await place.settle()
        await dry.quiet(place.town)
        assert set(sections(pull)) == {"skipped-tests", "runtime"}
    return dry


async def images_have_newer_tags(fixtures: SceneFixtures) -> DryFirst:
    """Docker Hub has a newer tag of an image."""
    async with image_town(fixtures.database) as place:
        dry = DryFirst.attached(place.town.bot)
        place.release("ci-arm", tag=NEW)
        await place.nightly_run()
        await dry.quiet(place.town)
        assert len(place.pulls) == 1
    return dry


async def main_fails_and_recovers(fixtures: SceneFixtures) -> DryFirst:
    """Checks fail on main, and the next commit fixes them."""
    async with alarm_town(fixtures.database) as place:
        dry = DryFirst.attached(place.town.bot)
        for state in ("success", "failure", "success"):
            place.push("Change it", cpu=state)
            await place.news()
            await dry.quiet(place.town)
        await place.sweep()
        await dry.quiet(place.town)
        assert [issue.state for issue in place.issues] == ["closed"]
    return dry


async def pull_requests_wait_and_merge(fixtures: SceneFixtures) -> DryFirst:
    """A branch is updated and merged, a push ends a merge, and another pull request leaves the merge queue."""
    async with merge_town(fixtures.database, f"required: [{CPU}], label: ready") as town:
        dry = DryFirst.attached(town.bot)
        town.repo.rules["main"] = Rules(strict=True)
        pull = ready(town)
        town.repo.push("main", {"README.md": "# Moved on\n"}, by="octocat")
        await says(town, pull, "@ci merge when green")
        await says(town, pull, "@ci update")
        report(town, pull)
        await dry.quiet(town)
        approve(pull)
        await dry.quiet(town)
        assert pull.merged_at
        pushed = town.repo.open_pull_request("hubot", "Slower")
        await says(town, pushed, "@ci merge when green")
        pushed.push()
        await dry.quiet(town)
    (fixtures.folder / "queue").mkdir()
    async with merge_town(f"sqlite:///{fixtures.folder}/queue/nightjar.db", KEYS) as town:
        town.repo.rules["main"] = Rules(queue=True, methods=("rebase",))
        pull = ready(town)
        await says(town, pull, "@ci merge")
        assert pull.queued is not None
        # This comes last: a dry run cannot show that a merge goes into a queue
        # (docs/decisions/conclusions-are-plans.md).
        dry.attach(town.bot)
        await says(town, pull, "@ci cancel")
        assert pull.queue == []
        await dry.quiet(town)
    return dry


async def people_restart_and_approve_ci(fixtures: SceneFixtures) -> DryFirst:
    """Workflows, one of their jobs and a Jenkins job run again, and the workflow of a fork is approved."""
    async with works(fixtures.database) as site:
        town, dry = site.town, DryFirst.attached(site.town.bot)
        pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
        town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "success"})
        site.job(pull, "gpu", "FAILURE")
        await says(town, pull, "@ci rerun unit")
        await says(town, pull, "@ci rerun")
        town.repo.add_workflow_run(pull.head_sha, "Docs", "action_required")
        await says(town, pull, "@ci approve ci")
        wrong = pull.comment("octocat", "@ci hlep")
        await dry.quiet(town)
        pull.edit_comment(wrong, "@ci help")
        await dry.quiet(town)
    return dry


async def people_are_mentioned(fixtures: SceneFixtures) -> DryFirst:
    """An edit removes a refused name, a title names a topic, and reviewers wait for a week."""
    async with start_town(fixtures.database, config=TEAMS) as town:
        town.github.faults.add("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/reviews", status=422, times=1)
        asking = town.repo.open_pull_request("hubot", "Faster", "cc @octocat")
        await town.quiet()
        (report_on_reviewers,) = town.answers(asking)
        assert "couldn't request reviews" in report_on_reviewers
        # This comes last: a dry run cannot show that GitHub refuses a request
        # (docs/decisions/conclusions-are-plans.md).
        dry = DryFirst.attached(town.bot)
        asking.edit("hubot", body="Never mind.")
        await dry.quiet(town, failed=1)
        assert town.answers(asking) == []
        town.repo.open_pull_request("hubot", "[hexagon] Faster")
        await dry.quiet(town, failed=1)
    (fixtures.folder / "stale").mkdir()
    async with stale_town(f"sqlite:///{fixtures.folder}/stale/nightjar.db") as place:
        dry.attach(place.town.bot)
        pull = place.opened(7.1, "hubot")
        await place.scan()
        assert len(place.reminders(pull)) == 1
        await dry.quiet(place.town)
    return dry


SCENES: dict[Scene, str] = {
    nightly_runs_fail_on_several_targets: """
        hardware-runs hardware-results hardware-results-all regressions nightly-news news
        IngestRun StoreReports RequestCheckRun PostMessage PostNews""",
    people_request_device_tests: """
        device-jobs device-job-steps benchmarks SubmitDeviceJob ApproveDeviceJobs CancelDeviceJobs
        CancelPausedJobs NoteShownStep lab-proposals""",
    a_target_is_degraded_and_restored: "degraded-targets EnsureIssue",
    a_lab_is_notified_of_a_job: "lab-webhook SendLabWebhook StartLabWorkflow",
    the_nightly_branch_moves: "nightly MarkNightly MoveBranch PublishNightly",
    ci_uploads_artifacts: """
        skipped-tests skipped-tests-run runtime runtime-run sections sections-out-of-date
        RequestSection SubmitSection ShowSection MarkOutOfDate""",
    ci_uploads_to_the_bucket: "skipped-tests-results runtime-results",
    images_have_newer_tags: "docker-update EnsurePull",
    main_fails_and_recovers: "main-failures main-failures-scan main-failures-triggers RequestScan",
    pull_requests_wait_and_merge: """
        merge-when-green merge-when-green-triggers MergePull UpdateBranch LeaveQueue
        StorePendingMerge EndPendingMerge RequestRefresh EnsureLabel""",
    people_restart_and_approve_ci: """
        commands CountCommands React RemoveReaction Reply RerunJob StartJenkinsBuild ApproveRun""",
    people_are_mentioned: "team-tags MentionSubscribers ReportReviewers stale-reviews Remind",
}
"""The handlers and the kinds of effects that each scene is here for; it may show more."""
for scenes in constants("scenes", "SCENES"):
    SCENES |= scenes
NO_SCENE = (
    "no scene shows these: write one in tests/handlers/<feature>/scenes.py, as docs/architecture.md shows, or add them "
    "to a scene of SCENES whose conversation plans them"
)


@pytest.mark.no_cover
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_a_dry_run_shows_exactly_what_the_bot_plans_and_applies(
    scene: Scene, tmp_path: Path, aws_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = await scene(SceneFixtures(tmp_path, aws_world, monkeypatch))
    assert set(SCENES[scene].split()) - dry.handlers - dry.kinds == set()


def test_every_handler_and_every_kind_of_effect_has_a_scene() -> None:
    names = {handler.name for handler in full_router().handlers} | CODEC.kinds
    covered = Counter(name for text in (*SCENES.values(), *DRIVEN_SCENES.values()) for name in text.split())
    assert names - covered.keys() == set(), NO_SCENE
    assert covered.keys() - names == set(), "these are neither handlers nor effects"
