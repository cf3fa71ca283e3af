"""`@ci rerun`, rule by rule: what runs again, what is left alone, and what the answer says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sandbox import PullRequest
from sandbox.model.workflows import WorkflowRun
from tests.conversations.town import Town, Works

CALLED = "(GitHub Actions:"


async def says(town: Town, pull: PullRequest, text: str) -> tuple[list[str], str]:
    """Let hubot comment; return the reactions and the answer."""
    answer_count = len(town.answers(pull))
    comment = pull.comment("hubot", text)
    await town.quiet()
    (answer,) = town.answers(pull)[answer_count:]
    return pull.reactions(comment), answer


def restarted_jobs(run: WorkflowRun) -> list[str]:
    """Return the jobs that ran a second time."""
    return [job.name for job in run.jobs if job.attempt == 2]


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out", "startup_failure"])
async def test_everything_that_failed_runs_again(site: Works, conclusion: str) -> None:
    """The conclusions failure, cancelled, timed_out and startup_failure, on this head."""
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    bad = town.repo.add_workflow_run(pull.head_sha, "CI", conclusion, {"unit": "failure", "docs": "success"})
    good = town.repo.add_workflow_run(pull.head_sha, "Lint", "success")
    skipped = town.repo.add_workflow_run(pull.head_sha, "Nightly", "skipped")
    gpu, cpu = site.job(pull, "gpu", "FAILURE"), site.job(pull, "cpu", "SUCCESS")
    reactions, answer = await says(town, pull, "@ci rerun")
    assert reactions == ["eyes", "+1"]
    assert restarted_jobs(bad) == ["unit"]
    assert (good.attempt, skipped.attempt, len(gpu.builds), len(cpu.builds)) == (1, 1, 2, 1)
    assert f"{CALLED} `{conclusion}`" in answer


async def test_the_word_failed_means_the_same_as_no_argument(site: Works) -> None:
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    bad = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "success"})
    await says(town, pull, "@ci rerun failed")
    assert restarted_jobs(bad) == ["unit"]


async def test_running_workflows_are_left_alone_and_listed(site: Works) -> None:
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    bad = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    running = town.repo.add_workflow_run(pull.head_sha, "Lint")
    gpu = site.job(pull, "gpu", None)
    reactions, answer = await says(town, pull, "@ci rerun")
    assert reactions == ["eyes", "+1"]
    assert (bad.attempt, running.attempt, len(gpu.builds)) == (2, 1, 1)
    assert "Still running, so left alone: `Lint`, `gpu/pr-head`." in answer


async def test_rerun_all_runs_everything_that_finished(site: Works) -> None:
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    bad = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "success"})
    good = town.repo.add_workflow_run(pull.head_sha, "Lint", "success")
    running = town.repo.add_workflow_run(pull.head_sha, "Docs")
    gpu, cpu = site.job(pull, "gpu", "FAILURE"), site.job(pull, "cpu", "SUCCESS")
    await says(town, pull, "@ci rerun ALL")
    assert (restarted_jobs(bad), good.attempt, running.attempt) == (["unit", "docs"], 2, 1)
    assert (len(gpu.builds), len(cpu.builds)) == (2, 2)


@pytest.mark.parametrize(
    ("name", "jobs", "builds"),
    [
        ("Linux", ["build (3.11)", "docs"], 0),
        ("linux", ["build (3.11)", "docs"], 0),
        ("docs", ["docs"], 0),
        ('"build (3.11)"', ["build (3.11)"], 0),
        ("`Build (3.11)`", ["build (3.11)"], 0),
        ('"Linux / docs"', ["docs"], 0),
        ("gpu/pr-head", [], 1),
        ("GPU/*", [], 1),
        ("*/pr-head docs", ["docs"], 1),
    ],
)
async def test_a_name_means_a_workflow_a_job_or_a_jenkins_context(
    site: Works, name: str, jobs: list[str], builds: int
) -> None:
    """In any case, quoted if it has spaces, or as a pattern."""
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "Linux", "success", {"build (3.11)": "success", "docs": "success"})
    windows = town.repo.add_workflow_run(pull.head_sha, "Windows", "failure", {"unit": "failure"})
    gpu = site.job(pull, "gpu", "SUCCESS")
    reactions, _ = await says(town, pull, f"@ci rerun {name}")
    assert reactions == ["eyes", "+1"]
    assert (restarted_jobs(run), restarted_jobs(windows), len(gpu.builds)) == (jobs, [], 1 + builds)


async def test_an_unknown_name_is_answered_with_the_existing_names(site: Works) -> None:
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "Linux", "failure", {"docs": "failure"})
    reactions, answer = await says(town, pull, "@ci rerun docs arm")
    assert reactions == ["eyes", "confused"]
    assert restarted_jobs(run) == ["docs"]
    assert f"Nothing on `{pull.head_sha[:7]}` is named `arm`." in answer


async def test_the_answer_says_whether_nothing_failed_nothing_finished_or_nothing_ran(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    sha = pull.head_sha[:7]
    reactions, answer = await says(town, pull, "@ci rerun")
    assert (reactions, f"CI hasn't started on `{sha}` yet" in answer) == (["eyes", "confused"], True)
    run = town.repo.add_workflow_run(pull.head_sha, "CI")
    reactions, answer = await says(town, pull, "@ci rerun")
    assert (reactions, f"Nothing has finished on `{sha}` yet." in answer) == (["eyes", "+1"], True)
    run.finish("success")
    reactions, answer = await says(town, pull, "@ci rerun")
    assert (reactions, f"Nothing failed on `{sha}`." in answer) == (["eyes", "+1"], True)
    assert "To restart everything, comment `@ci rerun all`." in answer
    assert run.attempt == 1


async def test_the_answer_about_a_named_job_that_still_runs_mentions_no_other(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    town.repo.add_workflow_run(pull.head_sha, "Lint")
    _, answer = await says(town, pull, "@ci rerun lint")
    assert answer.endswith("- `@ci rerun lint`: Still running, so left alone: `Lint`.")


async def test_two_commands_about_one_workflow_share_one_new_attempt(town: Town) -> None:
    """GitHub starts one attempt of a run and refuses a second one while it runs."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    jobs = {"unit": "failure", "docs": "failure", "lint": "success"}
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", jobs)
    reactions, _ = await says(town, pull, "@ci rerun unit\n@ci rerun docs")
    assert reactions == ["eyes", "+1"]
    assert restarted_jobs(run) == ["unit", "docs"]


async def test_a_switch_to_slow_tests_next_to_a_rerun_runs_everything_again(town: Town) -> None:
    """Jobs that passed without the slow tests must run again with them."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "success"})
    reactions, _ = await says(town, pull, "@ci run slow tests\n@ci rerun unit")
    assert reactions == ["eyes", "+1"]
    assert restarted_jobs(run) == ["unit", "docs"]


async def test_a_refusal_by_github_is_reported_for_each_of_two_commands(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "failure"})
    run.created_at -= timedelta(days=31)
    reactions, answer = await says(town, pull, "@ci rerun unit\n@ci rerun docs")
    assert reactions == ["eyes", "confused"]
    assert answer.count("- 😕 `@ci rerun") == 2
    assert answer.count("GitHub restarts a run only within 30 days") == 2


async def test_a_run_of_an_older_push_is_not_run_again(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    old = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    pull.push()
    new = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    await says(town, pull, "@ci rerun")
    assert (old.attempt, new.attempt) == (1, 2)


async def test_a_moved_head_is_refused_with_both_commits(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    old_head = pull.head_sha
    town.github.webhooks.hold()
    comment = pull.comment("hubot", "@ci rerun")
    pull.push()
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    town.github.webhooks.release()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert run.attempt == 1
    (answer,) = town.answers(pull)
    assert f"The head moved from `{old_head[:7]}` to `{pull.head_sha[:7]}`, so nothing" in answer


async def test_one_removed_job_does_not_stop_the_others(site: Works) -> None:
    """apache/tvm#18780. Each failed job has its own line after the list of those that run."""
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    jobs = {name: site.job(pull, name, "FAILURE") for name in ("arm", "cpu", "gpu")}
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    jobs["arm"].status, jobs["cpu"].buildable = 404, False
    reactions, answer = await says(town, pull, "@ci rerun")
    assert reactions == ["eyes", "confused"]
    assert ([len(job.builds) for job in jobs.values()], run.attempt) == ([1, 1, 2], 2)
    lines = [line.strip() for line in answer.splitlines()]
    assert any(line.startswith("Jenkins has no job for `arm/pr-head` (404)") for line in lines)
    assert "I didn't start `cpu/pr-head`: the job is disabled in Jenkins." in lines


async def test_a_host_that_is_not_in_app_yaml_is_never_called(site: Works) -> None:
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    elsewhere = site.jenkins.url.replace("127.0.0.1", "localhost")
    link = f"{elsewhere}/job/gpu/job/PR-{pull.number}/1/display/redirect"
    town.repo.set_status("jenkins", pull.head_sha, "gpu/pr-head", "failure", "build 1", link)
    reactions, answer = await says(town, pull, "@ci rerun")
    assert reactions == ["eyes", "confused"]
    assert "I can't restart `gpu/pr-head`: it comes from a CI that I don't control." in answer
    # The checks at startup connect once to the server that app.yaml does name.
    await town.bot.watch.checked.wait()
    assert site.jenkins.requests == [("GET", "/api/json")]
    assert site.jenkins.hosts == {site.jenkins.url.removeprefix("http://")}


async def test_another_apps_check_is_named_and_left_alone(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    coverage = town.github.create_app("coverage")
    coverage.install(town.repo)
    check = town.repo.add_check_run(coverage, pull.head_sha, "patch", conclusion="failure")
    reactions, answer = await says(town, pull, "@ci rerun")
    assert reactions == ["eyes", "confused"]
    assert "I can't restart `patch`: it belongs to another app" in answer
    assert check.conclusion == "failure"


async def test_statuses_without_a_link_do_no_harm(site: Works) -> None:
    """TVM's bot crashed on a null target_url."""
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    town.repo.set_status("octocat", pull.head_sha, "cla", "failure")
    gpu = site.job(pull, "gpu", "FAILURE")
    _, answer = await says(town, pull, "@ci rerun")
    assert len(gpu.builds) == 2
    assert "I can't restart `cla`: it comes from a CI that I don't control." in answer


async def test_a_closed_pull_request_runs_nothing(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    pull.close("hubot")
    reactions, answer = await says(town, pull, "@ci rerun\n@ci run slow tests")
    assert reactions == ["eyes", "confused"]
    assert run.attempt == 1
    assert "This pull request is closed, so nothing was restarted. Reopen it and ask again." in answer
    assert "This pull request is closed, so nothing changed. Reopen it and ask again." in answer


async def test_two_simultaneous_comments_rerun_once(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    comments = [pull.comment("hubot", "@ci rerun"), pull.comment("triager", "@ci rerun")]
    await town.quiet()
    assert run.attempt == 2
    assert [pull.reactions(comment) for comment in comments] == [["eyes", "+1"], ["eyes", "+1"]]
    assert "Still running, so left alone: `CI`." in town.answers(pull)[1]
