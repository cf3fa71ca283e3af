"""Decide what CI should do for a pull request, and why, from plain data. The API, the status and the CLI use this.

Everything fails open: if a fact is missing, CI runs, and the reason says that this is a fallback. A predecessor was not
executable for days; its CI read that as "run the slow tests", and nobody noticed (TVM #10457).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nightjar_formats.terminal import escape_controls

from bot.config.types import matches
from bot.core.patterns import Pattern
from bot.github.text.markdown import truncate
from handlers.ci_decisions import texts

if TYPE_CHECKING:
    from bot.config.ci_decisions import RebuildDocker, SkipCi
    from bot.config.model import RepositoryConfig


SHOWN_OF_SHA = 7


LONGEST_NAME = 60
"""The most characters of a file's name that a reason shows: its end, which identifies a file better."""

# A tag may stand anywhere in a title, and is alone between its brackets: TVM #11714, #11671.
_TAG = Pattern(r"\[(.*?)\]")


@dataclass(frozen=True, slots=True)
class CiVerdict:
    """One decision, and why it was made, in a sentence of plain text; names of files in it are text from outside."""

    value: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The names of all changed files, with both names of a renamed file, which `count` counts once."""

    names: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class UnknownChanges:
    """Why we do not know what a pull request changes: `why` is a clause that a comma may follow."""

    why: str


Changes = ChangedFiles | UnknownChanges
NOT_NEEDED = ChangedFiles((), 0)
"""Stands for the files if no decision depends on them (`needs_files`)."""


def other_commit(asked: str, head: str) -> UnknownChanges:
    """Return the changes of a commit that is not the head: they are unknown."""
    return UnknownChanges(texts.OTHER_COMMIT.format(asked=asked[:SHOWN_OF_SHA], head=head[:SHOWN_OF_SHA]))


def has_tag(title: str | None, tag: str) -> bool:
    """Say whether a title has a tag, as in `[skip ci]`, alone between its brackets. A commit has no title: None.

    Letter case and the width of blanks do not matter. The predecessor's check ignored only blanks at the ends.
    """
    return bool(tag) and title is not None and any(_folded(found[1]) == _folded(tag) for found in _TAG.finditer(title))


def needs_files(skip: SkipCi | None, docker: RebuildDocker | None, title: str | None) -> bool:
    """Say whether a decision depends on which files are changed."""
    if docker is not None:
        return True
    return skip is not None and bool(skip.globs or skip.docs) and not has_tag(title, skip.title_tag)


def skip_ci(config: SkipCi | None, title: str | None, changes: Changes) -> CiVerdict:
    """Say whether CI may skip a pull request, or a commit (`title` is None then).

    This differs from the predecessor's scripts on purpose. A pull request without changes is never skipped (their globs
    skipped it; TVM #9221). Documentation is what is below the top folder `docs/`, not below any folder of that name. A
    pull request with files of both kinds skips CI too.
    """
    if config is None:
        return CiVerdict(False, texts.NOT_ON)
    if has_tag(title, config.title_tag):
        return CiVerdict(True, texts.TAGGED.format(tag=config.title_tag))
    if isinstance(changes, UnknownChanges):
        return CiVerdict(False, texts.FALLBACK.format(why=changes.why, what=texts.CI_RUNS))
    if not config.globs and not config.docs:
        return CiVerdict(False, texts.COMMIT_UNTAGGED if title is None else texts.UNTAGGED.format(tag=config.title_tag))
    if not changes.names:
        return CiVerdict(False, texts.NO_FILES)
    # `*` crosses folders here, as it did in TVM's scripts.
    matters = next((name for name in changes.names if not matches((*config.docs, *config.globs), name)), None)
    if matters is not None:
        return CiVerdict(False, texts.MATTERS.format(name=_shown(matters)))
    said = texts.DOCS_ONLY if all(matches(config.docs, name) for name in changes.names) else texts.NOTHING_MATTERS
    return CiVerdict(True, said.format(count=_counted(changes)))


def docs_only(config: SkipCi | None, title: str | None, changes: Changes) -> CiVerdict:
    """Say whether nothing but documentation is changed, so that CI builds the docs and skips the rest.

    Files that do not matter to CI may change too.
    """
    if config is None:
        return CiVerdict(False, texts.DOCS_NOT_ON)
    if has_tag(title, config.title_tag):
        return CiVerdict(False, texts.DOCS_TAGGED.format(tag=config.title_tag))
    if isinstance(changes, UnknownChanges):
        return CiVerdict(False, texts.FALLBACK.format(why=changes.why, what=texts.ALL_IS_BUILT))
    if not changes.names:
        return CiVerdict(False, texts.DOCS_NO_FILES)
    other = next((name for name in changes.names if not matches((*config.docs, *config.globs), name)), None)
    if other is not None:
        return CiVerdict(False, texts.DOCS_NOT_ALONE.format(name=_shown(other)))
    if not any(matches(config.docs, name) for name in changes.names):
        return CiVerdict(False, texts.DOCS_UNTOUCHED)
    return CiVerdict(True, texts.DOCS_ALONE.format(count=_counted(changes)))


def _counted(changes: ChangedFiles) -> str:
    return "1 file" if changes.count == 1 else f"{changes.count} files"


def rebuild_docker(config: RebuildDocker | None, changes: Changes) -> CiVerdict:
    """Say whether CI has to rebuild Docker images; a CI that is skipped does not ask.

    This differs from the predecessor's script on purpose. A file counts by its folder, not by `docker/` anywhere in its
    path (`tests/docker/x.py` rebuilt the images), and any file can be ignored (`docker/README.md` could not).
    """
    if config is None:
        return CiVerdict(True, texts.IMAGES_NOT_ON)
    if isinstance(changes, UnknownChanges):
        return CiVerdict(True, texts.FALLBACK.format(why=changes.why, what=texts.IMAGES_ARE_BUILT))
    of_an_image = (name for name in changes.names if matches(config.paths, name) and not matches(config.ignore, name))
    name = next(of_an_image, None)
    return (
        CiVerdict(False, texts.IN_NO_IMAGE)
        if name is None
        else CiVerdict(True, texts.IN_AN_IMAGE.format(name=_shown(name)))
    )


@dataclass(frozen=True, slots=True)
class CiDecision:
    """All decisions about a pull request or a commit; `sha` is the head or commit, empty if it is unknown."""

    sha: str
    run_slow_tests: CiVerdict
    skip_ci: CiVerdict
    docs_only: CiVerdict
    rebuild_docker: CiVerdict

    @property
    def verdicts(self) -> Mapping[str, CiVerdict]:
        """Return each verdict by its name in the API."""
        return {name: getattr(self, name) for name in ("run_slow_tests", "skip_ci", "docs_only", "rebuild_docker")}

    def as_json(self) -> dict[str, object]:
        """Return the decision in the form of the API."""
        verdicts = {name: {"value": one.value, "reason": one.reason} for name, one in self.verdicts.items()}
        return {"sha": self.sha, **verdicts}


def commit_needs_files(config: RepositoryConfig) -> bool:
    """Say whether a decision about a commit of a branch depends on which files it changes."""
    return needs_files(config.skip_ci, config.rebuild_docker, None)


def decide_for_commit(config: RepositoryConfig, sha: str, changes: Changes) -> CiDecision:
    """Return what CI does for a commit of a branch, which has no title and no choice of slow tests."""
    return CiDecision(
        sha=sha,
        run_slow_tests=CiVerdict(
            True, texts.SLOW_TESTS_NOT_ON if config.slow_tests is None else texts.SLOW_TESTS_ON_COMMIT
        ),
        # A tag in a commit message skips nothing: everyone sees a title, but few read a message (TVM #10537).
        skip_ci=skip_ci(config.skip_ci, None, changes),
        docs_only=docs_only(config.skip_ci, None, changes),
        rebuild_docker=rebuild_docker(config.rebuild_docker, changes),
    )


def run_everything(why: str, sha: str = "", said: str = texts.FALLBACK) -> CiDecision:
    """Return the fallback decision: run everything. `why` is a clause that a comma may follow."""
    return CiDecision(
        sha=sha,
        run_slow_tests=CiVerdict(True, said.format(why=why, what=texts.SLOW_TESTS_RUN)),
        skip_ci=CiVerdict(False, said.format(why=why, what=texts.CI_RUNS)),
        docs_only=CiVerdict(False, said.format(why=why, what=texts.ALL_IS_BUILT)),
        rebuild_docker=CiVerdict(True, said.format(why=why, what=texts.IMAGES_ARE_BUILT)),
    )


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _shown(name: str) -> str:
    return truncate(escape_controls(name)[::-1], LONGEST_NAME)[::-1]
