"""Mark a test function as slow in the text of its file, and unmark it; every other character stays. Pure.

    @pytest.mark.parametrize("size", [1, 2])
    def test_conv2d(size):

becomes

    @pytest.mark.slow
    @pytest.mark.parametrize("size", [1, 2])
    def test_conv2d(size):

The text is hostile: it is parsed, never run, and only in a process of its own (`bot.core.untrusted`). The edited text
is parsed again: but for the marks, it must be the same program.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bot.core.line_edits import LineEdits
from handlers.slow_tests.slow_set import texts

MARK = b"@pytest.mark.slow"
SLOW, PYTEST = "slow", "pytest"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """Whether a function is marked as slow, and why its mark cannot be changed here; `problem` is empty if it can."""

    is_slow: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """A function, and whether its class or its file marks all that is in it."""

    node: Function
    is_slow_above: bool


def read_functions(raw: bytes, names: Collection[str]) -> dict[str, FunctionSource]:
    """Return what a file says about functions, such as `TestConv::test_conv2d`; none if it cannot be read."""
    tree = _parsed(raw)
    if tree is None:
        return {}
    places, has_pytest = _places(tree, names), _imports_pytest(tree)
    lines = raw.split(b"\n")
    return {name: _source(place, lines, has_pytest=has_pytest) for name, place in places.items()}


def edit_functions(path: str, raw: bytes, marked: Collection[str], unmarked: Collection[str]) -> LineEdits | None:
    """Return the edits that mark some functions of a file and unmark others; None if they change anything else."""
    tree = _parsed(raw)
    if tree is None:
        return None
    places = _places(tree, {*marked, *unmarked})
    if places.keys() != {*marked, *unmarked}:
        return None
    lines = raw.split(b"\n")
    inserted = []
    for name in marked:
        number = _first_line(places[name].node)
        line = lines[number - 1]
        indent, line_end = line[: len(line) - len(line.lstrip(b" \t"))], b"\r" if line.endswith(b"\r") else b""
        inserted.append((number, (indent + MARK + line_end).decode()))
    removed = [mark.lineno for name in unmarked for mark in _marks(places[name].node)]
    edits = LineEdits(path, tuple(sorted(inserted)), tuple(sorted(removed)))
    edited = _parsed(edits.edited(raw))
    try:
        return edits if edited is not None and _has_marks(tree, edited, marked, unmarked) else None
    except RecursionError:
        return None


def _parsed(raw: bytes) -> ast.Module | None:
    """Return the tree of a file; None if it is not a text of this Python, or has line ends that are not lines here."""
    if b"\r" in raw.replace(b"\r\n", b"") or b"\f" in raw:
        return None
    try:
        raw.decode()
        with warnings.catch_warnings(action="ignore"):  # such as a backslash that escapes nothing
            return ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _places(tree: ast.Module, names: Collection[str]) -> dict[str, _Place]:
    """Return the functions with these names, but for those that a file defines twice."""
    is_slow = any(_sets_pytestmark(statement) for statement in tree.body)
    places = [(name, place) for name, place in _functions(tree.body, "", is_slow_above=is_slow) if name in names]
    times = Counter(name for name, _ in places)
    return {name: place for name, place in places if times[name] == 1}


def _functions(body: list[ast.stmt], prefix: str, *, is_slow_above: bool) -> Iterator[tuple[str, _Place]]:
    # The parser refuses more than 100 classes within each other, so the recursion ends.
    for node in body:
        if isinstance(node, Function):
            yield f"{prefix}{node.name}", _Place(node, is_slow_above)
        elif isinstance(node, ast.ClassDef):
            is_slow = is_slow_above or bool(_marks(node)) or any(map(_sets_pytestmark, node.body))
            yield from _functions(node.body, f"{prefix}{node.name}::", is_slow_above=is_slow)


def _source(place: _Place, lines: list[bytes], *, has_pytest: bool) -> FunctionSource:
    marks = _marks(place.node)
    if place.is_slow_above:
        return FunctionSource(is_slow=True, problem=texts.MARKED_ABOVE)
    if marks:
        is_alone = all(mark.lineno == mark.end_lineno and _fills_line(mark, lines[mark.lineno - 1]) for mark in marks)
        return FunctionSource(is_slow=True, problem="" if is_alone else texts.MARK_NOT_ALONE)
    first = lines[_first_line(place.node) - 1].lstrip(b" \t")
    if not first.startswith((b"@", b"def ", b"async ")):
        return FunctionSource(is_slow=False, problem=texts.NOT_ALONE)
    return FunctionSource(is_slow=False, problem="" if has_pytest else texts.NO_IMPORT)


def _fills_line(mark: ast.expr, line: bytes) -> bool:
    """Return whether a line has a decorator alone; a comment behind it would be lost."""
    text = line.strip()
    assert mark.end_col_offset is not None
    return (
        text.startswith(b"@")
        and not line[: mark.col_offset].strip().removeprefix(b"@").strip()
        and (not line[mark.end_col_offset :].strip())
    )


def _marks(node: Function | ast.ClassDef) -> list[ast.expr]:
    """Return the decorators that mark a function or class as slow: `pytest.mark.slow`, `tvm.testing.slow`, `slow`."""
    return [decorator for decorator in node.decorator_list if _is_slow(decorator)]


def _is_slow(mark: ast.expr) -> bool:
    called = mark.func if isinstance(mark, ast.Call) else mark
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name == SLOW


def _sets_pytestmark(statement: ast.stmt) -> bool:
    """Return whether a statement is `pytestmark = pytest.mark.slow`, or a list with it."""
    if not isinstance(statement, ast.Assign):
        return False
    names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    marks = statement.value.elts if isinstance(statement.value, ast.List | ast.Tuple) else [statement.value]
    return "pytestmark" in names and any(map(_is_slow, marks))


def _imports_pytest(tree: ast.Module) -> bool:
    """Return whether the name `pytest` is imported at the top of a file."""
    return any(
        (alias.asname or alias.name) == PYTEST
        for statement in tree.body
        if isinstance(statement, ast.Import)
        for alias in statement.names
    )


def _first_line(node: Function) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _has_marks(tree: ast.Module, edited: ast.Module, marked: Collection[str], unmarked: Collection[str]) -> bool:
    """Return whether an edited file has the wanted marks, and is otherwise the same program. Changes both trees."""
    places, edited_places = (_places(module, {*marked, *unmarked}) for module in (tree, edited))
    if places.keys() != edited_places.keys():
        return False
    marks = {name: name in marked for name in places}
    if {name: bool(_marks(place.node)) for name, place in edited_places.items()} != marks:
        return False
    for place in (*places.values(), *edited_places.values()):
        place.node.decorator_list = [mark for mark in place.node.decorator_list if not _is_slow(mark)]
    return ast.dump(tree) == ast.dump(edited)
