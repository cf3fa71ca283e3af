r"""Find the owners of a file by a repository's CODEOWNERS, as GitHub reads it. Pure, and linear in file and path.

    # The last line that matches counts.
    *                @octocat
    /tests/python/   @octo-org/compiler-team   # everything below this folder
    docs/*           hubot@example.org         # only files that are directly in the folder
    *.md                                       # nobody

The rules are https://docs.github.com/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners:
those of .gitignore, without `!`, `[…]` and `\#`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from bot.core.patterns import Pattern, escape_pattern

PATHS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
"""Where GitHub looks for the file; the first one counts."""
MOST_BYTES = 3_000_000
"""GitHub does not read a larger file."""
MOST_WILDCARDS = 500
"""Lines with wildcards in the middle that count, from the end of the file: each is tried alone, all others together."""
MOST_OWNERS = 10
"""The most owners of a line that count."""
LONGEST_OWNER = 200
CACHED_PATHS = 10_000
_UNSUPPORTED = frozenset("![]\\")
_WILD = frozenset("*?")
_OWNER = Pattern(r"@?[A-Za-z0-9][A-Za-z0-9._+/@-]*")

Rule = tuple[int, tuple[str, ...]]
"""The place of a line, and its owners."""
NO_RULE: Rule = (-1, ())


class CodeOwners:
    """The rules of one file, sorted into tables, so that a look-up does not walk through thousands of lines."""

    def __init__(self, text: str) -> None:
        self._everything = NO_RULE
        self._paths: dict[str, Rule] = {}
        """`/src/a` and `src/a`: a file, or all below a folder."""
        self._folders: dict[str, Rule] = {}
        """`/src/a/`: all below a folder."""
        self._children: dict[str, Rule] = {}
        """`src/a/*`: only what is directly in a folder."""
        self._names: dict[str, Rule] = {}
        """`a`: a file or folder of this name anywhere."""
        self._folder_names: dict[str, Rule] = {}
        """`a/`: a folder of this name anywhere."""
        self._endings: dict[str, Rule] = {}
        """`*.py`: names that end so, anywhere."""
        wildcards: list[tuple[str, Rule]] = []
        for place, line in enumerate(text.splitlines()):
            pattern, *owners = line.partition("#")[0].split() or [""]
            if pattern and _UNSUPPORTED.isdisjoint(pattern):
                rule = place, tuple(filter(_is_owner, owners))[:MOST_OWNERS]
                if owners and not rule[1]:
                    continue  # GitHub skips a line with invalid owners
                self._add(pattern, rule, wildcards)
        newest = wildcards[-MOST_WILDCARDS:]
        self._wildcards = [(Pattern(_expression(pattern)), rule) for pattern, rule in reversed(newest)]
        self.owners = lru_cache(CACHED_PATHS)(self._owners)

    def _add(self, pattern: str, rule: Rule, wildcards: list[tuple[str, Rule]]) -> None:
        whole = pattern.removeprefix("**/")
        is_anchored = "/" in whole.rstrip("/") and whole == pattern
        path, is_folder = whole.strip("/"), whole.endswith("/")
        if path in ("*", "**", ""):
            if whole.startswith("/") and path == "*":
                self._children[""] = rule
            else:
                self._everything = rule
        elif _WILD.isdisjoint(path):
            if "/" in path and not is_anchored:
                wildcards.append((pattern, rule))
            elif is_anchored:
                (self._folders if is_folder else self._paths)[path] = rule
            else:
                (self._folder_names if is_folder else self._names)[path] = rule
        elif is_anchored and path.endswith("/**") and _WILD.isdisjoint(path[:-3]):
            self._folders[path[:-3]] = rule
        elif is_anchored and not is_folder and path.endswith("/*") and _WILD.isdisjoint(path[:-2]):
            self._children[path[:-2]] = rule
        elif "/" not in whole and path.startswith("*.") and _WILD.isdisjoint(path[2:]):
            self._endings[path[1:]] = rule
        else:
            wildcards.append((pattern, rule))

    def _owners(self, path: str) -> tuple[str, ...]:
        """Return the owners of a file, as GitHub names them: none if nobody is named."""
        best = max(self._matches(path.strip("/")), default=NO_RULE)
        for pattern, rule in self._wildcards:
            if rule <= best:
                break
            if pattern.fullmatch(path.strip("/")):
                best = rule
                break
        return best[1]

    def _matches(self, path: str) -> Iterator[Rule]:
        """Yield the rules of the tables that match a path."""
        yield self._everything
        parts = path.split("/")
        above = ""
        for number, part in enumerate(parts):
            below = f"{above}/{part}" if above else part
            is_last = number == len(parts) - 1
            tables = [(self._paths, below), (self._names, part)]
            tables += [] if is_last else [(self._folders, below), (self._folder_names, part)]
            # `docs/*` owns files that are directly in the folder, and nothing deeper.
            tables += [(self._children, above)] if is_last else []
            for table, key in tables:
                if rule := table.get(key):
                    yield rule
            start = part.find(".")
            while start >= 0:
                if rule := self._endings.get(part[start:]):
                    yield rule
                start = part.find(".", start + 1)
            above = below


def _is_owner(text: str) -> bool:
    return len(text) <= LONGEST_OWNER and "@" in text and _OWNER.fullmatch(text) is not None


def _expression(pattern: str) -> str:
    """Return a pattern with wildcards as a regular expression over whole paths."""
    anchored = "/" in pattern.rstrip("/")
    body, is_folder = pattern.strip("/"), pattern.endswith("/")
    expression, position = "" if anchored else "(?:.*/)?", 0
    while position < len(body):
        rest = body[position:]
        if rest.startswith("**/"):
            expression, position = f"{expression}(?:.*/)?", position + 3
        elif rest == "**":
            expression, position = f"{expression}.*", position + 2
        else:
            one = {"*": "[^/]*", "?": "[^/]"}.get(rest[0], "")
            expression, position = expression + (one or escape_pattern(rest[0])), position + 1
    # A pattern that ends with a star alone does not reach into folders; every other one owns what is below.
    below = "/.*" if is_folder else "" if body.endswith("/*") else "(?:/.*)?"
    return expression + below
