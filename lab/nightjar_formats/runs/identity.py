r"""Give each case its test ID, the same for every root folder, prefix and format of a lab. No I/O.

The ID is `path::Class::name[params]`, as pytest's node IDs are, with the path as it is in the repository at that
commit. Characters of a name that cannot be printed (control characters, line breaks, bidirectional marks, odd spaces)
are written as Python's `repr` writes them: `\n`, `\x1b`, `\u202e`. Paths are read in Unicode's form NFC, because file
systems change the form of names; the names of tests come from the source, and keep their form. An ID
longer than MAX_NAME is shortened to its beginning, 16 digits of its SHA-256 and its end.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TypeVar

from nightjar_formats.limits import MAX_NAME
from nightjar_formats.model import Case, Trouble
from nightjar_formats.normal_forms import normalized
from nightjar_formats.readers.junit.names import is_absolute
from nightjar_formats.runs.paths import MAX_PARTS, Paths

SHORTENED_TAIL = 240
"""The number of characters that remain from the end of an ID that is too long."""
HASH_DIGITS = 16
MAX_REMEMBERED = 10_000
"""The most classes, and the most files, whose place is cached for their next test."""

Place = tuple[str, str]
"""The part of an ID before the test's own name, and the path that the test's line belongs to."""
Key = TypeVar("Key")


class Resolver:
    """Give each case its test ID, by the list of the repository's files at the commit (None: the list is unknown).

    A dotted name (JUnit's `classname`) is read as Codecov's compute_name does: components are dropped from the right
    until the rest is a file; the dropped components are classes. If there is no such file, the lab has another root
    folder or a prefix. Then the file is the only one whose path has the longest end in common with the name. This end
    must contain "test", or a Java package would become the Python module of the same name.
    """

    def __init__(self, files: Iterable[str] | None) -> None:
        self._files = {normalized("NFC", file): file for file in files or ()}
        self._paths = Paths(tuple(file.split("/")) for file in self._files)
        self._modules = {file.rpartition("/")[2].removesuffix(".py") for file in self._files if file.endswith(".py")}
        self._classes: dict[str, Place] = {}
        self._placed: dict[tuple[str, str], Place] = {}
        self._heads: dict[tuple[str, str], Place] = {}

    def resolve(self, case: Case) -> tuple[str, str]:
        """Return a case's test ID, and the path in the repository that its line belongs to, or "".

        The ID of a file that could not be collected, or was skipped as a whole, is its path alone. If no file of the
        repository matches, the ID is `classname::name`, as in the report.
        """
        name, _, classname, file, nodeid, _, _, _, trouble, _, _, _, _, failure_path, _ = case
        if nodeid:
            test, path = self._noded(case)
        elif not classname or trouble is Trouble.COLLECTION:
            test, path = self._unusual(case)
        elif file:
            key = (classname, file)
            head, path = self._placed.get(key) or _remembered(self._placed, key, self._place(*key))
            test = head + (name if name.isprintable() else _visible(name))
        else:
            head, path = self._of_class(classname)
            test = head + (name if name.isprintable() else _visible(name))
        if failure_path:
            path = self._files.get(self._file(failure_path), "")
        if len(test) > MAX_NAME:
            test = _shortened(test)
        return test, path

    def head_of(self, classname: str) -> str:
        """Return the part of the ID before the name, for a test whose place is known by its class alone."""
        return self._of_class(classname)[0]

    def _of_class(self, classname: str) -> Place:
        place = self._classes.get(classname)
        return place or _remembered(self._classes, classname, self._class(classname))

    def _class(self, classname: str) -> Place:
        file, classes = self._module(classname)
        if not file:
            # Some tools write the path of the source as the class.
            file = self._file(classname) if "." in classname else ""
            head = (file or _unplaced(classname)) if is_absolute(classname) else classname
            return _visible(head) + "::", self._files.get(file, "")
        return "".join(_visible(part) + "::" for part in (file, *classes)), self._files[file]

    def _place(self, classname: str, path: str) -> Place:
        """Return the place of a class whose case has a path too.

        The classname decides the ID: pytest's `file` is where the function was written, which for an inherited test is
        not the file that it was collected from. But the path is the file to which the line belongs.
        """
        file = self._file(path)
        head, repository_file = self._class(classname)
        if not repository_file and path.endswith(".py"):
            classes = _after(classname.split("."), _canonical(path).removesuffix(".py").split("/"))
            if classes is not None:
                head = "".join(_visible(part) + "::" for part in (file or _unplaced(path), *classes))
        elif not repository_file and file:
            head = _visible(file) + "::" + head
        return head, self._files.get(file, repository_file)

    def _noded(self, case: Case) -> tuple[str, str]:
        """Return ID and path of a case that has pytest's node ID."""
        file, separator, rest = case.nodeid.partition("::")
        key = (file, case.path)
        head, path = self._heads.get(key) or _remembered(self._heads, key, self._head(*key))
        if "[" in file and file not in self._files:  # the `::` is part of the parameters, and there is no path
            return _visible(case.nodeid), path
        if case.trouble is Trouble.COLLECTION:
            return head, path
        return head + separator + (rest if rest.isprintable() else _visible(rest)), path

    def _unusual(self, case: Case) -> tuple[str, str]:
        """Return the ID and the path of a case without a classname, or of one that stands for a whole file."""
        if case.trouble is Trouble.COLLECTION and case.path:
            return self._head(case.path)
        dotted = case.classname or case.name
        if case.trouble is Trouble.COLLECTION or ("." in dotted and not case.path):
            file, classes = self._module(dotted)
            if file and (not classes or case.trouble is Trouble.COLLECTION):
                return _visible(file), self._files[file]
        own_file = self._file(case.path)
        return (f"{_visible(own_file)}::" if own_file else "") + _visible(dotted), self._files.get(own_file, "")

    def _head(self, path: str, failure_path: str = "") -> tuple[str, str]:
        """Return a path as the beginning of IDs, and the repository's file of `failure_path`, else that of `path`."""
        file = self._file(path)
        return _visible(file or _canonical(path)), self._files.get(self._file(failure_path) or file, "")

    def _file(self, path: str) -> str:
        """Return the file of the repository that a lab's path names, in NFC, or ""."""
        if not path or not self._files:
            return ""
        path = _canonical(path)
        return path if path in self._files else self._ending(path.split("/", MAX_PARTS))[1]

    def _module(self, dotted: str) -> tuple[str, list[str]]:
        """Return the Python file that a dotted name begins with, and the classes that follow, or ("", [])."""
        parts = normalized("NFC", dotted).split(".", MAX_PARTS)
        if not self._files or len(parts) > MAX_PARTS:
            return "", []
        ends = [end for end in range(len(parts), 0, -1) if parts[end - 1] in self._modules]
        for end in ends:
            if (module_file := "/".join(parts[:end]) + ".py") in self._files:
                return module_file, parts[end:]
        endings = ((*self._ending([*parts[: end - 1], parts[end - 1] + ".py"]), end) for end in ends)
        _, file, end = max(endings, key=itemgetter(0), default=(0, "", 0))
        return (file, parts[end:]) if file else ("", [])

    def _ending(self, parts: Sequence[str]) -> tuple[int, str]:
        """Return the length of the longest end of a path that a file has, and this file; "" if several have it."""
        length, path = self._paths.ending(parts)
        if path is None or "test" not in "/".join(parts[-length:]).lower():
            return length, ""
        return length, "/".join(path)


def _remembered(places: dict[Key, Place], key: Key, place: Place) -> Place:
    """Cache a place for the next test, unless there are too many, or the place is too long."""
    if len(places) < MAX_REMEMBERED and len(place[0]) <= MAX_NAME:
        places[key] = place
    return place


def _common_end(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for left_part, right_part in zip(reversed(left), reversed(right)):
        if left_part != right_part:
            break
        count += 1
    return count


def _after(dotted: Sequence[str], module: Sequence[str]) -> Sequence[str] | None:
    """Return the parts after a module in a dotted name; None if the name does not contain the module."""
    ends = [index + 1 for index, part in enumerate(dotted) if part == module[-1]]
    if not ends or len(dotted) > MAX_PARTS:
        return None
    return dotted[max(ends, key=lambda end: _common_end(dotted[:end], module)) :]


def _canonical(path: str) -> str:
    """Return a lab's path in NFC with slashes, without `.`, leading `..`, and `folder/..`."""
    path = posixpath.normpath(normalized("NFC", path.removeprefix("file://")).replace("\\", "/"))
    climbs = 0
    while path.startswith("../", climbs):
        climbs += 3
    return path[climbs:]


def _unplaced(path: str) -> str:
    """Return a path that is not in the repository without the folders of the lab's machine."""
    return posixpath.basename(_canonical(path)) if is_absolute(path) else _canonical(path)


def _visible(name: str) -> str:
    """Escape unprintable characters as Python's `repr` does. Backslashes stay: pytest's own IDs have such escapes."""
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)


def is_shortened(test: str) -> bool:
    """Say whether an ID was shortened, so that no test has it as its name."""
    begin, end = MAX_NAME - SHORTENED_TAIL - HASH_DIGITS - 2, MAX_NAME - SHORTENED_TAIL - 1
    return len(test) == MAX_NAME and test[begin] == test[end] == "…"


def _shortened(test: str) -> str:
    """Replace the middle of a long ID by a hash of the whole ID, which is the same in every run."""
    mark = f"…{hashlib.sha256(test.encode('utf-8', 'surrogatepass')).hexdigest()[:HASH_DIGITS]}…"
    return test[: MAX_NAME - len(mark) - SHORTENED_TAIL] + mark + test[-SHORTENED_TAIL:]
