"""People request device tests: commands, labels, pushes, approvals and budgets, with the whole bot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handlers.device_tests.model import QUEUE_SECONDS, DeviceJobState
from handlers.device_tests.sweep import SWEEP
from tests.bucket import World
from tests.conversations.devices import ADRENO, BAD, GOOD, HEXAGON, MALI, Devices, device_town
from tests.conversations.lab import LAB, junit


@pytest.fixture
async def devices(tmp_path: Path, aws_world: World) -> AsyncIterator[Devices]:
    async with device_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        yield place


async def test_a_target_that_nobody_requested_does_not_show_up(devices: Devices) -> None:
    pull = devices.pull()
    await devices.place.town.quiet()
    await devices.sweep()
    assert devices.place.town.repo.suites == [] or devices.checks(pull.head_sha) == []
    assert await devices.jobs(pull) == []


async def test_a_request_is_queued_runs_and_gets_the_comparison_of_a_nightly_run(devices: Devices) -> None:
    place = devices.place
    place.upload(place.nightly_run(), {"a.xml": junit(**GOOD)})
    await place.settle()
    place.town.repo.push("main", onto=place.town.repo.branch("nightly"), by="octocat")
    pull = devices.pull()
    writes_before = devices.writes()
    assert await devices.says(pull, "hubot", "@ci test on hexagon-v73") == (["eyes", "+1"], "")
    check = devices.check(pull.head_sha)
    assert (check.status, check.title) == ("queued", "Queued: next in line")
    assert "Requested by `hubot`." in str(check.summary)
    claimed = await devices.claim()
    assert (claimed.job.sha, claimed.job.suites) == (pull.head_sha, ("operators",))
    await devices.store.heartbeat(
        LAB, claimed.job.id, claimed.lease, log_url="https://lab.example.org/1", note="1 of 3"
    )
    await devices.sweep()
    check = devices.check(pull.head_sha)
    assert (check.status, check.details_url) == ("in_progress", "https://lab.example.org/1")
    assert "`1 of 3`" in str(check.summary)
    place.upload(pull.head_sha, {"a.xml": junit(**BAD)}, job=claimed.job.id)
    await place.settle()
    check = devices.check(pull.head_sha)
    assert (check.status, check.conclusion) == ("completed", "neutral")
    assert "1 new failure" in str(check.title)
    assert await devices.states(pull) == {HEXAGON: DeviceJobState.DONE}
    assert devices.writes() - writes_before == 3
    # All three are for the same head, and yield to checks of newer heads while GitHub's limits leave little.
    deliveries = await place.town.bot.engine.journal.recent(limit=500)
    effects = [effect for delivery in deliveries for plan in delivery.plans for effect in plan.effects]
    since = {e.effect["head_since"] for e in effects if e.target == f"check:{pull.head_sha}:{check.name}"}
    assert since == {claimed.job.requested_at}


async def test_the_answer_gives_the_place_in_the_queue_and_the_expected_time_on_the_target(devices: Devices) -> None:
    pulls = [devices.pull() for _ in range(3)]
    await devices.says(pulls[0], "hubot", "@ci test on hexagon-v73")
    first = await devices.claim()
    devices.place.time.ahead += 30 * 60
    await devices.store.complete(LAB, first.job.id, "operators")
    for pull in pulls[1:]:
        await devices.says(pull, "hubot", "@ci test on hexagon-v73")
    title = devices.check(pulls[2].head_sha).title
    assert title == "Queued: 1 test before it; starts in about 30 minutes"


async def test_all_requests_every_target_that_accepts_requests(devices: Devices) -> None:
    pull = devices.pull()
    await devices.says(pull, "hubot", "@ci test on all")
    assert set(await devices.states(pull)) == {HEXAGON, ADRENO, MALI}


async def test_unknown_and_nightly_targets_are_named_and_the_others_requested(devices: Devices) -> None:
    pull = devices.pull()
    reactions, answer = await devices.says(pull, "hubot", "@ci test on hexagon-v37 adreno cortex-m")
    assert reactions == ["eyes", "confused"]
    assert "No lab has a target named `hexagon-v37`. Did you mean `hexagon-v73`?" in answer
    assert "`cortex-m` tests only nightly commits, so I didn't request a test." in answer
    assert await devices.states(pull) == {ADRENO: DeviceJobState.QUEUED}
    _, answer = await devices.says(pull, "hubot", "@ci test on")
    assert "Name the targets, as in `@ci test on hexagon-v73`. Available: `hexagon-v73`, `adreno`, `mali`." in answer


async def test_a_target_that_is_already_requested_is_not_requested_twice(devices: Devices) -> None:
    pull = devices.pull()
    await devices.says(pull, "hubot", "@ci test on adreno")
    _, answer = await devices.says(pull, "octocat", "@ci test on example-lab/adreno")
    assert f"`example-lab/adreno` is already requested on `{pull.head_sha[:7]}`." in answer
    assert len(await devices.jobs(pull)) == 1


async def test_a_strangers_code_waits_until_its_commit_is_approved(devices: Devices) -> None:
    pull = devices.pull("somebody")
    reactions, answer = await devices.says(pull, "somebody", "@ci test on hexagon-v73")
    assert reactions == ["eyes", "+1"]
    command = f"`@ci approve tests {pull.head_sha}`"
    assert (
        "waiting for approval, because a lab's device would run this code. Someone who may approve can review" in answer
    )
    assert command in answer
    assert devices.checks(pull.head_sha) == []
    assert await devices.store.claim(LAB, [HEXAGON], devices.place.town.bot.services.part(SWEEP).limits_of) is None
    reactions, answer = await devices.says(pull, "somebody", "@ci approve tests")
    assert reactions == ["eyes", "confused"]
    assert "You need triage access" in answer
    reactions, answer = await devices.says(pull, "triager", "@ci approve tests")
    assert f"Approved on `{pull.head_sha[:7]}`: `example-lab/hexagon-v73`." in answer
    assert devices.check(pull.head_sha).status == "queued"
    (job,) = await devices.jobs(pull)
    assert (job.requested_by.login, job.approved_by.login) == ("somebody", "triager")
    _, answer = await devices.says(pull, "triager", "@ci approve tests")
    assert "No device test is waiting for approval" in answer


async def test_only_the_configured_roles_may_approve(tmp_path: Path, aws_world: World) -> None:
    roles = "60s\n      approve_tests: [write]"
    async with device_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world, settle=roles) as devices:
        pull = devices.pull("somebody")
        await devices.says(pull, "somebody", "@ci test on hexagon-v73")
        reactions, answer = await devices.says(pull, "triager", "@ci approve tests")
        assert (reactions, "You need write access" in answer) == (["eyes", "confused"], True), answer
        assert await devices.states(pull) == {HEXAGON: DeviceJobState.WAITING}
        await devices.says(pull, "hubot", "@ci approve tests")
        assert await devices.states(pull) == {HEXAGON: DeviceJobState.QUEUED}


@pytest.mark.parametrize("command", ["test on hexagon-v73", "approve tests"])
async def test_a_command_that_is_edited_into_somebody_elses_comment_does_not_count(
    devices: Devices, command: str
) -> None:
    pull = devices.pull("somebody")
    await devices.says(pull, "somebody", "@ci test on adreno")
    comment = pull.comment("somebody", "Please look")
    pull.edit_comment(comment, f"Please look\n\n@ci {command}", by="hubot")
    await devices.place.town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert "You edited this into a comment by `somebody`, so I ignored it." in devices.place.town.answers(pull)[-1]
    assert await devices.states(pull) == {ADRENO: DeviceJobState.WAITING}


async def test_a_push_needs_a_new_approval(devices: Devices) -> None:
    pull = devices.pull("somebody")
    await devices.says(pull, "somebody", "@ci test on adreno")
    await devices.says(pull, "triager", "@ci approve tests")
    old = pull.head_sha
    pull.push()
    reactions, answer = await devices.says(pull, "triager", f"@ci approve tests {old}")
    assert reactions == ["eyes", "confused"]
    assert f"Nothing was approved: you named `{old}`, but the head is `{pull.head_sha[:7]}`." in answer
    jobs = {job.sha: job for job in await devices.jobs(pull)}
    assert jobs[old].state is DeviceJobState.CANCELLED
    # The request stays, because the target is sticky; the approval of the old head does not.
    assert jobs[pull.head_sha].state is DeviceJobState.WAITING
    assert devices.check(old, ADRENO).title == "Cancelled by a push"
    assert devices.checks(pull.head_sha, ADRENO) == []


async def test_a_push_cancels_queued_tests_and_leaves_running_ones(devices: Devices) -> None:
    pull = devices.pull()
    await devices.says(pull, "hubot", "@ci test on hexagon-v73 adreno")
    running, old = await devices.claim(ADRENO), pull.head_sha
    pull.push()
    await devices.place.town.quiet()
    states = {(job.sha == old, job.target): job.state for job in await devices.jobs(pull)}
    assert states == {
        (True, HEXAGON): DeviceJobState.CANCELLED,
        (True, ADRENO): DeviceJobState.LEASED,
        (False, ADRENO): DeviceJobState.QUEUED,
    }
    # The lab may finish: its results count, although the head moved.
    devices.place.upload(old, {"a.xml": junit(**GOOD)}, target=ADRENO, job=running.job.id)
    await devices.place.settle()
    assert devices.check(old, ADRENO).conclusion == "success"


async def test_tier_1_tests_each_push_that_changes_its_files(devices: Devices) -> None:
    repo = devices.place.town.repo
    pulls = [repo.open_pull_request("hubot", "Change", files={path: "x"}) for path in ("src/mali/tile.cc", "README.md")]
    await devices.place.town.quiet()
    assert [list(await devices.states(pull)) for pull in pulls] == [[MALI], []]
    # The check run appears once the test runs.
    assert devices.checks(pulls[0].head_sha, MALI) == []
    claimed = await devices.claim(MALI)
    await devices.store.heartbeat(LAB, claimed.job.id, claimed.lease, note="started")
    await devices.sweep()
    assert devices.check(pulls[0].head_sha, MALI).status == "in_progress"


async def test_a_label_requests_its_target_and_removing_it_cancels_that(devices: Devices) -> None:
    pull = devices.pull()
    await devices.place.town.quiet()
    pull.label("hubot", "test: Hexagon", "bug")
    await devices.place.town.quiet()
    assert await devices.states(pull) == {HEXAGON: DeviceJobState.QUEUED}
    pull.unlabel("hubot", "test: Hexagon")
    await devices.place.town.quiet()
    assert await devices.states(pull) == {HEXAGON: DeviceJobState.CANCELLED}
    # A command's request does not depend on the label.
    await devices.says(pull, "hubot", "@ci test on hexagon-v73")
    pull.label("hubot", "test: hexagon")
    pull.unlabel("hubot", "test: hexagon")
    await devices.place.town.quiet()
    assert await devices.states(pull) == {HEXAGON: DeviceJobState.QUEUED}


async def test_a_tag_of_the_title_requests_its_target_as_the_label_does(devices: Devices) -> None:
    pull = devices.place.town.repo.open_pull_request("hubot", "[Hexagon][test: hexagon, EXAMPLE-lab/Mali] Faster")
    await devices.place.town.quiet()
    assert await devices.states(pull) == {HEXAGON: DeviceJobState.QUEUED, MALI: DeviceJobState.QUEUED}
    pull.edit("hubot", title="[adreno] [test: hexagon] Faster")
    await devices.place.town.quiet()
    queued, cancelled = DeviceJobState.QUEUED, DeviceJobState.CANCELLED
    assert await devices.states(pull) == {HEXAGON: queued, MALI: cancelled, ADRENO: queued}
    assert len(await devices.jobs(pull)) == 3
    # A request by command does not depend on the title; `run-odt` is RFC 0098's name of the command.
    await devices.says(pull, "hubot", '@ci run-odt mali "test: hexagon"')
    pull.edit("hubot", title="Faster")
    await devices.place.town.quiet()
    assert await devices.states(pull) == {HEXAGON: cancelled, MALI: queued, ADRENO: cancelled}
    stranger = devices.pull("somebody")
    stranger.edit("somebody", title="[hexagon-v73] Faster")
    await devices.place.town.quiet()
    assert await devices.states(stranger) == {HEXAGON: DeviceJobState.WAITING}
    closed = devices.pull("somebody")
    closed.close("somebody")
    closed.edit("somebody", title="[hexagon-v73] Faster")
    await devices.place.town.quiet()
    assert await devices.states(closed) == {}


async def test_a_label_added_without_write_access_waits_for_approval(devices: Devices) -> None:
    pull = devices.pull("somebody")
    await devices.place.town.quiet()
    pull.label("triager", "test: hexagon")
    await devices.place.town.quiet()
    assert await devices.states(pull) == {HEXAGON: DeviceJobState.WAITING}


async def test_budgets_apply_per_target_person_and_day(devices: Devices) -> None:
    for _ in range(3):
        await devices.says(devices.pull(), "hubot", "@ci test on hexagon-v73")
    pull = devices.pull()
    reactions, answer = await devices.says(pull, "hubot", "@ci test on hexagon-v73 adreno")
    assert reactions == ["eyes", "confused"]
    assert "`example-lab/hexagon-v73` has used its budget of 3/day (UTC). Ask again tomorrow." in answer
    assert await devices.states(pull) == {ADRENO: DeviceJobState.QUEUED}
    pull.label("hubot", "test: hexagon")
    await devices.place.town.quiet()
    check = devices.check(pull.head_sha)
    assert (check.conclusion, check.title) == ("neutral", "Not requested: the budget is used up")
    await devices.says(pull, "octocat", "@ci test on hexagon-v73")
    assert set(await devices.states(pull)) == {ADRENO, HEXAGON}


async def test_status_lists_the_tests_of_the_head(devices: Devices) -> None:
    pull = devices.pull()
    _, answer = await devices.says(pull, "hubot", "@ci test status")
    assert f"Nobody has requested device tests for `{pull.head_sha[:7]}`." in answer
    await devices.says(pull, "hubot", "@ci test on hexagon-v73 adreno mali")
    claimed = await devices.claim()
    await devices.store.heartbeat(LAB, claimed.job.id, claimed.lease, note="@octocat 1 of 3")
    mali = await devices.claim(MALI)
    await devices.store.complete(LAB, mali.job.id, "operators")
    _, answer = await devices.says(pull, "hubot", "@ci test status")
    assert "- `example-lab/hexagon-v73`: running for 1 minute, attempt 1 (`@octocat 1 of 3`)" in answer
    assert "- `example-lab/adreno`: queued, next in line" in answer
    assert "- `example-lab/mali`: done; see its check run" in answer


async def test_cancel_ends_queued_and_running_tests(devices: Devices) -> None:
    pull = devices.pull()
    _, answer = await devices.says(pull, "hubot", "@ci cancel tests")
    assert "This pull request has no queued or running device test." in answer
    await devices.says(pull, "hubot", "@ci test on hexagon-v73 adreno")
    await devices.claim()
    assert await devices.says(pull, "hubot", "@ci cancel tests") == (["eyes", "+1"], "")
    assert set((await devices.states(pull)).values()) == {DeviceJobState.CANCELLED}
    assert devices.check(pull.head_sha).title == "Cancelled"
    pull.push()
    await devices.place.town.quiet()
    assert pull.head_sha not in {job.sha for job in await devices.jobs(pull)}, "a cancelled request is not repeated"


async def test_closing_a_pull_request_cancels_its_tests(devices: Devices) -> None:
    pull = devices.pull()
    await devices.says(pull, "hubot", "@ci test on hexagon-v73")
    pull.close("hubot")
    await devices.place.town.quiet()
    assert await devices.states(pull) == {HEXAGON: DeviceJobState.CANCELLED}
    reactions, answer = await devices.says(pull, "hubot", "@ci test on adreno")
    assert reactions == ["eyes", "confused"]
    assert "This pull request is closed" in answer


async def test_a_job_ends_as_neutral_if_its_lab_never_comes_back(devices: Devices) -> None:
    pull = devices.pull()
    await devices.says(pull, "hubot", "@ci test on hexagon-v73")
    for _ in range(3):
        await devices.claim()
        await devices.sweep(later=200)
    check = devices.check(pull.head_sha)
    assert (check.status, check.conclusion, check.title) == ("completed", "neutral", "The lab stopped responding")
    assert "`@example-lab-ci`" in str(check.summary)
    assert "comment `@ci test on hexagon-v73`" in str(check.summary)


async def test_no_check_stays_pending_for_ever(devices: Devices) -> None:
    pull = devices.pull()
    await devices.says(pull, "hubot", "@ci test on hexagon-v73")
    await devices.sweep(later=QUEUE_SECONDS + 1)
    assert devices.check(pull.head_sha).title == "No device was free"


async def test_a_check_that_could_not_be_written_is_written_later(devices: Devices) -> None:
    pull = devices.pull()
    # The bot's own timer may also try at any time.
    devices.place.town.github.faults.add("POST", "/repos/{owner}/{repo}/check-runs", status=403, times=None)
    await devices.says(pull, "hubot", "@ci test on hexagon-v73")
    assert devices.checks(pull.head_sha) == []
    devices.place.town.github.faults.clear()
    await devices.sweep(later=3600)
    assert devices.check(pull.head_sha).status == "queued"


async def test_cancelling_a_test_restores_the_earlier_result(devices: Devices) -> None:
    pull = devices.pull()
    devices.place.upload(pull.head_sha, {"a.xml": junit(**GOOD)})
    await devices.place.settle()
    assert devices.check(pull.head_sha).conclusion == "success"
    await devices.says(pull, "hubot", "@ci test on hexagon-v73")
    assert [run.status for run in devices.checks(pull.head_sha)] == ["completed", "queued"]
    await devices.says(pull, "hubot", "@ci cancel tests")
    assert devices.checks(pull.head_sha)[-1].conclusion == "success"


@pytest.mark.parametrize("target", [HEXAGON, MALI])
async def test_late_results_after_three_writes_get_a_fourth_one(devices: Devices, target: str) -> None:
    """See docs/decisions/results-after-the-end.md. The test of a push has no check run while it is queued."""
    pull, place, writes_before = devices.pull(), devices.place, devices.writes()
    if target == HEXAGON:
        await devices.says(pull, "hubot", f"@ci test on {target}")
    else:
        pull.push({"src/mali/tile.cc": "x"})
        await place.town.quiet()
    claimed = await devices.claim(target)
    await devices.store.heartbeat(LAB, claimed.job.id, claimed.lease, note="1 of 3")
    await devices.sweep()
    await devices.says(pull, "hubot", "@ci cancel tests")
    check = devices.check(pull.head_sha, target)
    assert (check.title, check.conclusion, devices.writes() - writes_before) == (
        "Cancelled",
        "neutral",
        3 - (target == MALI),
    )
    place.upload(pull.head_sha, {"a.xml": junit(**GOOD)}, target=target, job=claimed.job.id)
    await place.settle()
    await devices.sweep(later=3600)
    assert devices.check(pull.head_sha, target).conclusion == "success", "results win, however late they arrive"
    assert devices.writes() - writes_before == 4 - (target == MALI)


async def test_help_lists_the_targets(devices: Devices) -> None:
    _, answer = await devices.says(devices.pull(), "hubot", "@ci help")
    assert "`@ci test on [all \\| TARGET…]`" in answer
    assert "Targets: `hexagon-v73`, `adreno`, `mali`." in answer
    assert "cortex-m" not in answer


async def test_a_labs_report_about_another_job_is_ignored(devices: Devices) -> None:
    pull, other_pull = devices.pull(), devices.pull()
    await devices.says(pull, "hubot", "@ci test on hexagon-v73")
    claimed = await devices.claim()
    devices.place.upload(other_pull.head_sha, {"a.xml": junit(**GOOD)}, job=claimed.job.id)
    devices.place.upload(pull.head_sha, {"a.xml": junit(**GOOD)}, target=ADRENO, job=claimed.job.id)
    await devices.place.settle()
    assert await devices.states(pull) == {HEXAGON: DeviceJobState.LEASED}


async def test_results_of_another_commit_do_not_complete_the_job(devices: Devices) -> None:
    """The lab may test any commit of the pull request, but the job is for the approved commit."""
    pull = devices.pull()
    await devices.says(pull, "hubot", "@ci test on hexagon-v73")
    claimed, requested = await devices.claim(), pull.head_sha
    pull.push()
    await devices.place.town.quiet()
    devices.place.upload(pull.head_sha, {"a.xml": junit(**GOOD)}, job=claimed.job.id)
    await devices.place.settle()
    assert devices.check(pull.head_sha).conclusion == "success", "the results still count for the pull request"
    job = await devices.store.find(LAB, claimed.job.id)
    assert (job.sha, job.state, job.arrived) == (requested, DeviceJobState.LEASED, ())
    devices.place.upload(requested, {"a.xml": junit(**GOOD)}, job=claimed.job.id)
    await devices.place.settle()
    assert (await devices.store.find(LAB, claimed.job.id)).state is DeviceJobState.DONE
