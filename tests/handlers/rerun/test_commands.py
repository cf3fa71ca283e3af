"""What `@ci rerun` selects and says, for anything that may have run on a commit."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bot.ci.base import CiRun, CiRunPart, CiState
from bot.commands.grammar import Command, CommandRegistry, parse
from handlers.rerun.commands import COMMANDS, RerunDecision, RerunPick, decide_rerun, explain_rerun
from tests.steps import assert_linear

SHA = "0123456789abcdef0123456789abcdef01234567"
FAILED, RUNNING, SUCCEEDED = CiState.FAILED, CiState.RUNNING, CiState.SUCCEEDED


def run(name: str, state: CiState, *parts: CiRunPart, conclusion: str = "", untouchable: str = "") -> CiRun:
    words = {FAILED: "failure", SUCCEEDED: "success", RUNNING: ""}
    return CiRun(
        provider="GitHub Actions",
        name=name,
        key=str(sum(name.encode())),
        state=state,
        conclusion=conclusion or words[state],
        url=f"https://github.com/octocat/compiler/actions/runs/{len(name)}",
        parts=parts,
        untouchable=untouchable,
    )


ARM = CiRunPart("build [arm]", FAILED, 11)
X86 = CiRunPart("build [x86]", SUCCEEDED, 12)
UNIT = CiRunPart("Unit", FAILED, 13)
CI = run("CI", FAILED, ARM, X86, UNIT)
LINT = run("Lint", SUCCEEDED, CiRunPart("ruff", SUCCEEDED, 21))
DOCS = run("Docs", RUNNING, CiRunPart("sphinx", FAILED, 31))
GPU = run("gpu/pr-head", FAILED, CiRunPart("gpu/pr-head", FAILED), CiRunPart("compiler-gpu/PR-12", FAILED))
COVERAGE = run("coverage", FAILED, untouchable="it belongs to another app")
ALL_OF_THEM = (CI, LINT, DOCS, GPU, COVERAGE)


def test_names_are_searched_in_linear_time() -> None:
    """Unknown names, including patterns, with many runs of some jobs."""
    names = [*(f"biuld {index} (arm64)" for index in range(10)), *(f"*a*b*{index}" for index in range(10))]

    def make(size: int) -> Callable[[], object]:
        jobs = [CiRunPart(f"build {index} (arm64)", FAILED, index + 1) for index in range(5)]
        runs = [run(f"CI {index}", FAILED, *jobs) for index in range(size)]
        return lambda: explain_rerun(runs, decide_rerun(runs, "", names), SHA, "@ci")

    assert_linear(make, 20)


def picked(decision: RerunDecision) -> list[tuple[str, str]]:
    """Return what runs again as (run, how much of it)."""
    return [(p.run.name, p.part.name if p.part else "failed" if p.failed_only else "whole") for p in decision.picks]


@pytest.mark.parametrize(
    ("choice", "names", "expected"),
    [
        ("failed", (), [("CI", "failed"), ("gpu/pr-head", "failed")]),
        ("all", (), [("CI", "whole"), ("Lint", "whole"), ("gpu/pr-head", "whole")]),
        ("", ("CI",), [("CI", "failed")]),
        ("", ("ci",), [("CI", "failed")]),
        ("", ("Lint",), [("Lint", "whole")]),
        ("", ("ruff",), [("Lint", "ruff")]),
        ("", ("RUFF",), [("Lint", "ruff")]),
        ("", ("unit",), [("CI", "Unit")]),
        ("", ("CI / Unit",), [("CI", "Unit")]),
        ("", ("CI / Unit (pull_request)",), [("CI", "Unit")]),
        ("", ("build [arm]",), [("CI", "build [arm]")]),
        ("", ("build*",), [("CI", "whole")]),
        ("", ("build [arm]", "unit"), [("CI", "failed")]),
        ("", ("gpu/*",), [("gpu/pr-head", "failed")]),
        ("", ("compiler-gpu*",), [("gpu/pr-head", "failed")]),
        ("", ("*/pr-head", "lint"), [("Lint", "whole"), ("gpu/pr-head", "failed")]),
        ("", ("Docs",), []),
        ("", ("sphinx",), []),
        ("", ("coverage",), []),
        ("", ("linty",), []),
    ],
)
def test_what_runs_again(choice: str, names: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    assert picked(decide_rerun(ALL_OF_THEM, choice, names)) == expected


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out", "startup_failure"])
def test_every_kind_of_failure_runs_again_by_default(conclusion: str) -> None:
    """TVM's bot ignored CANCELLED and TIMED_OUT."""
    failed = run("CI", FAILED, conclusion=conclusion)
    assert decide_rerun((failed,), "failed", ()).picks == (RerunPick(failed, failed_only=True),)


def test_running_workflows_are_left_alone_and_listed() -> None:
    decision = decide_rerun(ALL_OF_THEM, "all", ())
    assert decision.running == (DOCS,)
    assert "Still running, so left alone: `Docs`." in explain_rerun(ALL_OF_THEM, decision, SHA, "@ci")


def said(choice: str, *names: str, runs: Sequence[CiRun] = ALL_OF_THEM) -> str:
    return explain_rerun(runs, decide_rerun(runs, choice, names), SHA, "@ci")


def test_the_answer_names_the_commit_and_everything_that_runs_again() -> None:
    assert said("failed", runs=(CI, GPU)) == (
        "Restarting on `0123456`:\n"
        "- failed jobs of [`CI`](https://github.com/octocat/compiler/actions/runs/2) "
        "(GitHub Actions: `failure`)\n"
        "- [`gpu/pr-head`](https://github.com/octocat/compiler/actions/runs/11) "
        "(GitHub Actions: `failure`)"
    )


def test_a_job_is_named_with_its_workflow() -> None:
    assert "- `ruff` of [`Lint`]" in said("", "ruff")


def test_nothing_failed_says_what_ran() -> None:
    assert (
        said("failed", runs=(LINT,))
        == "Nothing failed on `0123456`. Finished: `Lint`. To restart everything, comment `@ci rerun all`."
    )


def test_if_ci_is_still_running_the_answer_says_that_nothing_has_finished() -> None:
    assert said("failed", runs=(DOCS,)) == (
        "Nothing has finished on `0123456` yet.\nStill running, so left alone: `Docs`."
    )


def jenkins(name: str, state: CiState, server: str = "https://ci.example.org") -> CiRun:
    word = {CiState.MISSING: "no status", FAILED: "failure", SUCCEEDED: "success", RUNNING: "pending"}[state]
    url = f"{server}/job/{name}/job/PR-12"
    return CiRun("Jenkins", name, url, state, word, url, server=server)


CPU, MISSING = jenkins("cpu", SUCCEEDED), jenkins("gpu", CiState.MISSING)


@pytest.mark.parametrize(
    ("choice", "names", "runs", "expected"),
    [
        ("", (), (CPU, MISSING), []),
        ("failed", (), (CPU, MISSING), []),
        ("all", (), (CPU, MISSING), ["cpu", "gpu"]),
        ("", ("gpu",), (CPU, MISSING), ["gpu"]),
        ("", (), (LINT, MISSING), ["gpu"]),
        ("", (), (jenkins("cpu", SUCCEEDED, "https://jenkins.example.org"), MISSING), ["gpu"]),
    ],
)
def test_a_job_without_a_status_is_started_by_name_by_all_and_if_its_server_has_posted_none(
    choice: str, names: tuple[str, ...], runs: Sequence[CiRun], expected: list[str]
) -> None:
    assert [pick.run.name for pick in decide_rerun(runs, choice, names).picks] == expected


def test_a_job_without_a_status_that_is_left_alone_is_named_with_how_to_start_it() -> None:
    assert said("failed", runs=(CPU, MISSING, jenkins("arm", CiState.MISSING))) == (
        "Nothing failed on `0123456`. Finished: `cpu`. To restart everything, comment `@ci rerun all`.\n"
        "No status on `0123456` yet, so left alone: `gpu`, `arm`. If CI missed the push, start one by name: "
        "`@ci rerun NAME`."
    )


def test_without_any_run_the_answer_says_so() -> None:
    assert said("failed", runs=()) == "CI hasn't started on `0123456` yet, so there is nothing to restart."


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    assert said("", "rufff") == "Nothing on `0123456` is named `rufff`. Did you mean `ruff`?"


def test_a_name_similar_to_none_is_answered_with_the_existing_names() -> None:
    assert said("", "windows-arm64", runs=(CI, LINT)).endswith("Available: `CI`, `Lint`.")


def test_one_unknown_name_does_not_stop_the_others() -> None:
    answer = said("", "lint", "rufff")
    assert "Restarting on `0123456`:\n- [`Lint`]" in answer
    assert "Nothing on `0123456` is named `rufff`." in answer


def test_another_apps_failed_check_is_named_with_what_to_do() -> None:
    assert "I can't restart `coverage`: it belongs to another app." in said("failed")


def test_of_many_names_ten_are_listed_and_the_rest_counted() -> None:
    answer = said("failed", runs=[run(f"workflow {n}", FAILED) for n in range(13)])
    assert answer.count("\n- [`workflow") == 10
    assert answer.endswith("\n- and 3 more")


def test_names_from_outside_can_neither_mention_nor_link() -> None:
    nasty = run("`@octocat` [x](https://example.org)\n# CI", FAILED)
    lines = said("failed", runs=(nasty,)).splitlines()
    assert lines[1].startswith("- [`` `@octocat` [x](https://example.org) # CI ``](https://github.com/")


def test_a_link_that_could_break_out_of_the_markdown_is_left_out() -> None:
    bad = replace(CI, url="https://ci.example.org/a)[x](https://example.org)")
    assert said("failed", runs=(bad,)).splitlines()[1] == ("- failed jobs of `CI` (GitHub Actions: `failure`)")


@pytest.mark.parametrize(
    ("line", "choice", "names"),
    [
        ("@ci rerun", "", ()),
        ("@CI  Re-Run", "", ()),
        ("@ci rerun ci", "", ()),
        ("@ci rerun tests", "", ()),
        ("@ci please rerun the tests", "", ()),
        ("@ci rerun failed", "failed", ()),
        ("@ci retest ALL", "all", ()),
        ("@ci rerun gpu/pr-head", "", ("gpu/pr-head",)),
        ('@ci rerun "CI / Unit" lint', "", ("CI / Unit", "lint")),
        ("@ci run ci", "", ()),
    ],
)
def test_the_command_works_in_several_forms(line: str, choice: str, names: tuple[str, ...]) -> None:
    registry = CommandRegistry([spec for spec, _ in COMMANDS])
    (command,) = parse(line, registry=registry, mentions=("@ci",))
    assert isinstance(command, Command)
    assert (command.spec.name, command.choice, command.names) == ("rerun", choice, names)
