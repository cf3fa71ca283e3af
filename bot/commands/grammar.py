"""The grammar of commands: from the text of a comment to commands, or to errors that teach. Pure.

    @ci run slow tests
    @ci rerun
    @ci rerun cpu/pr-head "Linux / build (3.11)"

- A command has a line of its own that begins with a name of the bot as a whole word, alone or with `,` or `:`. It may
  be a list item, a heading or bold. Quotations, code and hidden text contain no commands
  (`bot.github.text.markdown.visible_lines`).
- Upper and lower case, the width of spaces, `please` and `thanks` at either end, emoji and a full stop at the end do
  not matter. A line with nothing else (`@ci thanks!`) is no command, and neither is one with a question mark
  (`@ci rerun?`).
- Every other line that addresses the bot is a `BadCommand`: the bot never guesses a command.
- A reply by mail may include the earlier mail without the marks of a quotation. So the bot ignores everything below the
  head of an earlier mail: somebody else wrote it.
- Names with spaces need quotes or back-ticks; both also distinguish a check named `all` from the choice `all`.
- Commands are returned, and run, in the order of their lines. A command that is written twice runs once, in the place
  of the last: of `run slow tests` and `skip slow tests`, the later one takes effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from nightjar_formats.items import first_of

from bot.commands import texts
from bot.commands.spec import Arguments, CommandRegistry, CommandSpec, folded, likeness_of_words
from bot.core.patterns import SPACE, Pattern, escape_pattern
from bot.github.text.earlier_mail import typed_lines
from bot.github.text.markdown import HOLE, Line, lines_alone, visible_lines

__all__ = ["Arguments", "BadCommand", "Command", "CommandRegistry", "CommandSpec", "new_commands", "parse"]

MOST_COMMANDS = 20
"""The most commands in one comment; the bot ignores further ones and says so."""
MOST_NAMES = 20
MOST_WORDS = 60
"""The most words of a sentence (`Arguments.sentence`)."""
LONGEST_NAME = 255
"""Characters of a name."""
MOST_SHOWN = 200
"""Characters that an answer quotes of a line that is not a command, to show which line it means."""

_SHORTEST_TYPO = 4
_TYPO = 0.8

_INVISIBLE = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
"""Invisible characters that keyboards and copying insert."""
_INVISIBLE_ANYWHERE = Pattern(f"[{_INVISIBLE}]+")
_BEFORE_MENTION = Pattern(f"^[{SPACE}{_INVISIBLE}]*")
_AFTER_MENTION = Pattern(f"[,:;.!?{_INVISIBLE}]*(?:[{SPACE}]|$)")
_AFTER_WORD = ",:;.!"
_UNWRITABLE = Pattern(r"[\x00-\x1f\x7f-\x9f\x{fffd}]")
_POLITE = frozenset({"please", "pls", "plz", "kindly", "thanks", "thank", "you", "thx", "ty", "cheers"})
_EMOJI = Pattern(r":[a-z0-9_+-]+:", ignore_case=True)
_QUOTES = {
    '"': '"',
    "“": "”",
    "'": "'",
    "\N{LEFT SINGLE QUOTATION MARK}": "\N{RIGHT SINGLE QUOTATION MARK}",
    "„": "“”",
    "\N{SINGLE LOW-9 QUOTATION MARK}": "\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}",
    "«": "»",
}
"""Opening quotation marks with those that close them: phones and word processors replace straight ones."""
_QUOTED = "|".join(f"{opening}([^{closing}{HOLE}]*)[{closing}]" for opening, closing in _QUOTES.items())
_WORD = Pattern(rf"[{SPACE}]*(?:(?:{_QUOTED}|(?P<hole>{HOLE}))[{_AFTER_WORD}]*(?:[{SPACE}]|$)|(?P<bare>[^{SPACE}]+))")


@dataclass(frozen=True, slots=True)
class Command:
    """A command that somebody wrote, with `choice` (`failed`), with `names`, or with neither.

    `mention` is the name by which the comment addresses the bot, and `line` its line, counted from 1; `bare` has the
    words without quotes. Two commands that differ only in these are equal.
    """

    spec: CommandSpec
    choice: str = ""
    names: tuple[str, ...] = ()
    mention: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    bare: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def text(self) -> str:
        """The command without the mention, with quotes where the person wrote some. Its names are text from outside."""
        names = (name if name in self.bare else _in_quotes(name) for name in self.names)
        return " ".join(part for part in (self.spec.name, self.choice, *names) if part)


@dataclass(frozen=True, slots=True)
class BadCommand:
    """A line that addresses the bot and is no command.

    `text` is the text after the mention, from outside and cut to MOST_SHOWN; `reason` is a sentence of
    `bot.commands.texts`; `nearest` is a command that the person perhaps meant.
    """

    text: str
    reason: str
    nearest: str | None = None
    mention: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    quoted: bool = False

    @property
    def key(self) -> str:
        """The word in the form in which commands are compared; nothing in quotes is part of a command."""
        return "" if self.quoted else folded(_INVISIBLE_ANYWHERE.sub("", self.text))


class _Fault(Exception):
    """A line is no command: the reason from `bot.commands.texts`, and the command that the person perhaps meant.

    `unknown` is the text in place of a command. Only the caller that shows the nearest command searches for it, because
    the search takes long.
    """

    def __init__(self, reason: str, nearest: str | None = None, *, unknown: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.nearest = nearest
        self.unknown = unknown


def parse(text: str, *, registry: CommandRegistry, mentions: Sequence[str]) -> list[Command | BadCommand]:
    """Return the commands of a comment, review or body, in order, each once."""
    return _each_once(_all_commands(text, registry, mentions))


def new_commands(
    old_text: str, new_text: str, *, registry: CommandRegistry, mentions: Sequence[str]
) -> list[Command | BadCommand]:
    """Return the commands that an edit added. A command in the old text, even a hidden one, is not new.

    An edit can uncover an old command: by closing a fence, by deleting a `<!--`, or by deleting one of the first
    MOST_COMMANDS. So a command is new only if the new text has its line more often than the old text, and has more
    lines with this command, hidden ones included.
    """
    commands = list(_all_commands(new_text, registry, mentions))
    if not commands:
        return []
    typed = typed_lines(new_text)
    lines = Counter(map(_comparable_line, typed)) - Counter(map(_comparable_line, typed_lines(old_text)))
    counts = _count_commands_anywhere(new_text, registry, mentions)
    added_counts = counts - _count_commands_anywhere(old_text, registry, mentions)
    added = []
    for command in commands:
        comparable = _comparable_line(typed[command.line - 1])
        # A bad command, or a command with a mark inside it, has no count; then the line alone decides.
        if lines[comparable] > 0 and (
            not isinstance(command, Command) or not counts[command] or added_counts[command] > 0
        ):
            lines[comparable] -= 1
            if isinstance(command, Command):
                added_counts[command] -= 1
            added.append(command)
    return _each_once(added)


def _count_commands_anywhere(text: str, registry: CommandRegistry, mentions: Sequence[str]) -> Counter[Command]:
    """Count the commands in the text from each mention on, including those that are hidden, without any limit."""
    mention_pattern = Pattern("|".join(map(escape_pattern, mentions)), ignore_case=True)
    pieces: Counter[str] = Counter()
    for line in typed_lines(text):
        starts = [match.start() for match in mention_pattern.finditer(line)]
        pieces.update(line[start:end] for start, end in pairwise([*starts, len(line)]))
    commands_by_reading: dict[str, Command] = {}
    readings = list({reading for piece in pieces for reading in _readings(piece)})
    for alone in lines_alone(readings):
        mention_and_rest = _split_mention(alone.text, mentions)
        with suppress(_Fault):
            if mention_and_rest and (command := _read_command(alone, *mention_and_rest, registry, mentions)):
                commands_by_reading[readings[alone.number]] = command
    counted: Counter[Command] = Counter()
    for piece, times in pieces.items():
        for command in {commands_by_reading[reading] for reading in _readings(piece) if reading in commands_by_reading}:
            counted[command] += times
    return counted


def _readings(piece: str) -> set[str]:
    """Return a piece whole, and cut before each mark that may close something: a cell, a link, code, HTML."""
    ends = [piece.find(mark) for mark in ("|", "]", "<", "-->")]
    ends.append(piece.find("`") if piece.count("`") % 2 else -1)
    return {piece, *(piece[:end] for end in ends if end > 0)}


def _comparable_line(line: str) -> str:
    """Return a line in lower case, with single spaces, and without the marks around it that may hide it."""
    folded_line = " ".join(line.casefold().split())
    positions = [place for place, character in enumerate(folded_line) if character.isalnum()]
    return folded_line[positions[0] : positions[-1] + 1] if positions else ""


def _each_once(commands: Iterable[Command | BadCommand]) -> list[Command | BadCommand]:
    return list(dict.fromkeys(reversed(list(commands))))[::-1]


def _all_commands(text: str, registry: CommandRegistry, mentions: Sequence[str]) -> Iterator[Command | BadCommand]:
    # Most comments do not mention the bot, and parsing Markdown is expensive.
    lowered = text.lower()
    if not any(mention.lower() in lowered for mention in mentions):
        return
    count = 0
    for line in visible_lines(text, with_earlier_mail=True):
        mention_and_rest = _split_mention(line.text, mentions)
        command = _command_or_fault(line, *mention_and_rest, registry, mentions) if mention_and_rest else None
        if not command:
            continue
        if mention_and_rest and line.in_earlier_mail:
            command = BadCommand(
                _shown(mention_and_rest[1], line), texts.IN_EARLIER_MAIL, None, command.mention, line.number
            )
        count += 1
        if count > MOST_COMMANDS:
            yield BadCommand(
                _shown(mention_and_rest[1] if mention_and_rest else "", line),
                texts.TOO_MANY_COMMANDS,
                None,
                command.mention,
                line.number,
            )
            return
        yield command


def _split_mention(text: str, mentions: Sequence[str]) -> tuple[str, str] | None:
    """Split a line into the mention at its beginning and the rest; None if it does not begin with one."""
    start = _BEFORE_MENTION.sub("", text)
    for mention in mentions:
        name, rest = start[: len(mention)], start[len(mention) :]
        if name.lower() == mention.lower() and (end := _AFTER_MENTION.match(rest)):
            return mention, rest[end.end() :].strip()
    return None


def _command_or_fault(
    line: Line, mention: str, rest: str, registry: CommandRegistry, mentions: Sequence[str]
) -> Command | BadCommand | None:
    try:
        return _read_command(line, mention, rest, registry, mentions)
    except _Fault as fault:
        nearest = registry.nearest(fault.unknown) if fault.unknown else fault.nearest
        return BadCommand(_shown(rest, line), fault.reason, nearest, mention, line.number)


def _read_command(
    line: Line, mention: str, rest: str, registry: CommandRegistry, mentions: Sequence[str]
) -> Command | None:
    """Return the command of a line, None if the line is only a courtesy. Raises `_Fault` for anything else."""
    words = _without_courtesy(list(_words(rest, line.holes)))
    if rest and not words:
        return None
    spec, choice, names = _resolve(words, registry, {folded(name) for name in mentions})
    bare = frozenset(word.text for word in words if not word.quoted and not _is_courtesy(word))
    return Command(spec, choice, names, mention, line.number, bare)


def _words(rest: str, holes: Sequence[str | None]) -> Iterator[_Word]:
    remaining = iter(holes)
    for match in _WORD.finditer(rest):
        if (bare := match["bare"]) is None:
            quoted = first_of(remaining) if match["hole"] else next(filter(None, match.groups()[: len(_QUOTES)]), "")
            if quoted is None:
                raise _Fault(texts.NOT_A_NAME)
            yield _Word(quoted.strip(), quoted=True)
        elif HOLE in bare:
            raise _Fault(texts.NOT_A_NAME)
        elif bare[0] in _QUOTES:
            raise _Fault(texts.QUOTE_OPEN)
        elif word := bare if _EMOJI.fullmatch(bare) else bare.rstrip(_AFTER_WORD):
            yield _Word(word)


def _without_courtesy(words: list[_Word]) -> list[_Word]:
    start, end = 0, len(words)
    while start < end and _is_courtesy(words[start]):
        start += 1
    while start < end and _is_courtesy(words[end - 1]):
        end -= 1
    return words[start:end]


def _is_courtesy(word: _Word) -> bool:
    return not word.quoted and (
        word.key in _POLITE or bool(_EMOJI.fullmatch(word.text)) or not _names_something(word.text)
    )


def _names_something(text: str) -> bool:
    return any(character.isalnum() or character == "*" for character in text)


def _resolve(
    words: Sequence[_Word], registry: CommandRegistry, own_names: Collection[str]
) -> tuple[CommandSpec, str, tuple[str, ...]]:
    if not words:
        raise _Fault(texts.NOTHING_ASKED)
    if any(word.key in own_names for word in words):
        raise _Fault(texts.ONE_COMMAND_A_LINE)
    match = registry.match([word.key for word in words])
    if match is None:
        raise _Fault(texts.UNKNOWN_COMMAND, unknown=" ".join(word.text for word in words))
    spec, words_after = match.spec, words[match.words :]
    if not words_after:
        return spec, "", ()
    if spec.arguments is None:
        raise _Fault(texts.TAKES_NO_ARGUMENTS, spec.name)
    choices = [word.key for word in words_after if word.key in spec.arguments.choices]
    if choices and len(words_after) > 1:
        raise _Fault(texts.CHOICE_STANDS_ALONE, f"{spec.name} {choices[0]}")
    return (spec, choices[0], ()) if choices else (spec, "", _names(words_after, spec, spec.arguments))


def _names(words: Sequence[_Word], spec: CommandSpec, arguments: Arguments) -> tuple[str, ...]:
    if not arguments.names:
        raise _Fault(texts.UNKNOWN_ARGUMENT, spec.name)
    if len(words) > (MOST_WORDS if arguments.sentence else MOST_NAMES):
        raise _Fault(texts.TOO_MANY_NAMES)
    for word in words:
        if len(word.text) > LONGEST_NAME or _UNWRITABLE.search(word.text) or not _names_something(word.text):
            raise _Fault(texts.BAD_NAME)
        if choice := _typo_of(word, arguments):
            raise _Fault(texts.NAME_OR_TYPO, f"{spec.name} {choice}")
    texts_of_words = [word.text for word in words]
    return tuple(texts_of_words if arguments.sentence else dict.fromkeys(texts_of_words))


def _typo_of(word: _Word, arguments: Arguments) -> str | None:
    if len(word.key) < _SHORTEST_TYPO:
        return None
    likely = (choice for choice in arguments.choices if len(choice) >= _SHORTEST_TYPO)
    return next((choice for choice in likely if likeness_of_words(word.key, choice) >= _TYPO), None)


def _in_quotes(name: str) -> str:
    for opening, closing in _QUOTES.items():
        # Each of several closing marks would end the name.
        if not any(mark in name for mark in closing):
            return f"{opening}{name}{closing[0]}"
    return f"`{name}`"  # only a name that was written as code can have all closing marks


def _shown(rest: str, line: Line) -> str:
    holes = iter(line.holes)
    filled = "".join(_refilled(first_of(holes)) if character == HOLE else character for character in rest)
    return filled[:MOST_SHOWN]


def _refilled(hole: str | None) -> str:
    return "[…]" if hole is None else f"`{hole}`"
