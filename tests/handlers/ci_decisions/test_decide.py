"""What CI should do as a whole, for a pull request and for a commit of a branch."""

from __future__ import annotations

import pytest
from nightjar_lab.ci.decision import CiVerdict, run_everything
from nightjar_lab.ci.texts import ALL_IS_BUILT, CI_RUNS, FALLBACK, IMAGES_ARE_BUILT, SLOW_TESTS_RUN

from bot.config.model import RepositoryConfig
from handlers.ci_decisions import texts
from handlers.ci_decisions.decide import commit_needs_files, decide_for_checkout, decide_for_commit, needs_files
from handlers.rebuild_docker.config import RebuildDocker
from handlers.rebuild_docker.texts import IN_AN_IMAGE
from handlers.skip_ci.config import SkipCi
from tests.handlers.changed_files.changed import files
from tests.settings import MODEL, repository_config


def test_unknown_facts_run_everything_and_the_reason_says_fallback() -> None:
    decision = run_everything("we could not ask GitHub", "0d1a26e")
    assert decision.sha == "0d1a26e"
    assert {name: verdict.value for name, verdict in decision.verdicts.items()} == {
        "run_slow_tests": True,
        "skip_ci": False,
        "docs_only": False,
        "rebuild_docker": True,
    }
    assert all(
        verdict.reason.startswith("Fallback: we could not ask GitHub, so ") for verdict in decision.verdicts.values()
    )


@pytest.mark.parametrize(
    ("skip", "docker", "title", "expected"),
    [
        (None, None, "Fix it", False),
        (SkipCi(), None, "Fix it", True),
        (SkipCi(), None, "[skip ci] Fix it", False),
        (SkipCi(docs=()), None, "Fix it", False),
        (SkipCi(docs=(), globs=("*.md",)), None, "Fix it", True),
        (SkipCi(docs=()), RebuildDocker(), "[skip ci] Fix it", True),
        (None, RebuildDocker(), "Fix it", True),
    ],
)
def test_files_are_requested_only_if_they_matter(
    skip: SkipCi | None, docker: RebuildDocker | None, title: str, expected: bool
) -> None:
    config = repository_config().model_copy(update={"skip_ci": skip, "rebuild_docker": docker})
    assert needs_files(config, title) is expected


@pytest.mark.parametrize(("is_on", "reason"), [(True, texts.SLOW_TESTS_ON_COMMIT), (False, texts.SLOW_TESTS_NOT_ON)])
def test_slow_tests_always_run_for_a_commit_of_a_branch(is_on: bool, reason: str) -> None:
    config = MODEL.model_validate({"slow_tests": is_on})
    assert decide_for_commit(config, "a" * 40, files()).run_slow_tests == CiVerdict(True, reason)


def test_the_branch_of_a_commit_decides_its_level() -> None:
    levels = {"nightly": ("nightly", "release/*"), "release": ("release/*",)}
    config = MODEL.model_validate({"slow_tests": {"levels": levels}})
    cases = {"main": "main", "nightly": "nightly", "release/1.0": "release", "": "main"}
    assert {name: decide_for_commit(config, "a" * 40, files(), name).level for name in cases} == cases
    standard = MODEL.model_validate({"slow_tests": True})
    assert decide_for_commit(standard, "a" * 40, files(), "nightly").level == "nightly"
    assert decide_for_commit(MODEL.model_validate({}), "a" * 40, files(), "nightly").level == "nightly"


def test_each_decision_about_a_commit_depends_on_its_files_and_settings() -> None:
    config = repository_config(
        skip_ci=SkipCi(globs=("*.md",), docs=()), rebuild_docker=RebuildDocker(paths=("docker/*",), ignore=())
    )
    decision = decide_for_commit(config, "a" * 40, files("README.md"))
    assert decision.sha == "a" * 40
    assert [verdict.value for verdict in decision.verdicts.values()] == [True, True, False, False]
    decision = decide_for_commit(config, "a" * 40, files("docker/Dockerfile"))
    assert [verdict.value for verdict in decision.verdicts.values()] == [True, False, False, True]
    assert decision.rebuild_docker.reason == IN_AN_IMAGE.format(name="docker/Dockerfile")
    documented = repository_config(skip_ci=SkipCi())
    assert decide_for_commit(documented, "a" * 40, files("docs/index.md")).docs_only.value


@pytest.mark.parametrize(
    ("config", "needed"),
    [
        (repository_config(), False),
        (repository_config(skip_ci=SkipCi()), True),
        (repository_config(rebuild_docker=RebuildDocker()), True),
        (repository_config(skip_ci=SkipCi(globs=(), docs=())), False),
    ],
)
def test_the_files_of_a_commit_are_requested_only_if_they_matter(config: RepositoryConfig, needed: bool) -> None:
    assert commit_needs_files(config) is needed


def test_running_everything_says_what_runs() -> None:
    decision = run_everything("GitHub is silent", "a" * 40)
    runs = {
        "run_slow_tests": SLOW_TESTS_RUN,
        "skip_ci": CI_RUNS,
        "docs_only": ALL_IS_BUILT,
        "rebuild_docker": IMAGES_ARE_BUILT,
    }
    assert {name: verdict.reason for name, verdict in decision.verdicts.items()} == {
        name: FALLBACK.format(why="GitHub is silent", what=consequence) for name, consequence in runs.items()
    }


def test_a_checkout_has_the_slow_tests_of_its_branch_or_those_that_are_requested() -> None:
    def slow_tests(branch: str, settings: object, *, requested: bool = False) -> CiVerdict:
        config = repository_config(slow_tests=settings)
        decision = decide_for_checkout(config, "0d1a26e", branch, files("a.md"), requests_slow_tests=requested)
        assert decision.sha == "0d1a26e"
        return decision.run_slow_tests

    on = {"branches": ("main", "release/*")}
    assert slow_tests("main", False) == CiVerdict(True, texts.SLOW_TESTS_NOT_ON)
    assert slow_tests("release/1", on) == CiVerdict(True, "On: the branch release/1 always runs slow tests.")
    for branch in ("fix", ""):
        assert slow_tests(branch, on) == CiVerdict(False, texts.SLOW_TESTS_NOT_REQUESTED)
        assert slow_tests(branch, on, requested=True) == CiVerdict(True, texts.SLOW_TESTS_REQUESTED)


def test_a_checkout_is_decided_like_a_commit_from_its_files() -> None:
    config = repository_config(skip_ci={}, rebuild_docker={})
    for names in (["docs/a.rst"], ["src/a.cc"], ["docker/Dockerfile.ci_cpu"]):
        checkout = decide_for_checkout(config, "0d1a26e", "", files(*names), requests_slow_tests=False)
        commit = decide_for_commit(config, "0d1a26e", files(*names))
        assert (checkout.skip_ci, checkout.docs_only, checkout.rebuild_docker) == (
            commit.skip_ci, commit.docs_only, commit.rebuild_docker,
        )  # fmt: skip
