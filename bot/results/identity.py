r"""Which test a case is, whatever the lab's root folder, prefix or format, and which tests were renamed: no I/O.

The ID is `path::Class::name[params]`, as pytest's node IDs are, with the path as it is in the repository at that
commit. Characters of a name that cannot be printed (control characters, line breaks, bidirectional marks, odd spaces)
are written as Python's `repr` writes them: `\n`, `\x1b`, `\u202e`. Paths are taken in Unicode's form NFC, for file
systems change the form of what they keep; names come from the source, the same everywhere, and keep theirs. An ID
longer than MAX_NAME is shortened to its beginning, 16 digits of its SHA-256 and its end.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from unicodedata import normalize

from bot.patterns import LETTER_OR_DIGIT, Pattern
from bot.results.limits import MAX_NAME
from bot.results.model import Case, Trouble

MAX_PARTS = 64
"""Components of a dotted name or a path; what has more is not looked for in the repository."""
SHORTENED_TAIL = 240
"""Characters kept of the end of an ID that is too long."""
HASH_DIGITS = 16
RENAMED_TOGETHER = 10
"""So many tests must have been renamed by one rule, or it may be chance."""
RENAMED_SHARE = 0.8
"""So much of what a rule could concern must have been renamed by it."""
MAX_REWORDED = 5_000
"""Tests whose names are compared word by word; beyond that only moves are looked for."""
MAX_WORDS = 40
"""Words of a name that is compared word by word."""
CONTEXT = 4
"""Components next to the test's name by which a moved test may be told from others of its name."""

WORD = Pattern(f"[{LETTER_OR_DIGIT}]+")

Location = tuple[str, ...]


class Resolver:
    """Give each case its test ID, by the list of the repository's files at the commit (None: the list is unknown).

    A dotted name (JUnit's `classname`) is read as Codecov's compute_name does: components are dropped from the right
    until the rest is a file; the dropped ones are classes. Where that finds nothing, the lab has another root folder or
    a prefix, and the longest end of the name decides that only one file has. Such a match must hold the word "test", or
    a Java package would become the Python module of the same name.
    """

    def __init__(self, files: Iterable[str] | None) -> None:
        self._files = {normalize("NFC", file): file for file in files or ()}
        self._by_name: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for file in self._files:
            parts = tuple(file.split("/"))
            self._by_name[parts[-1]].append(parts)
        self._classes: dict[str, tuple[str, str]] = {}
        self._placed: dict[tuple[str, str], tuple[str, str]] = {}
        self._heads: dict[tuple[str, str], tuple[str, str]] = {}

    def resolve(self, case: Case) -> tuple[str, str]:
        """Return a case's test ID, and the path in the repository that its line belongs to, or "".

        The ID of a file that could not be collected, or was skipped as a whole, is its path alone. Where nothing
        matches, the ID is what the case says: `classname::name`.
        """
        name = case.name
        classname = case.classname
        if case.nodeid:
            test, path = self._noded(case)
        elif not classname or case.trouble is Trouble.COLLECTION:
            test, path = self._unusual(case)
        elif case.path:
            key = (classname, case.path)
            head, path = self._placed.get(key) or self._placed.setdefault(key, self._place(*key))
            test = head + (name if name.isprintable() else _visible(name))
        else:
            head, path = self._classes.get(classname) or self._classes.setdefault(classname, self._class(classname))
            test = head + (name if name.isprintable() else _visible(name))
        if len(test) > MAX_NAME:
            test = _shortened(test)
        return test, path

    def _class(self, classname: str) -> tuple[str, str]:
        """Return what stands before the test's own name in its ID, and the path."""
        file, classes = self._module(classname)
        if not file:
            return _visible(classname) + "::", ""
        return "".join(_visible(part) + "::" for part in (file, *classes)), self._files[file]

    def _place(self, classname: str, path: str) -> tuple[str, str]:
        """Do the same for a case that has a path too.

        The classname goes first: pytest's `file` is where the function was written, which for an inherited test is
        another file than the one that it was collected from. But the path is the one that the line belongs to.
        """
        file = self._file(path)
        head, found = self._class(classname)
        if not found and path.endswith(".py"):
            classes = _after(classname.split("."), _spelled(path).removesuffix(".py").split("/"))
            if classes is not None:
                head = "".join(_visible(part) + "::" for part in (file or _spelled(path), *classes))
        elif not found and file:
            head = _visible(file) + "::" + head
        return head, self._files.get(file, found)

    def _noded(self, case: Case) -> tuple[str, str]:
        """Return ID and path of a case that has pytest's node ID."""
        file, separator, rest = case.nodeid.partition("::")
        key = (file, case.path)
        head, path = self._heads.get(key) or self._heads.setdefault(key, self._head(*key))
        if "[" in file and file not in self._files:  # the `::` stands in the parameters, and there is no path
            return _visible(case.nodeid), path
        if case.trouble is Trouble.COLLECTION:
            return head, path
        return head + separator + (rest if rest.isprintable() else _visible(rest)), path

    def _unusual(self, case: Case) -> tuple[str, str]:
        """Return ID and path of a case that has no classname, or stands for a whole file."""
        if case.trouble is Trouble.COLLECTION and case.path:
            return self._head(case.path)
        dotted = case.classname or case.name
        if case.trouble is Trouble.COLLECTION or ("." in dotted and not case.path):
            file, classes = self._module(dotted)
            if file and (not classes or case.trouble is Trouble.COLLECTION):
                return _visible(file), self._files[file]
        where = self._file(case.path)
        return (f"{_visible(where)}::" if where else "") + _visible(dotted), self._files.get(where, "")

    def _head(self, path: str, other: str = "") -> tuple[str, str]:
        """Return a path as IDs begin with it, and the file that lines belong to, of which a case may have another."""
        file = self._file(path)
        return _visible(file or _spelled(path)), self._files.get(self._file(other) or file, "")

    def _file(self, path: str) -> str:
        """Return the file of the repository that a lab's path names, in NFC, or ""."""
        if not path or not self._files:
            return ""
        path = _spelled(path)
        return path if path in self._files else self._ending(path.split("/"))[1]

    def _module(self, dotted: str) -> tuple[str, list[str]]:
        """Return the Python file that a dotted name begins with, and the classes that follow, or ("", [])."""
        parts = normalize("NFC", dotted).split(".")
        if not self._files or len(parts) > MAX_PARTS:
            return "", []
        paths = [[*parts[: end - 1], parts[end - 1] + ".py"] for end in range(len(parts), 0, -1)]
        for path in paths:
            if (whole := "/".join(path)) in self._files:
                return whole, parts[len(path) :]
        _, file, path = max(((*self._ending(path), path) for path in paths), key=itemgetter(0))
        return (file, parts[len(path) :]) if file else ("", [])

    def _ending(self, parts: Sequence[str]) -> tuple[int, str]:
        """Return how long an end of this path the repository's files have, and the one that has it, "" if several do.

        Of two with equally long ends, one that is itself all of that end wins: only the prefix is foreign then.
        """
        candidates = self._by_name.get(parts[-1])
        if not candidates or len(parts) > MAX_PARTS:
            return 0, ""
        shared = [_common_end(candidate, parts) for candidate in candidates]
        longest = max(shared)
        best = [file for file, length in zip(candidates, shared, strict=True) if length == longest]
        best = [file for file in best if len(file) == longest] or best
        if len(best) > 1 or "test" not in "/".join(parts[-longest:]).lower():
            return longest, ""
        return longest, "/".join(best[0])


def _common_end(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        count += 1
    return count


def _after(dotted: Sequence[str], module: Sequence[str]) -> Sequence[str] | None:
    """Return what follows a module in a dotted name, wherever in it the module stands, or None if it is not there."""
    ends = [index + 1 for index, part in enumerate(dotted) if part == module[-1]]
    if not ends:
        return None
    return dotted[max(ends, key=lambda end: _common_end(dotted[:end], module)) :]


def _spelled(path: str) -> str:
    """Return a lab's path with slashes, without `.` and `..` where that can be, in NFC."""
    path = posixpath.normpath(normalize("NFC", path).replace("\\", "/"))
    while path.startswith("../"):
        path = path[3:]
    return path


def _visible(name: str) -> str:
    """Write what cannot be printed as Python's `repr` does. Backslashes stay: pytest's own IDs have such escapes."""
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)


def is_shortened(test: str) -> bool:
    """Tell whether an ID stands for one that is too long: no test is called so."""
    begin, end = MAX_NAME - SHORTENED_TAIL - HASH_DIGITS - 2, MAX_NAME - SHORTENED_TAIL - 1
    return len(test) == MAX_NAME and test[begin] == test[end] == "…"


def _shortened(test: str) -> str:
    """Return an ID that is too long with a hash of all of it in place of its middle, the same in every run."""
    mark = f"…{hashlib.sha256(test.encode('utf-8', 'surrogatepass')).hexdigest()[:HASH_DIGITS]}…"
    return test[: MAX_NAME - len(mark) - SHORTENED_TAIL] + mark + test[-SHORTENED_TAIL:]


def renames(gone: Iterable[str], new: Iterable[str]) -> dict[str, str]:
    """Pair tests that vanished with those that appeared, where one rule renamed many at once: old ID to new ID.

    Two kinds of rule are known. A move: the beginning of the location (folders, file, classes) is another, and the rest
    and the test's own name are the same. A rewording: the location is the same, and one word of the name or of its
    parameters was replaced, added or removed; a number for a number is another value, not another name. A rule counts
    if it pairs RENAMED_TOGETHER tests and RENAMED_SHARE of what it could concern, and a pair counts if no other rule
    has another partner for one of the two.
    """
    old = {test: _split(test) for test in sorted(set(gone).difference(new))}
    fresh = {test: _split(test) for test in sorted(set(new).difference(old))}
    if min(len(old), len(fresh)) < RENAMED_TOGETHER:
        return {}
    moved = _moved(old, fresh)
    taken = set(moved.values())
    old = {test: split for test, split in old.items() if test not in moved}
    fresh = {test: split for test, split in fresh.items() if test not in taken}
    return dict(sorted({**moved, **_reworded(old, fresh)}.items()))


def _split(test: str) -> tuple[Location, str]:
    """Return the components of a test's location, a file's `.py` taken off, and its own name with the parameters.

    A dotted location has the same components as the path it stands for, so that a file list that was not known one day
    is one more move.
    """
    bracket = test.find("[")
    cut = test.rfind("::", 0, bracket if bracket >= 0 else len(test))
    location, name = (test[:cut], test[cut + 2 :]) if cut >= 0 else (test, "")
    file, *classes = location.split("::")
    parts = file.removesuffix(".py").split("/") if "/" in file or file.endswith(".py") else file.split(".")
    return (*parts, *classes), name


def _moved(old: Mapping[str, tuple[Location, str]], fresh: Mapping[str, tuple[Location, str]]) -> dict[str, str]:
    rules = [move for move, votes in _moves(old, fresh).items() if votes >= RENAMED_TOGETHER]
    begins = {before for before, _ in rules}
    below: dict[Location, list[tuple[str, Location, str]]] = defaultdict(list)
    for test, (location, name) in old.items():
        for end in range(min(len(location), MAX_PARTS) + 1):
            if location[:end] in begins:
                below[location[:end]].append((test, location[end:], name))
    named = {split: test for test, split in fresh.items()}
    pairs = []
    for before, after in rules:
        concerned = below[before]
        made = [(test, named[key]) for test, rest, name in concerned if (key := ((*after, *rest), name)) in named]
        if len(made) >= max(RENAMED_TOGETHER, RENAMED_SHARE * len(concerned)):
            pairs += made
    return _one_to_one(pairs)


def _moves(
    old: Mapping[str, tuple[Location, str]], fresh: Mapping[str, tuple[Location, str]]
) -> Counter[tuple[Location, Location]]:
    """Count the moves that tests tell of which can be recognised by their name and, at need, what stands before it."""
    moves: Counter[tuple[Location, Location]] = Counter()
    left, right = dict(old), dict(fresh)
    for context in range(CONTEXT, -1, -1):
        known, others = (_alone(side, context) for side in (left, right))
        for key in known.keys() & others.keys():
            before, after = left.pop(known[key])[0], right.pop(others[key])[0]
            moves[before, after] += 1
            if common := _common_end(before, after):
                moves[before[:-common], after[:-common]] += 1
    return moves


def _alone(tests: Mapping[str, tuple[Location, str]], context: int) -> dict[tuple[Location, str], str]:
    """Return the tests that are alone in having their name after the last `context` components of their location."""
    found: dict[tuple[Location, str], str] = {}
    for test, (location, name) in tests.items():
        key = location[-context:] if context else (), name
        found[key] = "" if key in found else test
    return {key: test for key, test in found.items() if test}


def _reworded(old: Mapping[str, tuple[Location, str]], fresh: Mapping[str, tuple[Location, str]]) -> dict[str, str]:
    if not RENAMED_TOGETHER <= min(len(old), len(fresh)) <= max(len(old), len(fresh)) <= MAX_REWORDED:
        return {}
    rules: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    before, after = _blanked(old), _blanked(fresh)
    for key in before.keys() & after.keys():
        (one, *twins), (other, *others) = before[key], after[key]
        word, instead = one[1], other[1]
        if not (twins or others or (word.isdecimal() and instead.isdecimal())):
            rules[word, instead].add((one[0], other[0]))
    pairs: list[tuple[str, str]] = []
    for (word, _), made in rules.items():
        places = {old[test][0] for test, _ in made}
        could = [name for place, name in old.values() if place in places and (not word or word in WORD.findall(name))]
        if len(made) >= max(RENAMED_TOGETHER, RENAMED_SHARE * len(could)):
            pairs += made
    return _one_to_one(pairs)


def _blanked(tests: Mapping[str, tuple[Location, str]]) -> dict[tuple[Location, str], list[tuple[str, str]]]:
    """Return tests and one word of each by what the name is without it: blanked, taken out, and no word at all."""
    found: dict[tuple[Location, str], list[tuple[str, str]]] = defaultdict(list)
    for test, (location, name) in tests.items():
        words = list(WORD.finditer(name))
        if not name or len(words) > MAX_WORDS:
            continue
        found[location, name].append((test, ""))
        for word in words:
            start, end = word.start(), word.end()
            found[location, f"{name[:start]}\0{name[end:]}"].append((test, word[0]))
            found[location, _without(name, start, end)].append((test, word[0]))
    return found


def _without(name: str, start: int, end: int) -> str:
    """Take a word out of a name, with the brackets that it alone stood in, or with one sign that parted it."""
    before, after = name[:start], name[end:]
    if before.endswith("[") and after.startswith("]"):
        return before[:-1] + after[1:]
    if before and not before.endswith("["):
        return before[:-1] + after
    return before + after[1:]


def _one_to_one(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Keep the pairs both of whose tests are in no other pair."""
    told = set(pairs)
    olds, news = Counter(old for old, _ in told), Counter(new for _, new in told)
    return {old: new for old, new in told if olds[old] == 1 and news[new] == 1}
