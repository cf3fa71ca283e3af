"""Parse which fields a GraphQL query asks for, so that the sandbox returns those and no others.

https://spec.graphql.org/October2021/#sec-Selection-Sets
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
_TOKEN = re.compile(r"\.\.\.|[A-Za-z_]\w*|[{}():]|\"[^\"]*\"|[^\s{}():,]+")
INTERFACES = {"Actor": {"User", "Bot", "Organization", "Mannequin"}}


class UnknownField(Exception):
    """A query asks for a field that the sandbox does not have."""


@dataclass
class Selection:
    """The fields of an object by their names in the answer, and the fields for only some of its types."""

    fields: dict[str, tuple[str, Selection | None]] = field(default_factory=dict)
    fragments: list[tuple[str, Selection]] = field(default_factory=list)
    spreads: list[str] = field(default_factory=list)


@dataclass
class GraphqlDocument:
    """A query: its selection, and its named fragments as (type, selection)."""

    query: Selection
    named: dict[str, tuple[str, Selection]]

    def of(self, value: Any, selection: Selection | None) -> Any:
        """Return the part of a value that a selection asks for. Raises `UnknownField`."""
        if isinstance(value, list):
            return [self.of(item, selection) for item in value]
        if selection is None or value is None:
            return value
        answered: Json = {}
        for name, (source, inner) in selection.fields.items():
            if source not in value:
                raise UnknownField(f"Field '{source}' doesn't exist on type '{value.get('__typename', 'Object')}'")
            answered[name] = self.of(value[source], inner)
        fragments = [*selection.fragments, *(self.named[name] for name in selection.spreads)]
        for kind, inner in fragments:
            if value.get("__typename") in {kind} | INTERFACES.get(kind, set()):
                answered |= self.of(value, inner)
        return answered


def read(text: str) -> GraphqlDocument:
    """Parse a document with one query and its fragments; ignore arguments."""
    tokens = _TOKEN.findall(re.sub(r"#[^\n]*", "", text))
    query, named = Selection(), {}
    while tokens:
        word = tokens.pop(0)
        if word == "fragment":
            name, _, kind = (tokens.pop(0) for _ in range(3))
            tokens.pop(0)
            named[name] = (kind, _selection(tokens))
        elif word == "{":
            query = _selection(tokens)
        elif word == "(":
            _arguments(tokens)
    return GraphqlDocument(query, named)


def _selection(tokens: list[str]) -> Selection:
    selection = Selection()
    while (word := tokens.pop(0)) != "}":
        if word == "...":
            name = tokens.pop(0)
            if name != "on":
                selection.spreads.append(name)
                continue
            kind = tokens.pop(0)
            tokens.pop(0)
            selection.fragments.append((kind, _selection(tokens)))
            continue
        source = word
        if tokens[0] == ":":
            tokens.pop(0)
            source = tokens.pop(0)
        if tokens[0] == "(":
            tokens.pop(0)
            _arguments(tokens)
        inner = None
        if tokens[0] == "{":
            tokens.pop(0)
            inner = _selection(tokens)
        selection.fields[word] = (source, inner)
    return selection


def _arguments(tokens: list[str]) -> None:
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(tokens.pop(0), 0)
