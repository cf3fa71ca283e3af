"""What CI should do, as tables: the cases of TVM's scripts, and where we differ on purpose."""

from __future__ import annotations

import pytest

from bot.config.ci_decisions import RebuildDocker, SkipCi
from bot.config.model import RepositoryConfig
from handlers.ci_decisions import texts
from handlers.ci_decisions.decide import (
    ChangedFiles,
    CiVerdict,
    UnknownChanges,
    commit_needs_files,
    decide_for_commit,
    docs_only,
    has_tag,
    needs_files,
    other_commit,
    rebuild_docker,
    run_everything,
    skip_ci,
)

GLOBS = (
    "*.md",
    ".github/*",
    ".asf.yaml",
    ".gitignore",
    "LICENSE",
    "NOTICE",
    "KEYS",
    "tests/lint/*",
    ".pre-commit-config.yaml",
)
BY_GLOBS = SkipCi(globs=GLOBS, docs=())
BY_DOCS = SkipCi()
EVERYTHING = SkipCi(globs=GLOBS)


def files(*names: str) -> ChangedFiles:
    return ChangedFiles(names, len(names))


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        # As in TVM's script.
        ("[skip ci] Revert", True),
        ("Revert [skip ci]", True),
        ("[ci][skip ci] Revert", True),
        ("[ skip ci ] Revert", True),
        ("[skip-ci] Revert", False),
        ("[ci, skip ci] Revert", False),
        ("skip ci", False),
        ("[no skip ci] Revert", False),
        ("[[skip ci]] Revert", False),
        ("[skip\nci]", False),
        ("[]", False),
        ("", False),
        # More tolerant than TVM's script on purpose.
        ("[Skip CI] Revert", True),
        ("[skip  ci] Revert", True),
        ("[skip\u00a0ci] Revert", True),
        # Half a tag is no tag.
        ("[skip ci Revert", False),
        ("skip ci] Revert", False),
        ("[skip] [ci] Revert", False),
    ],
)
def test_a_separate_tag_in_the_title_skips_ci(title: str, expected: bool) -> None:
    """TVM #11714, #11671: anywhere in the title, but as a separate tag."""
    assert has_tag(title, "skip ci") is expected
    assert skip_ci(SkipCi(), title, files("src/x.cc")).value is expected


def test_without_a_configured_tag_the_title_does_not_count() -> None:
    assert not has_tag("[] [skip ci]", "")
    verdict = skip_ci(SkipCi(title_tag="", docs=()), "[skip ci] []", files("src/x.cc"))
    assert not verdict.value


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["README.md"], True),
        (["a/b/c.md"], True),
        (["LICENSE", "a/b/c.md", ".github/workflows/main.yml", "tests/lint/a/b.sh"], True),
        (["README.MD"], False),
        (["docs/LICENSE"], False),
        (["sub/.gitignore"], False),
        (["README.md", "src/x.cc"], False),
        (["src/x.md.cc"], False),
        ([], False),
    ],
)
def test_globs_skip_ci_if_all_files_match(names: list[str], expected: bool) -> None:
    """`*` crosses folders and case matters, as before; no changed file at all never skips (TVM #9221)."""
    assert skip_ci(BY_GLOBS, "Fix it", files(*names)).value is expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["docs/index.rst"], True),
        (["docs/a/b/index.rst", "docs/conf.py"], True),
        (["docs/index.rst", "src/x.cc"], False),
        # TVM's script matched any path containing docs/.
        (["apps/foo/docs/x.c"], False),
        (["mydocs/x.rst"], False),
        (["docs"], False),
        (["Docs/x.rst"], False),
        ([], False),
    ],
)
def test_documentation_alone_skips_ci(names: list[str], expected: bool) -> None:
    """TVM #9221: without changed files everything runs. `docs/` is a top-level folder, not a part of a name."""
    verdict = skip_ci(BY_DOCS, "Fix it", files(*names))
    assert verdict.value is expected
    assert expected == verdict.reason.startswith("CI is skipped: only documentation")


def test_ignored_files_and_documentation_may_be_mixed() -> None:
    verdict = skip_ci(EVERYTHING, "Fix it", files("README.md", "docs/index.rst"))
    assert (verdict.value, verdict.reason) == (
        True,
        "CI is skipped: no file that CI needs changed (2 files).",
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["docker/Dockerfile.ci_gpu"], True),
        (["docker/install/ubuntu_install_python.sh"], True),
        (["src/x.cc", "docker/Dockerfile.ci_cpu"], True),
        (["src/x.cc"], False),
        ([], False),
        (["docker/bash.sh", "docker/with_the_same_user"], False),
        # These rebuilt images before: the first two by mistake, the others because `docker/` matched anywhere in the
        # name.
        (["docker/README.md"], False),
        (["docker/clear-stale-images.sh", "docker/lint.sh"], False),
        (["tests/docker/x.py"], False),
        (["src/docker/x.cc", "mydocker/x"], False),
    ],
)
def test_images_are_built_if_their_sources_changed(names: list[str], expected: bool) -> None:
    scripts = tuple(f"docker/{name}" for name in ("bash.sh", "with_the_same_user", "lint.sh", "clear-stale-images.sh"))
    config = RebuildDocker(ignore=("*.md", *scripts))
    assert rebuild_docker(config, files(*names)).value is expected


def test_text_files_in_the_folder_of_images_build_none_by_default() -> None:
    assert not rebuild_docker(RebuildDocker(), files("docker/README.md", "tests/docker/x.py")).value
    assert rebuild_docker(RebuildDocker(), files("docker/README.md", "docker/bash.sh")).value


def test_a_double_star_means_the_same_as_a_single_one() -> None:
    assert rebuild_docker(RebuildDocker(paths=("docker/**",)), files("docker/install/x.sh")).value


def test_a_renamed_file_counts_under_both_names() -> None:
    moved = ChangedFiles(("docs/codegen.md", "src/codegen.cc"), 1)
    assert skip_ci(EVERYTHING, "Move it", moved).reason == "CI runs because src/codegen.cc changed."
    assert rebuild_docker(RebuildDocker(), ChangedFiles(("tools/x.sh", "docker/x.sh"), 1)).value
    renamed = ChangedFiles(("docs/new.rst", "docs/old.rst"), 1)
    assert skip_ci(EVERYTHING, "Move it", renamed).reason == "CI is skipped: only documentation changed (1 file)."


def test_unknown_facts_run_everything_and_the_reason_says_fallback() -> None:
    """TVM #10457: for days, nobody noticed an error that was taken for an answer."""
    unknown = UnknownChanges("we could not ask GitHub")
    assert skip_ci(EVERYTHING, "Fix it", unknown).reason == "Fallback: we could not ask GitHub, so CI runs."
    assert not skip_ci(EVERYTHING, "Fix it", unknown).value
    assert rebuild_docker(RebuildDocker(), unknown).value
    decision = run_everything("we could not ask GitHub", "0d1a26e")
    assert decision.sha == "0d1a26e"
    assert {name: one.value for name, one in decision.verdicts.items()} == {
        "run_slow_tests": True,
        "skip_ci": False,
        "docs_only": False,
        "rebuild_docker": True,
    }
    assert all(one.reason.startswith("Fallback: we could not ask GitHub, so ") for one in decision.verdicts.values())


@pytest.mark.parametrize(
    ("changed", "value", "reason"),
    [
        (["docs/index.rst"], True, "Only the docs are built: only documentation changed (1 file)."),
        (["docs/a.rst", "README.md"], True, "Only the docs are built: only documentation changed (2 files)."),
        (["README.md"], False, "Everything is built: no documentation changed."),
        (
            ["docs/a.rst", "src/x.cc"],
            False,
            "Everything is built because src/x.cc changed, which is not documentation.",
        ),
        (
            ["apps/docs/x.rst"],
            False,
            "Everything is built because apps/docs/x.rst changed, which is not documentation.",
        ),
        ([], False, "Everything is built: no file changed."),
    ],
)
def test_only_the_docs_are_built_if_only_documentation_changed(changed: list[str], value: bool, reason: str) -> None:
    verdict = docs_only(SkipCi(globs=("*.md",)), "Fix it", files(*changed))
    assert (verdict.value, verdict.reason.startswith(reason)) == (value, True)


def test_without_knowledge_more_than_the_docs_is_built() -> None:
    unknown = docs_only(SkipCi(), "Fix it", UnknownChanges("we could not ask GitHub"))
    assert (unknown.value, unknown.reason) == (False, "Fallback: we could not ask GitHub, so everything is built.")
    assert docs_only(None, "Fix it", files("docs/x.rst")).value is False
    assert docs_only(SkipCi(), "[skip ci] Fix it", files("docs/x.rst")) == CiVerdict(
        False, "The docs are not built either: the title has [skip ci]."
    )


def test_the_title_alone_decides_if_the_files_are_unknown() -> None:
    assert skip_ci(EVERYTHING, "[skip ci] Revert", UnknownChanges("we could not ask GitHub")).value


def test_disabled_features_skip_nothing_and_build_everything() -> None:
    assert skip_ci(None, "[skip ci]", files("docs/x.rst")).value is False
    assert rebuild_docker(None, files("src/x.cc")).value is True
    assert "skip_ci is off in" in skip_ci(None, "", files()).reason


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
    assert needs_files(skip, docker, title) is expected


def test_names_of_files_in_reasons_are_harmless() -> None:
    name = "src/\x1b[31m\u202e" + "x" * 500 + "/codegen.cc"
    reason = skip_ci(BY_DOCS, "Fix it", files(name)).reason
    assert len(reason) <= 140
    assert reason.isprintable()
    assert "x/codegen.cc changed" in reason


def test_the_message_of_a_commit_does_not_count_as_a_title() -> None:
    answer_ = skip_ci(SkipCi(globs=(), docs=()), None, files("docs/x.rst"))
    assert answer_ == CiVerdict(False, "CI runs: skip_ci names no files, and the title tag does not apply to commits.")
    assert skip_ci(BY_DOCS, None, files("docs/x.rst")).value


@pytest.mark.parametrize(("on", "reason"), [(True, texts.SLOW_TESTS_ON_COMMIT), (False, texts.SLOW_TESTS_NOT_ON)])
def test_slow_tests_always_run_for_a_commit_of_a_branch(on: bool, reason: str) -> None:
    config = RepositoryConfig.model_validate({"slow_tests": on})
    assert decide_for_commit(config, "a" * 40, files()).run_slow_tests == CiVerdict(True, reason)


def test_each_decision_about_a_commit_depends_on_its_files_and_settings() -> None:
    config = RepositoryConfig(skip_ci=BY_GLOBS, rebuild_docker=RebuildDocker(paths=("docker/*",), ignore=()))
    decision = decide_for_commit(config, "a" * 40, files("README.md"))
    assert decision.sha == "a" * 40
    assert [one.value for one in decision.verdicts.values()] == [True, True, False, False]
    decision = decide_for_commit(config, "a" * 40, files("docker/Dockerfile"))
    assert [one.value for one in decision.verdicts.values()] == [True, False, False, True]
    assert decision.rebuild_docker.reason == texts.IN_AN_IMAGE.format(name="docker/Dockerfile")
    documented = RepositoryConfig(skip_ci=BY_DOCS)
    assert decide_for_commit(documented, "a" * 40, files("docs/index.md")).docs_only.value


@pytest.mark.parametrize(
    ("config", "needed"),
    [
        (RepositoryConfig(), False),
        (RepositoryConfig(skip_ci=BY_DOCS), True),
        (RepositoryConfig(rebuild_docker=RebuildDocker()), True),
        (RepositoryConfig(skip_ci=SkipCi(globs=(), docs=())), False),
    ],
)
def test_the_files_of_a_commit_are_requested_only_if_they_matter(config: RepositoryConfig, needed: bool) -> None:
    assert commit_needs_files(config) is needed


def test_changes_of_another_commit_are_unknown_and_the_reason_names_both() -> None:
    text = other_commit("a" * 40, "b" * 40).why
    assert "a" * 7 in text
    assert "b" * 7 in text
    assert "a" * 40 not in text


@pytest.mark.parametrize(
    ("verdict", "value", "reason"),
    [
        (skip_ci(SkipCi(globs=(), docs=()), None, files("a")), False, texts.COMMIT_UNTAGGED),
        (
            skip_ci(SkipCi(globs=(), docs=(), title_tag="no ci"), "Faster", files("a")),
            False,
            texts.UNTAGGED.format(tag="no ci"),
        ),
        (docs_only(None, None, files("a")), False, texts.DOCS_NOT_ON),
        (rebuild_docker(None, files("a")), True, texts.IMAGES_NOT_ON),
        (
            rebuild_docker(RebuildDocker(), UnknownChanges("GitHub is silent")),
            True,
            texts.FALLBACK.format(why="GitHub is silent", what=texts.IMAGES_ARE_BUILT),
        ),
        (rebuild_docker(RebuildDocker(paths=("docker/*",)), files("src/a.py")), False, texts.IN_NO_IMAGE),
        (
            skip_ci(BY_GLOBS, "Faster", UnknownChanges("GitHub is silent")),
            False,
            texts.FALLBACK.format(why="GitHub is silent", what=texts.CI_RUNS),
        ),
    ],
)
def test_each_verdict_says_why(verdict: CiVerdict, value: bool, reason: str) -> None:
    assert verdict == CiVerdict(value, reason)


def test_running_everything_says_what_runs() -> None:
    decision = run_everything("GitHub is silent", "a" * 40)
    runs = {
        "run_slow_tests": texts.SLOW_TESTS_RUN,
        "skip_ci": texts.CI_RUNS,
        "docs_only": texts.ALL_IS_BUILT,
        "rebuild_docker": texts.IMAGES_ARE_BUILT,
    }
    assert {name: one.reason for name, one in decision.verdicts.items()} == {
        name: texts.FALLBACK.format(why="GitHub is silent", what=what) for name, what in runs.items()
    }
