"""What people and CI see of slow tests: the status on each head, the answers, and which runs restart."""

from __future__ import annotations

from pathlib import Path

from sandbox.model.apps import DEFAULT_PERMISSIONS
from tests.handlers.driver import World, a_world

OFF = "success: Off: nobody requested them. To turn on, comment: @ci run slow tests"
ON = "success: On: requested by octocat. To turn off, comment: @ci skip slow tests"
SKIPPED = "success: Off: turned off by octocat. To turn on, comment: @ci run slow tests"


async def test_a_new_pull_request_shows_that_they_are_off_and_how_to_turn_them_on(world: World) -> None:
    pull = world.open()
    await world.happen()
    assert world.slow_status(pull.head_sha) == OFF


async def test_requested_in_the_description_they_are_on_from_the_first_commit(world: World) -> None:
    pull = world.open("Speed up matmul.\n\n@ci run slow tests")
    await world.happen()
    assert world.slow_status(pull.head_sha) == ON


async def test_a_pull_request_without_a_description_works(world: World) -> None:
    """TVM's bot crashed on a null description, and that counted as a request."""
    pull = world.open(None)
    await world.happen()
    assert world.slow_status(pull.head_sha) == OFF


async def test_they_stay_on_through_pushes_until_somebody_skips_them(world: World) -> None:
    pull = world.open()
    await world.say(pull, "@ci run slow tests")
    for _ in range(2):
        pull.push()
        await world.happen()
        assert world.slow_status(pull.head_sha) == ON
    assert "eyes +1" in await world.say(pull, "@ci skip slow tests")
    assert world.slow_status(pull.head_sha) == SKIPPED
    pull.push()
    await world.happen()
    assert world.slow_status(pull.head_sha) == SKIPPED


async def test_the_head_of_a_reopened_pull_request_gets_the_status_too(world: World) -> None:
    pull = world.open()
    pull.close("octocat")
    await world.happen()
    pull.head_sha = pull.head_repository.push(pull.head_ref, by="octocat").sha
    pull.reopen("octocat")
    await world.happen()
    assert world.slow_status(pull.head_sha) == OFF


async def test_finished_ci_runs_again(world: World) -> None:
    pull = world.open()
    done = world.repository.add_workflow_run(pull.head_sha, "CI", "success", {"unit": "success", "slow": "skipped"})
    gpu = world.jenkins.add_job(f"gpu/PR-{pull.number}", pull=pull, context="gpu/pr-head")
    gpu.trigger()
    gpu.builds[-1].finish("SUCCESS")
    answer = await world.say(pull, "@ci run slow tests")
    assert (done.attempt, len(gpu.builds)) == (2, 2)
    assert (
        f"CI had already finished on `{pull.head_sha[:7]}`, so I'm restarting it with slow tests: `CI`, `gpu/pr-head`."
        in answer
    )


async def test_running_ci_is_left_alone_and_the_answer_explains_that(world: World) -> None:
    pull = world.open()
    running = world.repository.add_workflow_run(pull.head_sha, "CI")
    answer = await world.say(pull, "@ci run slow tests")
    assert running.attempt == 1
    assert "Still running, so left alone: `CI`. If a run has already decided to skip the slow tests" in answer


async def test_if_ci_has_not_started_the_reaction_and_the_status_are_the_answer(world: World) -> None:
    pull = world.open()
    assert await world.say(pull, "@ci run slow tests") == "eyes +1"
    assert world.slow_status(pull.head_sha) == ON


async def test_the_bots_own_status_does_not_count_as_ci(tmp_path: Path) -> None:
    async with a_world(tmp_path, features={"skip_ci": {"globs": ["*.md"]}}) as world:
        pull = world.open()
        await world.happen()
        assert world.repository.status(pull.head_sha, "ci/skip") is not None
        assert await world.say(pull, "@ci run slow tests") == "eyes +1"


async def test_turning_on_works_without_access_to_ci_and_names_each_missing_permission_once(tmp_path: Path) -> None:
    """The answer used to be a 😕 before "Slow tests are on", with a paragraph for each permission."""
    granted = {key: level for key, level in DEFAULT_PERMISSIONS.items() if key not in ("actions", "checks")}
    async with a_world(tmp_path, permissions=granted) as world:
        pull = world.open()
        answer = await world.say(pull, "@ci run slow tests")
        assert answer.startswith("eyes +1")
        assert answer.endswith(
            "- `@ci run slow tests`: Slow tests are on, but I couldn't check whether CI has to restart. I can't see "
            "all CI results: the App needs *Actions: read*. The App's owner grants it in the App's settings; then an "
            "owner of the repository accepts it."
        )


async def test_a_second_request_runs_nothing_twice(world: World) -> None:
    pull = world.open()
    done = world.repository.add_workflow_run(pull.head_sha, "CI", "success")
    await world.say(pull, "@ci run slow tests")
    done.start()
    done.finish("success")
    answer = await world.say(pull, "@ci run slow tests", by="hubot")
    assert answer == "eyes +1"
    assert done.attempt == 2
    assert world.slow_status(pull.head_sha) == ON


async def test_the_later_of_two_commands_in_one_comment_wins(world: World) -> None:
    pull = world.open()
    done = world.repository.add_workflow_run(pull.head_sha, "CI", "success")
    answer = await world.say(pull, "@ci run slow tests\n@ci skip slow tests")
    assert answer.startswith("eyes +1")
    assert answer.endswith("\n\n- `@ci run slow tests`: Ignored: a later line of this comment overrides it.")
    assert world.slow_status(pull.head_sha) == SKIPPED
    assert done.attempt == 1
    assert "eyes +1" in await world.say(pull, "@ci skip slow tests\n@ci run slow tests")
    assert world.slow_status(pull.head_sha) == ON


async def test_a_refused_person_changes_nothing(world: World) -> None:
    pull = world.open()
    answer = await world.say(pull, "@ci run slow tests", by="a-passer-by")
    assert "confused" in answer
    assert world.slow_status(pull.head_sha) == OFF


async def test_slow_tests_of_a_closed_pull_request_cannot_be_changed(world: World) -> None:
    pull = world.open()
    pull.close("octocat")
    assert "This pull request is closed, so nothing changed." in await world.say(pull, "@ci run slow tests")


async def test_a_full_branch_says_so_and_cannot_be_skipped(tmp_path: Path) -> None:
    async with a_world(tmp_path, features={"slow_tests": {"branches": ["main", "staging-*"]}}) as world:
        pull = world.open(branch="staging-1")
        await world.happen()
        always = "success: On: the branch staging-1 always runs slow tests."
        assert world.slow_status(pull.head_sha) == always
        answer = await world.say(pull, "@ci run slow tests")
        assert "The branch `staging-1` always runs slow tests, so there is nothing to turn on." in answer
        assert "+1" in answer
        answer = await world.say(pull, "@ci skip slow tests")
        assert "edit `slow_tests: branches:` in `.github/nightjar.yaml` or `app.yaml`" in answer
        assert "confused" in answer
        assert world.slow_status(pull.head_sha) == always


async def test_a_push_to_a_full_branch_sets_its_status_on_the_commit(world: World) -> None:
    commit = world.repository.push("main", by="octocat")
    other_sha = world.repository.push("feature", by="octocat")
    await world.happen()
    assert world.slow_status(commit.sha) == "success: On: the branch main always runs slow tests."
    assert world.slow_status(other_sha.sha) == ""


async def test_a_pull_request_into_a_full_branch_is_not_on_by_itself(world: World) -> None:
    pull = world.open(base="main")
    await world.happen()
    assert world.slow_status(pull.head_sha) == OFF


async def test_the_status_has_the_name_set_in_app_yaml(tmp_path: Path) -> None:
    async with a_world(tmp_path, features={"slow_tests": {"status": "ci/full"}}) as world:
        pull = world.open()
        await world.happen()
        status = world.repository.status(pull.head_sha, "ci/full")
        assert status is not None
        assert f"success: {status.description}" == OFF


async def test_a_status_that_lost_the_race_against_a_command_is_still_correct(world: World) -> None:
    """The status at the opening is tried again after the command was carried out."""
    pull = world.open()
    opened = [d for d in world.github.webhooks.held if d.event == "pull_request"]
    await world.happen()
    (effect,) = await world.planned(opened[0], "slow-tests")
    await world.say(pull, "@ci run slow tests")
    await world.apply(opened[0], "slow-tests", effect)
    assert world.slow_status(pull.head_sha) == ON


async def test_the_feature_costs_a_fixed_number_of_requests(world: World) -> None:
    """Opening: read and write. Turning on: three reads for what ran, then read and write for the status."""
    repo = "/repos/{owner}/{repo}"
    pull = world.open()
    world.github.requests.clear()
    await world.happen()
    status = {f"GET {repo}/commits/{{ref}}/status": 1, f"POST {repo}/statuses/{{sha}}": 1}
    assert {k: n for k, n in world.github.requests.counts().items() if "status" in k} == status
    world.github.requests.clear()
    await world.say(pull, "@ci run slow tests")
    counts = world.github.requests.counts()
    assert counts[f"GET {repo}/actions/runs"] == 1
    assert counts[f"GET {repo}/commits/{{ref}}/check-runs"] == 1
    assert counts[f"GET {repo}/commits/{{ref}}/status"] == 2
    assert counts[f"POST {repo}/statuses/{{sha}}"] == 1
