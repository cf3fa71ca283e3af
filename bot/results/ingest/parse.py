"""Read the files of a run, in a separate process (`bot.core.untrusted`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from nightjar_formats import readers
from nightjar_formats.columns.collect import Columns, collect, merge
from nightjar_formats.readers.repairs import Repairs
from nightjar_formats.refused import Refused
from nightjar_formats.runs.identity import Resolver

from bot.results.ingest import texts

NamedFile = tuple[str, str | None]
"""A file's name, and its format or None if the manifest names none."""


class ParsedRun(NamedTuple):
    """The tests of a run's files, and the text for the lab about repairs in them, or ""."""

    columns: Columns
    repaired: str


def parse_run(files: Sequence[BinaryIO], names: Sequence[NamedFile], listed: frozenset[str]) -> ParsedRun:
    """Return the tests of a run's files; `listed` are the files of the repository at the commit. Raises `Refused`."""
    repairs = [Repairs() for _ in names]
    columns = merge(_each_parsed(files, names, repairs, listed))
    return ParsedRun(columns, texts.repaired([name for name, _ in names], repairs))


def _each_parsed(
    files: Sequence[BinaryIO], names: Sequence[NamedFile], repairs: Sequence[Repairs], listed: frozenset[str]
) -> Iterator[Columns]:
    resolver = Resolver(listed)
    for file, (name, format_), repaired in zip(files, names, repairs, strict=True):
        try:
            yield collect(readers.read_runs(file, name, format_, repaired), resolver.resolve, resolver.head_of)
        except Refused as error:
            reason = str(error)
            raise Refused(reason if name in reason else texts.FILE_UNREADABLE.format(name=name, why=reason)) from error
