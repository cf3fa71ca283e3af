"""The content of a check run, and GitHub's limits for it (https://docs.github.com/en/rest/checks/runs)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.core.patterns import Pattern

TITLE_LIMIT = 255
"""Characters. GitHub names no limit for a run's title; this is the one it names for an annotation's."""
TEXT_LIMIT = 65_535
"""For `summary` and `text` each. GitHub counts characters; we count bytes of UTF-8, which are never fewer."""
# In one request. Each update adds to the existing annotations, so a repeated update would show them twice:
# https://docs.github.com/en/rest/checks/runs#update-a-check-run
MOST_ANNOTATIONS = 50
MOST_ACTIONS = 3
LABEL_LIMIT, DESCRIPTION_LIMIT, IDENTIFIER_LIMIT = 20, 40, 20
"""Characters of a button's parts."""

QUEUED, IN_PROGRESS, COMPLETED = "queued", "in_progress", "completed"
"""The statuses of a check run: https://docs.github.com/en/rest/checks/runs#create-a-check-run"""
SUCCESS, NEUTRAL, FAILURE = "success", "neutral", "failure"
ADVISORY = (SUCCESS, NEUTRAL)
"""The only conclusions for findings about the code, such as results of labs: these must not block a merge."""
WARNING, FAULT = "warning", "failure"
"""The levels of annotations."""

LEFT_OUT = "*Left out, because GitHub limits the text of a check run: {names}.*"
_CLOSING = 1_000  # bytes that are reserved for LEFT_OUT


_FOUR_BYTES = Pattern(r"[\x{10000}-\x{10ffff}]")


def three_byte(text: str) -> str:
    r"""Return a text in which escapes such as `\U0001f41b` replace the characters above U+FFFF.

    GitHub takes such characters in titles, summaries and comments, but answers 422 if they are in an annotation or in
    the description of a commit status ("description doesn't accept 4-byte Unicode").
    """
    return _FOUR_BYTES.sub(lambda match: f"\\U{ord(match[0]):08x}", text)


@dataclass(frozen=True, slots=True)
class Annotation:
    """A comment on a line of a file (from 1); GitHub shows it only if the path exists at the commit.

    `column` counts from 1 too; 0 is the whole line. Its texts have the form that GitHub accepts: `three_byte`.
    """

    path: str
    line: int
    title: str
    message: str
    details: str = ""
    column: int = 0
    level: str = WARNING

    def __post_init__(self) -> None:
        for name in ("path", "title", "message", "details"):
            object.__setattr__(self, name, three_byte(getattr(self, name)))
        object.__setattr__(self, "title", shortened(self.title, TITLE_LIMIT))


@dataclass(frozen=True, slots=True)
class Action:
    """A button on the check run; GitHub sends its identifier when somebody clicks it."""

    label: str
    description: str
    identifier: str


@dataclass(frozen=True, slots=True)
class CheckContent:
    """The content of a check run.

    A check run is written as completed, unless somebody requested its result and the bot is certain to complete it:
    a check run that is not completed holds up everybody who waits for all checks. Only a completed one has a
    conclusion. `certain`: the content is a matter of fact, so the conclusion may be a failure.

    Raises `ValueError` for content that GitHub would refuse, and for any other conclusion that could block a merge.
    """

    conclusion: str
    title: str
    summary: str
    text: str = ""
    annotations: tuple[Annotation, ...] = ()
    actions: tuple[Action, ...] = ()
    certain: bool = False
    status: str = COMPLETED

    def __post_init__(self) -> None:
        if (self.status == COMPLETED) != bool(self.conclusion):
            raise ValueError("a check run has a conclusion when it is completed, and not before")
        if self.status != COMPLETED:
            self._check_sizes()
            return
        allowed = (*ADVISORY, FAILURE) if self.certain else ADVISORY
        if self.conclusion not in allowed:
            raise ValueError(f"this check run must not conclude with {self.conclusion}, only with {allowed}")
        self._check_sizes()

    def _check_sizes(self) -> None:
        if len(self.annotations) > MOST_ANNOTATIONS or len(self.actions) > MOST_ACTIONS:
            raise ValueError(f"more than {MOST_ANNOTATIONS} annotations or {MOST_ACTIONS} buttons")
        if len(self.title) > TITLE_LIMIT or max(size(self.summary), size(self.text)) > TEXT_LIMIT:
            raise ValueError("the title, the summary or the text is longer than GitHub takes")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text that is shown in full or not at all: cutting it would break its table or code block."""

    name: str
    text: str


def size(text: str) -> int:
    """Return how many bytes a text has as UTF-8."""
    # A lone surrogate, which JSON may escape, has no UTF-8 encoding: count one byte instead of raising.
    return len(text.encode("utf-8", "replace"))


def joined_blocks(blocks: Iterable[Block], limit: int = TEXT_LIMIT) -> str:
    """Join the blocks that fit with empty lines between them, and name at the end the blocks that do not fit."""
    texts: list[str] = []
    left_out: list[str] = []
    room = limit - _CLOSING
    for block in blocks:
        needed = size(block.text) + 2  # plus the empty line
        if not block.text:
            continue
        if needed <= room:
            texts.append(block.text)
            room -= needed
        else:
            left_out.append(block.name)
    if left_out:
        texts.append(LEFT_OUT.format(names=", ".join(dict.fromkeys(left_out))))
    return "\n\n".join(texts)


def shortened(text: str, limit: int) -> str:
    """Return at most `limit` bytes of a text, cut at the end of a character, with `…` where something is missing."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    return raw[: max(0, limit - 3)].decode("utf-8", "ignore") + "…"  # `…` has 3 bytes
