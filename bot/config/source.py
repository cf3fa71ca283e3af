"""YAML text -> a tree of plain values in which everything knows where it was written.

No part of YAML that one file of settings does not need is read: anchors, aliases and tags are refused, so that what
is written is what is meant, and a small file cannot unfold into a large one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError, MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, StreamMark
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.parser import Parser, ParserError
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.tokens import DirectiveToken

from bot.config.faults import ConfigError, Fault
from bot.core.patterns import Pattern

MAX_BYTES = 256 * 1024
"""Room for more than a thousand repositories; it bounds the time that reading takes."""
MAX_DEPTH = 16
"""Twice what the deepest key of the model needs."""
MAX_NODES = 20_000
"""Keys and values in one file; read within a second."""
MAX_SHOWN = 100
"""Characters of a key that are repeated in an error text."""

TOO_LARGE = "the file is larger than {most} KiB, the most that is read"
TOO_MANY = f"more than {MAX_NODES:,} keys and values, the most that are read"
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep, the most that is read"
NOT_UTF8 = "the file is not UTF-8 text; save it as UTF-8"
NOT_A_CHARACTER = "a control character, which YAML does not allow; remove it"
ONE_DOCUMENT = "a second YAML document starts here; one file holds one document, remove the ---"
NO_ALIASES = "anchors and aliases (& and *) are not read; write the value out, or share it through defaults"
QUOTE_PATTERN = 'a value that starts with * must be in quotes, as in "*/branch"'
QUOTE_MENTION = 'a value that starts with @ must be in quotes, as in "@ci"'
NO_TABS = "tabs cannot indent YAML; use spaces"
NO_TAGS = "tags (!) are not read; write the plain value"
NO_DIRECTIVES = "directives (%) are not read; remove the line"
_LINE_END = Pattern(r"\r\n|[\n\r\x85\x{2028}\x{2029}]")
_INTEGER = Pattern("[-+]?[0-9]{1,18}")

NOT_YAML = "not valid YAML: {problem}"
KEY_NOT_TEXT = "a key must be plain text"
TWICE = "written twice; the first is in line {line}, keep one of them"

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the file: a scalar, a tuple of values, or a mapping of entries; line and column count from 1."""

    line: int
    column: int
    path: str
    content: Scalar | tuple[Value, ...] | dict[str, Entry]

    def plain(self) -> Any:
        """Return the value without its places: dicts, tuples and scalars."""
        if isinstance(self.content, dict):
            return {key: entry.value.plain() for key, entry in self.content.items()}
        if isinstance(self.content, tuple):
            return tuple(value.plain() for value in self.content)
        return self.content

    def size(self) -> int:
        """Return how many values it holds, itself included."""
        if isinstance(self.content, dict):
            return 1 + sum(entry.value.size() for entry in self.content.values())
        return 1 + sum(value.size() for value in self.content) if isinstance(self.content, tuple) else 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping, where it stands, and its value."""

    line: int
    column: int
    path: str
    value: Value


def read(raw: bytes, file: str, most: int = MAX_BYTES) -> tuple[Value | None, list[Fault]]:
    """Return the file's one value (None: it holds nothing) and the faults that don't keep the rest from being read.

    `most` is how many bytes are read. Raises `ConfigError` for those that do, such as a syntax error.
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
        raise ConfigError([Fault(file, line, column, "", NOT_A_CHARACTER)]) from None
    except MarkedYAMLError as error:
        raise ConfigError([_syntax_fault(error, text, file)]) from None
    except Exception as error:  # the library has asserts of its own; whatever the file holds, it is a fault of the file
        raise ConfigError([Fault(file, 1, 1, "", NOT_YAML.format(problem=shown(str(error))))]) from None
    if root is None:
        return None, []
    builder = _Builder(file)
    return builder.value(root, ""), builder.faults


def shown(text: str) -> str:
    """Return text from the file so that it fits into one line of an error."""
    cut = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def _decode(raw: bytes, file: str, most: int) -> str:
    if len(raw) > most:
        raise ConfigError([Fault(file, 1, 1, "", TOO_LARGE.format(most=most // 1024))])
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line, column = _place(raw[: error.start].decode())
        raise ConfigError([Fault(file, line, column, "", NOT_UTF8)]) from None


def _place(before: str) -> tuple[int, int]:
    lines = _LINE_END.split(before)
    return len(lines), len(lines[-1]) + 1


class _PlainParser(Parser):
    """Refuse directives: %YAML 1.1 would turn `off` into false, %TAG has no use without tags."""

    def process_directives(self) -> Any:
        """Go on to the document, once nothing stands before it."""
        if self.scanner.check_token(DirectiveToken):
            raise ParserError(problem=NO_DIRECTIVES, problem_mark=self.scanner.peek_token().start_mark)
        return super().process_directives()


class _PlainComposer(Composer):
    """Refuse what would let a small file grow, before it is built."""

    nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Build one node, once it is known to be plain."""
        event = self.parser.peek_event()
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise ComposerError(problem=TOO_MANY, problem_mark=event.start_mark)
        if isinstance(event, AliasEvent) or event.anchor is not None:
            raise ComposerError(problem=NO_ALIASES, problem_mark=event.start_mark)
        if event.tag is not None:
            raise ComposerError(problem=NO_TAGS, problem_mark=event.start_mark)
        return super().compose_node(parent, index)


def _syntax_fault(error: MarkedYAMLError, text: str, file: str) -> Fault:
    mark: StreamMark | None = error.problem_mark or error.context_mark
    index = min(mark.index, len(text)) if mark else 0
    line, column = _place(text[:index])
    return Fault(file, line, column, "", _syntax_text(error, text[index : index + 1]))


def _syntax_text(error: MarkedYAMLError, character: str) -> str:
    problem = str(error.problem or error.context or "")
    if isinstance(error, MaxDepthExceededError):
        return TOO_DEEP
    if (problem == NO_ALIASES and character == "*") or "scanning an alias" in str(error.context):
        return f"{NO_ALIASES}; {QUOTE_PATTERN}"
    if problem in (NO_ALIASES, NO_TAGS, NO_DIRECTIVES, TOO_MANY):
        return problem
    if "another document" in problem:
        return ONE_DOCUMENT
    if character == "@":
        return QUOTE_MENTION
    if character == "\t":
        return NO_TABS
    if error.context and error.context_mark and error.problem:
        problem += f", {error.context} that starts in line {error.context_mark.line + 1}"
    return NOT_YAML.format(problem=shown(problem))


class _Builder:
    """Turn YAML nodes into values; what is wrong with a key is noted and the key left out."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[Fault] = []

    def value(self, node: Node, path: str) -> Value:
        content: Scalar | tuple[Value, ...] | dict[str, Entry]
        if isinstance(node, MappingNode):
            content = self.entries(node, path)
        elif isinstance(node, SequenceNode):
            content = tuple(self.value(item, f"{path}[{i}]") for i, item in enumerate(node.value))
        else:
            content = _scalar(str(node.tag), node.value)
        return Value(node.start_mark.line + 1, node.start_mark.column + 1, path, content)

    def entries(self, node: MappingNode, path: str) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for key, child in node.value:
            line, column = key.start_mark.line + 1, key.start_mark.column + 1
            if not isinstance(key, ScalarNode) or not key.value:
                self.faults.append(Fault(self.file, line, column, path, KEY_NOT_TEXT))
                continue
            below = f"{path}.{shown(key.value)}".removeprefix(".")
            if key.value in entries:
                message = TWICE.format(line=entries[key.value].line)
                self.faults.append(Fault(self.file, line, column, below, message))
                continue
            entries[key.value] = Entry(line, column, below, self.value(child, below))
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
            return float("nan")  # a number no key of ours takes: hexadecimal, a fraction, astronomic
        case _:
            return text
