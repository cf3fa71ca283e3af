"""Errors of a configuration file as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ConfigFault:
    """One error with its place in the file; line and column count from 1."""

    file: str
    line: int
    column: int
    key: str
    """The key as a path, such as `repositories.octocat/compiler.slow_tests.branches[0]`; empty for the whole file."""
    message: str
    """What is wrong, and what is allowed."""

    def __str__(self) -> str:
        """Render as `file:line:column: key: message`, the form editors and CI systems can jump to."""
        place = f"{self.file}:{self.line}:{self.column}"
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"

    def as_json(self) -> dict[str, str | int]:
        """Return the error as JSON values."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "key": self.key,
            "message": self.message,
        }


class ConfigError(Exception):
    """A configuration file that cannot be used, with all of its errors in the order of the file."""

    def __init__(self, faults: Iterable[ConfigFault]) -> None:
        self.faults = tuple(dict.fromkeys(sorted(faults)))
        super().__init__("\n".join(map(str, self.faults)))
