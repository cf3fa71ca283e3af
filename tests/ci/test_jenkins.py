"""What a commit's statuses say about Jenkins: jobs come from what really ran, never from a list."""

from dataclasses import replace

import pytest

from bot.ci.base import CiRun, CiState
from bot.ci.jenkins import JenkinsProvider
from bot.ci.rerun_jenkins import StartJenkinsBuild
from bot.ci.texts import OTHER_CI, OTHER_JENKINS_JOB
from bot.core.events import Payload
from bot.github.commits.ours import Ours

SERVER = "https://ci.example.org"
ASKED_AT = "2026-11-20T05:10:00Z"
JENKINS = JenkinsProvider((SERVER,), number=12, ours=Ours(1, 2, frozenset({"ci/slow-tests"})), asked_at=ASKED_AT)


def status(context: str, state: str, path: str | None) -> Payload:
    return Payload({"context": context, "state": state, "target_url": None if path is None else f"{SERVER}{path}"})


def only(*statuses: Payload) -> CiRun:
    (run,) = JENKINS.runs_of(statuses)
    return run


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("failure", CiState.FAILED),
        ("error", CiState.FAILED),
        ("pending", CiState.RUNNING),
        ("success", CiState.SUCCEEDED),
    ],
)
def test_a_status_is_a_run_of_the_job_that_it_links(state: str, expected: CiState) -> None:
    run = only(status("gpu/pr-head", state, "/job/compiler-gpu/job/PR-12/7/display/redirect"))
    assert (run.name, run.state, run.conclusion, run.attempt) == ("gpu/pr-head", expected, state, 7)
    assert run.key == f"{SERVER}/job/compiler-gpu/job/PR-12"
    assert run.untouchable == ""
    assert "compiler-gpu/PR-12" in run.names


def test_two_statuses_of_one_job_are_one_run_under_both_names() -> None:
    run = only(
        status("unit", "success", "/job/compiler/job/PR-12/7/"),
        status("docs", "failure", "/job/compiler/job/PR-12/7/"),
    )
    assert (run.state, run.conclusion) == (CiState.FAILED, "failure")
    assert run.names == ("compiler/PR-12", "unit", "docs", "compiler/PR-12")


def test_an_older_builds_status_does_not_give_the_state_of_the_newest_build() -> None:
    run = only(
        status("unit", "failure", "/job/compiler/job/PR-12/7/"),
        status("docs", "pending", "/job/compiler/job/PR-12/8/"),
    )
    assert (run.state, run.attempt) == (CiState.RUNNING, 8)


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("/job/deploy/3/", OTHER_JENKINS_JOB),
        ("/job/compiler/job/PR-13/3/", OTHER_JENKINS_JOB),
        ("/userContent/index.html", OTHER_CI),
        (None, OTHER_CI),
    ],
)
def test_a_job_of_another_pull_request_is_never_started(link: str | None, reason: str) -> None:
    assert only(status("deploy", "failure", link)).untouchable == reason


def test_a_rerun_covers_the_whole_linked_job() -> None:
    run = only(status("gpu/pr-head", "failure", "/job/compiler-gpu/job/PR-12/7/"))
    assert JENKINS.rerun(run, failed_only=True) == StartJenkinsBuild(
        job_url=f"{SERVER}/job/compiler-gpu/job/PR-12", build=7, name="gpu/pr-head", asked_at=ASKED_AT
    )


NAMED = replace(JENKINS, expected=((SERVER, "compiler"), (SERVER, "folder/gpu")))


def test_a_job_of_app_yaml_without_a_status_is_missing() -> None:
    runs = NAMED.runs_of([])
    assert [(run.name, run.state) for run in runs] == [("compiler", CiState.MISSING), ("folder/gpu", CiState.MISSING)]
    assert runs[1].key == f"{SERVER}/job/folder/job/gpu/job/PR-12"


@pytest.mark.parametrize("job", ["compiler/job/PR-12", "folder/job/gpu/job/PR-12"])
def test_a_job_of_app_yaml_keeps_its_name_once_it_has_a_status(job: str) -> None:
    run = NAMED.runs_of([status("ci/pr-head", "failure", f"/job/{job}/7/")])[0]
    configured = job.removesuffix("/job/PR-12").replace("/job/", "/")
    assert run.names == ("ci/pr-head", "ci/pr-head", f"{configured}/PR-12", configured)


@pytest.mark.parametrize("branches", [["PR-12-head"], ["PR-12-merge"], ["PR-12-merge", "PR-12-head"]])
def test_a_job_that_builds_the_head_or_the_merge_is_not_missing(branches: list[str]) -> None:
    """Jenkins has no `PR-12` where a multibranch project discovers both."""
    statuses = [status(branch, "success", f"/job/compiler/job/{branch}/7/") for branch in branches]
    runs = NAMED.runs_of(statuses)
    assert [run.name for run in runs if run.state is CiState.MISSING] == ["folder/gpu"]
    assert all("compiler" in run.names for run in runs[: len(branches)])


def test_a_job_with_the_same_name_on_another_server_is_still_missing() -> None:
    other_server = "https://jenkins.example.org"
    provider = replace(
        NAMED, servers=(SERVER, other_server), expected=((SERVER, "compiler"), (other_server, "compiler"))
    )
    runs = provider.runs_of([status("ci/pr-head", "success", "/job/compiler/job/PR-12/7/")])
    assert [(run.state, run.server) for run in runs] == [(CiState.SUCCEEDED, SERVER), (CiState.MISSING, other_server)]
