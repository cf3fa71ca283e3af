"""Whether CI is skipped, as tables: the cases of TVM's scripts, and where we differ on purpose."""

from __future__ import annotations

import pytest
from nightjar_lab.ci.decision import CiVerdict
from nightjar_lab.ci.texts import CI_RUNS, FALLBACK

from handlers.changed_files.changes import ChangedFiles, UnknownChanges
from handlers.skip_ci import texts
from handlers.skip_ci.config import SkipCi
from handlers.skip_ci.decide import docs_only, has_tag, skip_ci
from tests.handlers.changed_files.changed import files

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


def test_a_renamed_file_counts_under_both_names() -> None:
    moved = ChangedFiles(("docs/codegen.md", "src/codegen.cc"), 1)
    assert skip_ci(EVERYTHING, "Move it", moved).reason == "CI runs because src/codegen.cc changed."
    renamed = ChangedFiles(("docs/new.rst", "docs/old.rst"), 1)
    assert skip_ci(EVERYTHING, "Move it", renamed).reason == "CI is skipped: only documentation changed (1 file)."


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


def test_without_the_feature_nothing_is_skipped() -> None:
    assert skip_ci(None, "[skip ci]", files("docs/x.rst")).value is False
    assert "skip_ci is off in" in skip_ci(None, "", files()).reason


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
        (
            skip_ci(BY_GLOBS, "Faster", UnknownChanges("GitHub is silent")),
            False,
            FALLBACK.format(why="GitHub is silent", what=CI_RUNS),
        ),
    ],
)
def test_each_verdict_says_why(verdict: CiVerdict, value: bool, reason: str) -> None:
    assert verdict == CiVerdict(value, reason)


def test_unknown_changes_run_ci_and_the_reason_says_fallback() -> None:
    """TVM #10457: for days, nobody noticed an error that was taken for an answer."""
    verdict = skip_ci(EVERYTHING, "Fix it", UnknownChanges("we could not ask GitHub"))
    assert verdict == CiVerdict(False, "Fallback: we could not ask GitHub, so CI runs.")
