"""The rules of docs/architecture.md that import-linter cannot check: the files of `bot/`, and who decides."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARSES_OUR_TEXT = {
    "bot/effects/section_state.py": "replaces the mark above a section of a comment",
    "handlers/ci_decisions/ask_github.py": "asks GitHub while the bot is down: the text of a status is all there is",
}
# One worker parses all files, once.
pytestmark = pytest.mark.xdist_group("source")
SEARCHES = frozenset({"startswith", "endswith", "partition", "split"})


@cache
def modules() -> dict[str, ast.Module]:
    paths = [path for folder in ("bot", "handlers") for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def applies(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that apply an effect."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "apply":
            yield node.lineno


def decided_by_text(tree: ast.Module) -> Iterator[int]:
    """Yield the lines in which a text for people is compared, or searched for in another."""
    imported = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[-1].endswith("texts")
        for name in node.names
    }

    def is_text(node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute):
            return isinstance(node.value, ast.Name) and node.value.id.endswith("texts") and node.attr.isupper()
        return isinstance(node, ast.Name) and node.id in imported and node.id.isupper()

    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(map(is_text, [node.left, *node.comparators])):
            yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES:
            yield from [node.lineno] if any(map(is_text, node.args)) else []


def test_the_root_of_the_bot_contains_only_its_folders() -> None:
    assert sorted(path.name for path in (ROOT / "bot").glob("*.py")) == ["__init__.py", "__main__.py"]


def test_an_effect_is_applied_in_only_one_place() -> None:
    """No effect applies another: what follows from an outcome is a plan of its own."""
    lines_by_path = {path: list(applies(tree)) for path, tree in modules().items()}
    assert [path for path, lines in lines_by_path.items() if lines] == [
        "bot/app/processor.py",
        "bot/engine/worker/tasks.py",
    ]


def test_no_decision_reads_a_text_for_people() -> None:
    lines_by_path = {path: list(decided_by_text(tree)) for path, tree in modules().items()}
    assert {path: lines for path, lines in lines_by_path.items() if lines and path not in PARSES_OUR_TEXT} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import texts\nif said == texts.CANNOT: pass",
        "import texts\nif said.startswith(texts.CANNOT): pass",
        "from bot.ci.texts import CANNOT\nif CANNOT in said: pass",
    ],
)
def test_a_decision_by_text_is_detected(code: str) -> None:
    assert list(decided_by_text(ast.parse(code)))


def test_the_name_of_a_deciding_function_says_about_what() -> None:
    """Commands of click are left out: their names are those of the command line."""
    paths_by_name: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules().items():
        for node in tree.body:
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and node.name.startswith("decide")
                and not node.decorator_list
            ):
                paths_by_name[node.name].append(path)
    assert len(paths_by_name) > 5
    assert "decide" not in paths_by_name
    assert {name: paths for name, paths in paths_by_name.items() if len(paths) > 1} == {}
