"""Every sentence for people is a constant, in its feature's `texts.py` if it has one; `make docs` lists them all."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from bot.config.assemble import repository_model
from bot.config.keys import key_types, model_of
from bot.core.patterns import Pattern
from scripts.docs import CONFIG
from scripts.texts import ROOT, constants, holds_texts, is_sentence, modules

# One worker parses all files, once.
pytestmark = pytest.mark.xdist_group("source")
SHOWN = {
    "UserError",
    "Refused",
    "Refusal",
    "StartError",
    "SettingsError",
    "StorageError",
    "ConfigError",
    "ClickException",
}
"""Errors whose text people read, as are those of their subclasses."""
CLICK = {"UsageError", "BadParameter", "BadArgumentUsage", "BadOptionUsage"}
LEAST_WORDS = 3

ELSEWHERE = {
    "handlers/last_good/feature.py": "describes a metric",
    "bot/effects/reviews.py": "a part of GitHub's text",
    "bot/app/registration.py": "a block of docs/installing.md",
    "bot/cli/ci.py": "help of commands",
    "bot/cli/main.py": "help of commands",
    "bot/cli/results/group.py": "help of commands",
    "bot/config/assemble.py": "for who writes a feature",
    "bot/config/places.py": "describes keys of app.yaml",
    "bot/config/repository_keys.py": "for who writes a feature",
    "bot/config/schema.py": "the schemas' titles",
    "bot/results/settings/quarantine.py": "an example of app.yaml",
    "bot/config/source.py": "parts of ruamel.yaml's texts",
    "lab/nightjar_formats/readers/junit/pytest.py": "what pytest writes",
    "lab/nightjar_lab/main.py": "help of commands",
    "lab/nightjar_lab/pytest/decorators.py": "describes pytest's marks",
    "bot/web/access.py": "for who writes a route",
    "bot/web/openapi.py": "a description in /api/v1/openapi.json",
}
"""Modules whose folder has a `texts.py`, with sentences of another kind at their top."""


@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse((ROOT / path).read_text(encoding="utf-8")) for path in modules()}


def shown_errors(parsed: list[ast.Module]) -> set[str]:
    """Return the names of all classes of errors that people read."""
    classes = [node for tree in parsed for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    shown_names = SHOWN | CLICK
    while (
        subclasses := {
            error_class.name for error_class in classes if {_name(base) for base in error_class.bases} & shown_names
        }
        - shown_names
    ):
        shown_names |= subclasses
    return shown_names


def inline(tree: ast.AST, shown_names: set[str]) -> Iterator[tuple[int, str]]:
    """Yield each sentence that is written inline where an error is raised."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in shown_names:
            for constant in (part for argument in node.args for part in ast.walk(argument)):
                if (
                    isinstance(constant, ast.Constant)
                    and isinstance(constant.value, str)
                    and len(constant.value.split()) >= LEAST_WORDS
                ):
                    yield constant.lineno, constant.value


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_no_error_for_people_has_its_sentence_inline() -> None:
    parsed = trees()
    shown_names = shown_errors(list(parsed.values()))
    assert {"TooMuch", "EndsEarly", "RefusedToPerson"} <= shown_names
    assert [f"{path}:{line}: {text}" for path, tree in parsed.items() for line, text in inline(tree, shown_names)] == []


@pytest.mark.parametrize("raised", ['raise Refused(f"{name} is too long")', 'UserError("it is not here".format())'])
def test_an_inline_sentence_is_detected(raised: str) -> None:
    assert list(inline(ast.parse(raised), SHOWN))


@pytest.mark.parametrize("raised", ["raise Refused(texts.TOO_LONG)", 'raise Refused(", ".join(faults))', "f('a b c')"])
def test_other_strings_are_not_taken_for_inline_sentences(raised: str) -> None:
    assert list(inline(ast.parse(raised), SHOWN)) == []


def test_if_a_folder_has_a_texts_module_its_sentences_are_there() -> None:
    elsewhere = [
        f"{path}: {name}: {text}"
        for path in modules()
        if (ROOT / path.parent / "texts.py").exists() and not holds_texts(path)
        for name, text, _ in constants(ROOT / path, calls=False)
        if is_sentence(text) and path.as_posix() not in ELSEWHERE
    ]
    assert elsewhere == []


PYTHON_VALUES = {"lab/nightjar_lab/pytest/texts.py": "values of a conftest.py, which its author wrote in Python"}


def test_no_text_shows_a_value_as_python_does() -> None:
    shown = [
        f"{path}: {name}"
        for path in modules()
        if holds_texts(path) and path.as_posix() not in PYTHON_VALUES
        for name, text, _ in constants(ROOT / path, calls=False)
        if "!r}" in text
    ]
    assert shown == []


OWN_FILE = ".github/nightjar.yaml"
NAMED = Pattern(r"`([a-z_]+(?:: [a-z_]+)+):?`|\b((?:[a-z_]+\.)+[a-z_]+)\b")
"""Keys as texts name them: `merge: method:`, docker_update.base."""


def texts_about(file: str) -> dict[str, str]:
    """Return the texts for people that name a file, by module and constant."""
    texts: dict[str, str] = {}
    for path in filter(holds_texts, modules()):
        texts |= {f"{path.as_posix()}: {name}": text for name, text, _ in constants(ROOT / path) if file in text}
    return texts


def has_key(model: type[BaseModel] | None, keys: list[str]) -> bool:
    """Return whether a key is in a model."""
    if not keys or model is None:
        return not keys
    types = key_types(model)
    return keys[0] in types and has_key(model_of(types[keys[0]]), keys[1:])


def test_each_key_that_a_text_names_exists_in_app_yaml() -> None:
    repository = repository_model(CONFIG)
    named = {
        f"{place}: {match[0]}": (match[1] or match[2]).replace(": ", ".").split(".")
        for place, text in texts_about("app.yaml").items()
        for match in NAMED.finditer(text)
    }
    keys = {place: path for place, path in named.items() if path[0] in key_types(repository)}
    assert len(keys) > 5
    assert [place for place, path in keys.items() if not has_key(repository, path)] == []


def test_only_a_function_says_whether_a_repositorys_own_file_accepts_a_key() -> None:
    """`bot.config.shared.files_for` knows it; a sentence that names both files would be wrong for some keys."""
    assert [place for place, text in texts_about(OWN_FILE).items() if "app.yaml" in text] == []
