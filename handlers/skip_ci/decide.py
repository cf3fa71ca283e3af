"""Decide whether CI may skip a change, and whether only documentation changed. Pure.

Everything fails open: if a fact is missing, CI runs, and the reason says that this is a fallback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_lab.ci.decision import CiVerdict
from nightjar_lab.ci.texts import ALL_IS_BUILT, CI_RUNS, FALLBACK

from bot.config.types import matches
from bot.core.patterns import Pattern
from handlers.changed_files.changes import Changes, UnknownChanges
from handlers.changed_files.verdicts import counted_files, shown_name
from handlers.skip_ci import texts

if TYPE_CHECKING:
    from handlers.skip_ci.config import SkipCi

# A tag may stand anywhere in a title, and is alone between its brackets: TVM #11714, #11671.
_TAG = Pattern(r"\[(.*?)\]")


def has_tag(title: str | None, tag: str) -> bool:
    """Say whether a title has a tag, as in `[skip ci]`, alone between its brackets. A commit has no title: None.

    Letter case and the width of blanks do not matter. The predecessor's check ignored only blanks at the ends.
    """
    return bool(tag) and title is not None and any(_folded(match[1]) == _folded(tag) for match in _TAG.finditer(title))


def skip_needs_files(rules: SkipCi | None, title: str | None) -> bool:
    """Say whether the decision depends on which files are changed. A commit has no title: None."""
    return rules is not None and bool(rules.globs or rules.docs) and not has_tag(title, rules.title_tag)


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
        return CiVerdict(False, FALLBACK.format(why=changes.reason, what=CI_RUNS))
    if not config.globs and not config.docs:
        return CiVerdict(False, texts.COMMIT_UNTAGGED if title is None else texts.UNTAGGED.format(tag=config.title_tag))
    if not changes.names:
        return CiVerdict(False, texts.NO_FILES)
    # `*` crosses folders here, as it did in TVM's scripts.
    relevant = next((name for name in changes.names if not matches((*config.docs, *config.globs), name)), None)
    if relevant is not None:
        return CiVerdict(False, texts.MATTERS.format(name=shown_name(relevant)))
    template = texts.DOCS_ONLY if all(matches(config.docs, name) for name in changes.names) else texts.NOTHING_MATTERS
    return CiVerdict(True, template.format(count=counted_files(changes)))


def docs_only(config: SkipCi | None, title: str | None, changes: Changes) -> CiVerdict:
    """Say whether nothing but documentation is changed, so that CI builds the docs and skips the rest.

    Files that do not matter to CI may change too.
    """
    if config is None:
        return CiVerdict(False, texts.DOCS_NOT_ON)
    if has_tag(title, config.title_tag):
        return CiVerdict(False, texts.DOCS_TAGGED.format(tag=config.title_tag))
    if isinstance(changes, UnknownChanges):
        return CiVerdict(False, FALLBACK.format(why=changes.reason, what=ALL_IS_BUILT))
    if not changes.names:
        return CiVerdict(False, texts.DOCS_NO_FILES)
    relevant = next((name for name in changes.names if not matches((*config.docs, *config.globs), name)), None)
    if relevant is not None:
        return CiVerdict(False, texts.DOCS_NOT_ALONE.format(name=shown_name(relevant)))
    if not any(matches(config.docs, name) for name in changes.names):
        return CiVerdict(False, texts.DOCS_UNTOUCHED)
    return CiVerdict(True, texts.DOCS_ALONE.format(count=counted_files(changes)))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
