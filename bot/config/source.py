"""Parse YAML into a tree of plain values with their lines and columns.

Anchors, aliases, tags and directives are refused: a file of settings does not need them, and a small file could expand
to a huge one (https://en.wikipedia.org/wiki/Billion_laughs_attack).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, StreamMark
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.parser import Parser
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.tokens import DirectiveToken

from bot.config.faults import ConfigError, ConfigFault
from bot.config.texts import (
    CONTROL_CHARACTER,
    FILE_TOO_LARGE,
    KEY_NOT_TEXT,
    MISSING_COLON,
    NO_ALIASES,
    NO_DIRECTIVES,
    NO_TABS,
    NO_TAGS,
    NOT_UTF8,
    NOT_YAML,
    ONE_DOCUMENT,
    QUOTE_MENTION,
    QUOTE_PATTERN,
    STARTED_IN_LINE,
    TOO_DEEP,
    TOO_MANY_NODES,
    WRITTEN_TWICE,
)
from bot.core.patterns import Pattern

MAX_BYTES = 256 * 1024
"""Bytes, enough for more than a thousand repositories; this limits the time to read the file."""
MAX_DEPTH = 16
"""Levels of nested keys and lists, twice the depth of the deepest key."""
MAX_NODES = 20_000
"""Keys and values in one file, which are read within a second."""
MAX_SHOWN = 100
"""Characters of a key to show in an error text."""

TWO_COLONS = "mapping values are not allowed here"
NO_COLON = "could not find expected ':'"
UNEXPECTED_MAPPING = "<block mapping start>"
"""How ruamel.yaml reports a missing colon."""
_LINE_END = Pattern(r"\r\n|[\n\r]")
"""What ends a line in YAML 1.2, and in the marks of ruamel.yaml. https://yaml.org/spec/1.2.2/#54-line-break-characters"""
_INTEGER = Pattern("[-+]?[0-9]{1,18}")


Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a file: a scalar, a tuple of values, or a mapping of entries; line and column count from 1."""

    file: str
    line: int
    column: int
    path: str
    content: Scalar | tuple[Value, ...] | dict[str, Entry]

    def plain(self) -> Any:
        """Return the value as dicts, tuples and scalars."""
        if isinstance(self.content, dict):
            return {key: entry.value.plain() for key, entry in self.content.items()}
        if isinstance(self.content, tuple):
            return tuple(value.plain() for value in self.content)
        return self.content

    def size(self) -> int:
        """Return the number of values in it, itself included."""
        if isinstance(self.content, dict):
            return 1 + sum(entry.value.size() for entry in self.content.values())
        return 1 + sum(value.size() for value in self.content) if isinstance(self.content, tuple) else 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping with its place, and its value."""

    file: str
    line: int
    column: int
    path: str
    value: Value


def read(raw: bytes, file: str, most: int = MAX_BYTES) -> tuple[Value | None, list[ConfigFault]]:
    """Return the value of the file (None if it is empty), and the errors that leave the rest of it readable.

    `most` is the largest size in bytes. Raises `ConfigError` for other errors, such as a syntax error.
    """
    text = _decode(raw, file, most)
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = MAX_DEPTH
    yaml.Parser = _PlainParser
    yaml.Composer = _PlainComposer
    try:
        root = yaml.compose(text)
    except ReaderError as error:
        line, column = _place(text[: error.position])
        raise ConfigError([ConfigFault(file, line, column, "", CONTROL_CHARACTER)]) from None
    except MarkedYAMLError as error:
        raise ConfigError([_syntax_fault(error, text, file)]) from None
    except Exception as error:  # ruamel.yaml fails with AssertionError and others on some files
        raise ConfigError([ConfigFault(file, 1, 1, "", NOT_YAML.format(problem=shown(str(error))))]) from None
    if root is None:
        return None, []
    builder = _Builder(file)
    return builder.value(root, ""), builder.faults


def shown(text: str) -> str:
    """Return text of the file in a form that fits into one line of an error."""
    cut = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def _decode(raw: bytes, file: str, most: int) -> str:
    if len(raw) > most:
        raise ConfigError([ConfigFault(file, 1, 1, "", FILE_TOO_LARGE.format(most=most // 1024))])
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line, column = _place(raw[: error.start].decode())
        raise ConfigError([ConfigFault(file, line, column, "", NOT_UTF8)]) from None


def _place(before: str) -> tuple[int, int]:
    lines = _LINE_END.split(before)
    return len(lines), len(lines[-1]) + 1


class _UnsupportedYaml(MarkedYAMLError):
    """Valid YAML that no file of ours may hold; `text` says so to people."""

    def __init__(self, text: str, mark: StreamMark, *, is_anchor_or_alias: bool = False) -> None:
        super().__init__(problem=text, problem_mark=mark)
        self.text = text
        self.is_anchor_or_alias = is_anchor_or_alias


class _PlainParser(Parser):
    """Refuse directives: with %YAML 1.1 `off` would mean false, and %TAG needs tags."""

    def process_directives(self) -> Any:
        """Refuse a directive before the document."""
        if self.scanner.check_token(DirectiveToken):
            raise _UnsupportedYaml(NO_DIRECTIVES, self.scanner.peek_token().start_mark)
        return super().process_directives()


class _PlainComposer(Composer):
    """Refuse aliases, anchors and tags, and too many nodes, before they are built."""

    nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Build one node if it is plain."""
        event = self.parser.peek_event()
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise _UnsupportedYaml(TOO_MANY_NODES.format(most=MAX_NODES), event.start_mark)
        if isinstance(event, AliasEvent) or event.anchor is not None:
            raise _UnsupportedYaml(NO_ALIASES, event.start_mark, is_anchor_or_alias=True)
        if event.tag is not None:
            raise _UnsupportedYaml(NO_TAGS, event.start_mark)
        return super().compose_node(parent, index)


def _syntax_fault(error: MarkedYAMLError, text: str, file: str) -> ConfigFault:
    mark: StreamMark | None = error.problem_mark or error.context_mark
    index = min(mark.index, len(text)) if mark else 0
    line, column = _place(text[:index])
    if fault := _missing_colon(error, text, file):
        return fault
    return ConfigFault(file, line, column, "", _syntax_text(error, text[index : index + 1]))


def _missing_colon(error: MarkedYAMLError, text: str, file: str) -> ConfigFault | None:
    """Return the error of a key without its colon, which YAML notices in a later line; None for another error."""
    lines = _LINE_END.split(text)
    problem = str(error.problem)
    if (problem == TWO_COLONS or UNEXPECTED_MAPPING in problem) and error.problem_mark is not None:
        # Without a colon, YAML joins a key and the next line, unless there is a comment between them.
        number = next((n for n in range(error.problem_mark.line - 1, -1, -1) if _content(lines[n])), None)
        if number is None or ":" in _content(lines[number]):
            return None
    elif problem == NO_COLON and error.context_mark is not None:
        number = error.context_mark.line
    else:
        return None
    words = _content(lines[number]).split()
    if not words:  # a line of spaces that are text for YAML, such as U+3000
        return None
    key = words[0]
    column = len(lines[number]) - len(lines[number].lstrip()) + len(key) + 1
    return ConfigFault(file, number + 1, column, "", MISSING_COLON.format(key=shown(key)))


def _content(line: str) -> str:
    """Return a line without indentation and comment."""
    return "" if line.lstrip().startswith("#") else line.partition(" #")[0].strip()


def _syntax_text(error: MarkedYAMLError, character: str) -> str:
    if isinstance(error, MaxDepthExceededError):
        return TOO_DEEP.format(most=MAX_DEPTH)
    if isinstance(error, _UnsupportedYaml):
        pattern = error.is_anchor_or_alias and character == "*"
        return QUOTE_PATTERN.format(problem=error.text) if pattern else error.text
    problem = str(error.problem or error.context or "")
    # These are texts of ruamel.yaml, because its errors have no types.
    if "scanning an alias" in str(error.context):
        return QUOTE_PATTERN.format(problem=NO_ALIASES)
    if "another document" in problem:
        return ONE_DOCUMENT
    if character == "@":
        return QUOTE_MENTION
    if character == "\t":
        return NO_TABS
    if error.context and error.context_mark and error.problem:
        line = error.context_mark.line + 1
        problem = STARTED_IN_LINE.format(problem=problem, context=error.context, line=line)
    return NOT_YAML.format(problem=shown(problem))


class _Builder:
    """Turn YAML nodes into values. A key with an error is left out, and the error added to `faults`."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[ConfigFault] = []

    def value(self, node: Node, path: str) -> Value:
        content: Scalar | tuple[Value, ...] | dict[str, Entry]
        if isinstance(node, MappingNode):
            content = self.entries(node, path)
        elif isinstance(node, SequenceNode):
            content = tuple(self.value(item, f"{path}[{i}]") for i, item in enumerate(node.value))
        else:
            content = _scalar(str(node.tag), node.value)
        return Value(self.file, node.start_mark.line + 1, node.start_mark.column + 1, path, content)

    def entries(self, node: MappingNode, path: str) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for key, child in node.value:
            line, column = key.start_mark.line + 1, key.start_mark.column + 1
            if not isinstance(key, ScalarNode) or not key.value:
                self.faults.append(ConfigFault(self.file, line, column, path, KEY_NOT_TEXT))
                continue
            below = f"{path}.{shown(key.value)}".removeprefix(".")
            if key.value in entries:
                message = WRITTEN_TWICE.format(line=entries[key.value].line)
                self.faults.append(ConfigFault(self.file, line, column, below, message))
                continue
            entries[key.value] = Entry(self.file, line, column, below, self.value(child, below))
        return entries


def _scalar(tag: str, text: str) -> Scalar:
    """Return a scalar by YAML 1.2's core schema: `yes`, `off` and dates are text."""
    match tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int" if _INTEGER.fullmatch(text):
            return int(text)
        case "int" | "float":
            return float("nan")  # a number that no key accepts: hexadecimal, a fraction, or too large
        case _:
            return text
