"""What CI should do for a pull request, and why: decided from plain data, for the API, the status and the command line.

Everything fails open: where something could not be found out, CI runs, and the reason says that this is a fallback. A
predecessor was not executable for days, which its CI took for "run the slow tests" and nobody noticed (TVM #10457).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.config.types import matches
from bot.core.patterns import Pattern
from bot.core.terminal import printable
from bot.github.markdown import truncate

if TYPE_CHECKING:
    from bot.config.ci_decisions import RebuildDocker, SkipCi
    from bot.config.model import RepositoryConfig

FALLBACK = "Fallback: {why}, so {what}."
CI_RUNS, SLOW_TESTS_RUN, IMAGES_ARE_BUILT = "CI runs", "the slow tests run", "the images are built"
ALL_IS_BUILT = "everything is built"

SLOW_TESTS_NOT_ON = "On: slow tests cannot be turned off in this repository (slow_tests is off)."
OTHER_COMMIT = "{asked} is not the head, which is {head}"
ON_COMMIT = "On: only a pull request can turn slow tests off, and this is a commit of a branch."
SHOWN_OF_SHA = 7

NOT_ON = "CI runs: skip_ci is off in this repository."
TAGGED = "CI is skipped: the title had [{tag}] when CI started."
UNTAGGED = "CI runs: the title has no [{tag}]."
COMMIT_UNTAGGED = "CI runs: skip_ci names no files, and the title tag does not apply to commits."
NO_FILES = "CI runs: no file changed."
MATTERS = "CI runs because {name} changed."
DOCS_ONLY = "CI is skipped: only documentation changed ({count})."
NOTHING_MATTERS = "CI is skipped: no file that CI needs changed ({count})."

DOCS_NOT_ON = "Everything is built: skip_ci is off in this repository."
DOCS_TAGGED = "The docs are not built either: the title has [{tag}]."
DOCS_NO_FILES = "Everything is built: no file changed."
DOCS_NOT_ALONE = "Everything is built because {name} changed, which is not documentation."
DOCS_UNTOUCHED = "Everything is built: no documentation changed."
DOCS_ALONE = "Only the docs are built: only documentation changed ({count})."

IMAGES_NOT_ON = "The images are built: rebuild_docker is off in this repository."
IN_AN_IMAGE = "The images are built because {name} changed."
IN_NO_IMAGE = "The images are not rebuilt: none of their files changed."

LONGEST_NAME = 60
"""Characters of a file's name that are shown; its end tells more than its beginning."""

_TAG = Pattern(r"\[(.*?)\]")


@dataclass(frozen=True, slots=True)
class CiVerdict:
    """One decision, and why it was made, in a sentence of plain text; names of files in it are text from outside."""

    value: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The names of all files that a pull request changes, both of those that it renames; `count` counts these once."""

    names: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class UnknownChanges:
    """Why it is not known what a pull request changes, in words that a comma may follow."""

    why: str


Changes = ChangedFiles | UnknownChanges
NOT_NEEDED = ChangedFiles((), 0)
"""Stands for the files where no decision depends on them (`needs_files`)."""


def other_commit(asked: str, head: str) -> UnknownChanges:
    """Return what is known of the changes of a commit that somebody builds and that is not the head."""
    return UnknownChanges(OTHER_COMMIT.format(asked=asked[:SHOWN_OF_SHA], head=head[:SHOWN_OF_SHA]))


def has_tag(title: str | None, tag: str) -> bool:
    """Say whether a title has a tag, as in `[skip ci]`, alone between its brackets; None: a commit, which has no title.

    Upper and lower case and the width of blanks do not matter; the predecessor's check was exact in both but for blanks
    at the ends.
    """
    return bool(tag) and title is not None and any(_folded(found[1]) == _folded(tag) for found in _TAG.finditer(title))


def needs_files(skip: SkipCi | None, docker: RebuildDocker | None, title: str | None) -> bool:
    """Say whether a decision depends on which files are changed."""
    if docker is not None:
        return True
    return skip is not None and bool(skip.globs or skip.docs) and not has_tag(title, skip.title_tag)


def skip_ci(config: SkipCi | None, title: str | None, changes: Changes) -> CiVerdict:
    """Say whether CI may skip a pull request, or a commit (`title` is None then).

    Differs from the predecessor's scripts on purpose: a pull request without changes is never skipped (its globs did
    that; TVM #9221), documentation is what lies below `docs/` and not below any folder that is called so, and files of
    both kinds in one pull request skip CI as well.
    """
    if config is None:
        return CiVerdict(False, NOT_ON)
    if has_tag(title, config.title_tag):
        return CiVerdict(True, TAGGED.format(tag=config.title_tag))
    if isinstance(changes, UnknownChanges):
        return CiVerdict(False, FALLBACK.format(why=changes.why, what=CI_RUNS))
    if not config.globs and not config.docs:
        return CiVerdict(False, COMMIT_UNTAGGED if title is None else UNTAGGED.format(tag=config.title_tag))
    if not changes.names:
        return CiVerdict(False, NO_FILES)
    matters = next((name for name in changes.names if not matches((*config.docs, *config.globs), name)), None)
    if matters is not None:
        return CiVerdict(False, MATTERS.format(name=_shown(matters)))
    said = DOCS_ONLY if all(matches(config.docs, name) for name in changes.names) else NOTHING_MATTERS
    return CiVerdict(True, said.format(count=_counted(changes)))


def docs_only(config: SkipCi | None, title: str | None, changes: Changes) -> CiVerdict:
    """Say whether nothing but documentation is changed, so that CI builds the docs and skips the rest.

    Files that do not matter to CI may be changed beside it.
    """
    if config is None:
        return CiVerdict(False, DOCS_NOT_ON)
    if has_tag(title, config.title_tag):
        return CiVerdict(False, DOCS_TAGGED.format(tag=config.title_tag))
    if isinstance(changes, UnknownChanges):
        return CiVerdict(False, FALLBACK.format(why=changes.why, what=ALL_IS_BUILT))
    if not changes.names:
        return CiVerdict(False, DOCS_NO_FILES)
    other = next((name for name in changes.names if not matches((*config.docs, *config.globs), name)), None)
    if other is not None:
        return CiVerdict(False, DOCS_NOT_ALONE.format(name=_shown(other)))
    if not any(matches(config.docs, name) for name in changes.names):
        return CiVerdict(False, DOCS_UNTOUCHED)
    return CiVerdict(True, DOCS_ALONE.format(count=_counted(changes)))


def _counted(changes: ChangedFiles) -> str:
    return "1 file" if changes.count == 1 else f"{changes.count} files"


def rebuild_docker(config: RebuildDocker | None, changes: Changes) -> CiVerdict:
    """Say whether CI has to build Docker images anew; where CI is skipped, it is not asked.

    Differs from the predecessor's script on purpose: a file counts by where it is, not by having `docker/` anywhere in
    its name (`tests/docker/x.py` built images anew), and what is left out may be anywhere (`docker/README.md` was not).
    """
    if config is None:
        return CiVerdict(True, IMAGES_NOT_ON)
    if isinstance(changes, UnknownChanges):
        return CiVerdict(True, FALLBACK.format(why=changes.why, what=IMAGES_ARE_BUILT))
    of_an_image = (name for name in changes.names if matches(config.paths, name) and not matches(config.ignore, name))
    name = next(of_an_image, None)
    return CiVerdict(False, IN_NO_IMAGE) if name is None else CiVerdict(True, IN_AN_IMAGE.format(name=_shown(name)))


@dataclass(frozen=True, slots=True)
class CiDecision:
    """All that CI asks about a pull request or a commit; `sha` is the head or commit, empty where it is not known."""

    sha: str
    run_slow_tests: CiVerdict
    skip_ci: CiVerdict
    docs_only: CiVerdict
    rebuild_docker: CiVerdict

    @property
    def verdicts(self) -> Mapping[str, CiVerdict]:
        """Return each verdict by the name that the API has for it."""
        return {name: getattr(self, name) for name in ("run_slow_tests", "skip_ci", "docs_only", "rebuild_docker")}

    def as_json(self) -> dict[str, object]:
        """Return it as the API gives it."""
        verdicts = {name: {"value": one.value, "reason": one.reason} for name, one in self.verdicts.items()}
        return {"sha": self.sha, **verdicts}


def commit_needs_files(config: RepositoryConfig) -> bool:
    """Say whether a decision about a commit of a branch depends on which files it changes."""
    return needs_files(config.skip_ci, config.rebuild_docker, None)


def decide_for_commit(config: RepositoryConfig, sha: str, changes: Changes) -> CiDecision:
    """Return what CI does for a commit of a branch, which has no title and no choice of slow tests."""
    return CiDecision(
        sha=sha,
        run_slow_tests=CiVerdict(True, SLOW_TESTS_NOT_ON if config.slow_tests is None else ON_COMMIT),
        skip_ci=skip_ci(config.skip_ci, None, changes),
        docs_only=docs_only(config.skip_ci, None, changes),
        rebuild_docker=rebuild_docker(config.rebuild_docker, changes),
    )


def run_everything(why: str, sha: str = "", said: str = FALLBACK) -> CiDecision:
    """Return what CI does where it could not be found out, `why` in words that a comma may follow."""
    return CiDecision(
        sha=sha,
        run_slow_tests=CiVerdict(True, said.format(why=why, what=SLOW_TESTS_RUN)),
        skip_ci=CiVerdict(False, said.format(why=why, what=CI_RUNS)),
        docs_only=CiVerdict(False, said.format(why=why, what=ALL_IS_BUILT)),
        rebuild_docker=CiVerdict(True, said.format(why=why, what=IMAGES_ARE_BUILT)),
    )


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _shown(name: str) -> str:
    return truncate(printable(name)[::-1], LONGEST_NAME)[::-1]
