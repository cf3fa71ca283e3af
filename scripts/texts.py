"""List all texts that people see, by feature: constants of `texts.py`, and sentences in other modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from bot.core.docs import replace_block, table
from scripts.pages import contents

ROOT = Path(__file__).parents[1]
COLUMNS = 118
HEADER = ("name", "text", "about")
PAGE = """\
# Texts

All texts that people see, by feature, then by folder of `bot/`. `{name}` stands for a value. `make docs` builds this
page; git does not keep it. To change a text, edit the constant in the module. `tests/test_texts.py` fails on a sentence
that is not a constant.

<!-- generated: contents -->
<!-- end of generated: contents -->

"""
NAMES = frozenset({"texts.py", "text.py", "sentences.py"})
LEAST_WORDS = 4
"""The fewest words of a sentence. Shorter strings in other modules are names, marks or parts of patterns."""
CODE = re.compile(
    r"\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE (?:TABLE|INDEX)|ALTER|WHERE|TRIGGER|OR NOT)\b"
    r"|\b(?:query|mutation)\(|<!|'none'|^id, |^import sys;"
)
"""Strings that are not sentences: SQL, GraphQL, HTML, a header and a program."""


def modules(root: Path = ROOT) -> list[Path]:
    """Return all modules of the bot, those of features first."""
    paths = [
        path
        for folder in ("handlers", "bot", "lab/nightjar_formats", "lab/nightjar_lab")
        for path in sorted((root / folder).rglob("*.py"))
    ]
    return [path.relative_to(root) for path in paths]


def holds_texts(path: Path) -> bool:
    """Return whether a module holds texts. A feature with one file has them at the top of that file."""
    alone = path.parts[0] == "handlers" and len(path.parts) == 2 and path.name != "__init__.py"
    named = path.name in NAMES or path.stem.endswith(("_text", "_texts"))
    return alone or named


def is_sentence(text: str) -> bool:
    """Return whether people probably read a string: it has words, and is not code."""
    words = [word for word in text.split() if any(letter.isalpha() for letter in word)]
    return len(words) >= LEAST_WORDS and not CODE.search(text)


def texts_page(root: Path = ROOT) -> str:
    """Return the page of all texts, with its contents."""
    page = f"{PAGE}{texts(root)}\n"
    return replace_block(page, "contents", contents(page))


def texts(root: Path = ROOT) -> str:
    """Return a section for each module with texts: a table of single-line texts, and longer ones below it."""
    parts = []
    for path in modules(root):
        listed = [
            constant
            for constant in constants(root / path, calls=holds_texts(path))
            if holds_texts(path) or is_sentence(constant[1])
        ]
        rows = [
            (f"`{name}`", _code(text), description)
            for name, text, description in listed
            if "\n" not in text.strip("\n")
        ]
        longer = [(name, text, description) for name, text, description in listed if "\n" in text.strip("\n")]
        if listed:
            parts += [f"## {_title(path)}", f"`{path.as_posix()}`"]
            parts += [table(HEADER, rows)] if rows else []
            parts += [
                f"{fill(f'`{name}`: {description}'.rstrip(': '), COLUMNS)}\n\n{_quoted(text)}"
                for name, text, description in longer
            ]
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """Show a single-line text as code, in which no markup has an effect."""
    marks = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{marks}{space}{text.strip()}{space}{marks}"


def constants(path: Path, *, calls: bool = True) -> Iterator[tuple[str, str, str]]:
    """Yield name, text and description of each text of a module, including each text of a tuple or a mapping.

    Without `calls`, arguments of calls are skipped: patterns, options and descriptions that other pages show.
    """
    source = path.read_text(encoding="utf-8")
    body = ast.parse(source).body
    for place, node in enumerate(body):
        names, value = _assigned(node)
        if not names or value is None:
            continue
        description = _described(node, body[place + 1] if place + 1 < len(body) else None, source)
        for name, expression in _pairs(names, value):
            if name.isupper() and not name.startswith("_"):
                for label, text in _strings(name, expression, calls=calls):
                    if " " in text or path.parent.name != "handlers":
                        yield label, text, description


def _assigned(node: ast.stmt) -> tuple[list[str], ast.expr | None]:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        return [name.id for name in names if isinstance(name, ast.Name)], node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id], node.value
    return [], None


def _pairs(names: list[str], value: ast.expr) -> list[tuple[str, ast.expr]]:
    if len(names) > 1 and isinstance(value, ast.Tuple):
        return list(zip(names, value.elts, strict=True))
    return [(names[0], value)]


def _strings(name: str, value: ast.expr, *, calls: bool) -> Iterator[tuple[str, str]]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        if value.value.strip():
            yield name, value.value
    elif isinstance(value, ast.JoinedStr):
        yield name, ast.unparse(value)
    elif isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        for place, argument in enumerate(value.elts):
            yield from _strings(f"{name}[{place}]", argument, calls=calls)
    elif isinstance(value, ast.Dict):
        for key, argument in zip(value.keys, value.values, strict=True):
            yield from _strings(f"{name}[{ast.unparse(key) if key else '…'}]", argument, calls=calls)
    elif isinstance(value, ast.Call) and calls:
        for argument in [*value.args, *(keyword.value for keyword in value.keywords)]:
            yield from _strings(name, argument, calls=calls)


def _described(node: ast.stmt, next_node: ast.stmt | None, source: str) -> str:
    """Return the docstring below an assignment, otherwise the comment above it."""
    if (
        isinstance(next_node, ast.Expr)
        and isinstance(next_node.value, ast.Constant)
        and isinstance(next_node.value.value, str)
    ):
        return " ".join(next_node.value.value.split())
    above: list[str] = []
    for line in reversed(source.splitlines()[: node.lineno - 1]):
        if not line.startswith("#"):
            break
        above.insert(0, line.lstrip("# "))
    return " ".join(above)


def _quoted(text: str) -> str:
    """Show a text literally: no markup in it has an effect."""
    fence = "````" if "```" in text else "```"
    return f"{fence}text\n{text.strip(chr(10))}\n{fence}"


def _title(path: Path) -> str:
    parts = [part for part in path.with_suffix("").parts[1:] if part not in ("texts", "text")]
    return ": ".join(parts).replace("_texts", "").replace("_text", "").replace("_", " ").capitalize()
