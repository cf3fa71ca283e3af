"""Add an item to `quarantine` in the text of `.github/nightjar.yaml`; every other character stays. Pure.

    quarantine:
      # Comments stay.
      - test: "tests/python/test_conv.py::test_new"   <- the new item comes first
        ...
      - test: tests/python/test_conv.py::test_old

The result is parsed again: it must have the old content and the new item, and nothing else. So neither an unusual
layout nor a text from a form can change anything else in the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.config.faults import ConfigError
from bot.config.repository_file import MOST_BYTES
from bot.config.shared import PATH
from bot.config.source import Value, read
from bot.results.settings.quarantine import QuarantinedTest

KEY = "quarantine"
INDENT = "  "


def item_lines(item: QuarantinedTest, indent: str = INDENT) -> list[str]:
    """Return an item of the list as lines of YAML, each value in double quotes."""
    values: Mapping[str, Any] = item.model_dump(exclude_defaults=True)
    lines = [f"{name}: {_quoted(value)}" for name, value in values.items()]
    return [f"{indent}{'- ' if number == 0 else '  '}{line}" for number, line in enumerate(lines)]


def with_item(text: str, item: QuarantinedTest) -> str | None:
    """Return the text of the file with one more item; None if the file's layout does not allow it."""
    root = _read(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.split("\n")
    entries = root.content if root is not None and isinstance(root.content, dict) else {}
    if KEY not in entries:
        if lines[-1]:
            lines.append("")
        lines[-1:] = [*_with_line_ends([f"{KEY}:", *item_lines(item)], newline), ""]
    else:
        value, number = entries[KEY].value, entries[KEY].value.line - 1
        if not value.content:
            if lines[number].split() != [f"{KEY}:", "[]"]:
                return None
            lines[number : number + 1] = _with_line_ends([f"{KEY}:", *item_lines(item)], newline)
        else:
            assert isinstance(value.content, tuple)
            number = value.content[0].line - 1
            indent, dash, _ = lines[number].partition("-")
            if not dash or indent.strip():
                return None
            lines[number:number] = _with_line_ends(item_lines(item, indent), newline)
    edited = "\n".join(lines)
    return edited if _adds_only(text, edited, item) else None


def has_item(text: str, item: QuarantinedTest) -> bool:
    """Return whether the file mutes the test of an item on the same targets, for whatever reason."""
    place = item.model_dump(exclude_defaults=True, include={"test", "targets"})
    return any(
        {name: value for name, value in listed.items() if name in ("test", "targets")} == place
        for listed in (_plain(text) or {}).get(KEY) or ()
    )


def _with_line_ends(lines: Sequence[str], newline: str) -> list[str]:
    """Return lines with their ends but for the line feed, at which the text of the file was split."""
    return [f"{line}{newline.removesuffix(chr(10))}" for line in lines]


def _adds_only(text: str, edited: str, item: QuarantinedTest) -> bool:
    """Return whether the edited text has the content of the text and the new item, and nothing else."""
    content, edited_content = _plain(text), _plain(edited)
    if content is None or edited_content is None:
        return False
    new_item = item.model_dump(exclude_defaults=True)
    return edited_content == {**content, KEY: (new_item, *(content.get(KEY) or ()))}


def _plain(text: str) -> dict[str, Any] | None:
    """Return the content of a file; None if it is no mapping, or not valid YAML."""
    try:
        root = _read(text)
    except ConfigError:
        return None
    content = {} if root is None or root.content is None else root.plain()
    return content if isinstance(content, dict) else None


def _read(text: str) -> Value | None:
    """Return the root of a file, None if it is empty. Raises `ConfigError`."""
    root, faults = read(text.encode(), PATH, MOST_BYTES)
    if faults:
        raise ConfigError(faults)
    return root


def _quoted(value: object) -> str:
    """Return a text, or a list of texts, as YAML in one line.

    JSON is YAML, except that YAML reads an escaped surrogate pair as two characters, so all but line ends is unescaped.
    """
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
