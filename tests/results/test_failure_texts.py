"""The texts of failures are stored once each, in packs, and each test keeps its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pytest
import sqlalchemy as sa
from nightjar_formats.columns.collect import Columns, collect, merge
from nightjar_formats.columns.text_packs import PACK_BYTES, unpacked
from nightjar_formats.model import Case, Status

from bot.results.store.tables import failure_texts, schema
from bot.results.store.tables.database import ResultsDatabase
from bot.results.store.tables.failure_texts import TextReader
from tests.results.uploads import resolve


@pytest.fixture
def database(url_with_tables: str) -> Iterator[ResultsDatabase]:
    """Return a database with the tables of results, on each database in turn."""
    opened = ResultsDatabase(url_with_tables)
    opened.open()
    yield opened
    opened.close()


def failed(texts: Iterable[str]) -> Columns:
    cases = (Case(f"{number}", Status.FAILED, nodeid=text[:9], text=text) for number, text in enumerate(texts))
    return collect(cases, resolve)


def saved(database: ResultsDatabase, *runs: Columns) -> None:
    """Store the texts of simultaneous runs, and check that each is read as its test had it."""
    with database.reading() as connection:
        prepared = [failure_texts.prepare(connection, columns) for columns in runs]
    for columns, texts in zip(runs, prepared, strict=True):
        with database.writing() as connection:
            numbers = failure_texts.save(connection, texts, columns)
        assert read(database, columns, numbers) == of(columns)


def read(database: ResultsDatabase, columns: Columns, numbers: Mapping[int, int]) -> dict[int, str]:
    reader, reasons = TextReader(database.reading), list(columns.whys)
    return {key: reader.text(numbers[reasons[reason].text]) for key, reason in columns.reasons.items()}


def of(columns: Columns) -> dict[int, str]:
    texts, reasons = [text for pack in columns.packs for text in unpacked(pack.blob)], list(columns.whys)
    return {key: texts[reasons[reason].text - 1].decode() for key, reason in columns.reasons.items()}


def stored(database: ResultsDatabase) -> list[str]:
    with database.reading() as connection:
        blobs = connection.execute(sa.select(schema.texts.c.texts).order_by(schema.texts.c.id)).scalars()
        return [text.decode() for blob in blobs for text in unpacked(blob)]


def test_a_text_of_an_earlier_run_is_not_stored_again(database: ResultsDatabase) -> None:
    for texts in ("ab", "bc", "abc", "c"):
        saved(database, failed(texts))
    assert stored(database) == ["a", "b", "c"]


def test_a_text_that_two_files_of_a_run_share_is_stored_once(database: ResultsDatabase) -> None:
    saved(database, merge([failed("ab"), failed("bc"), failed("da")]))
    assert stored(database) == ["a", "b", "c", "d"]


def test_simultaneous_runs_keep_their_own_texts(database: ResultsDatabase) -> None:
    saved(database, failed("ab"), failed("xbc"), failed("c"))
    assert stored(database) == ["a", "b", "x", "c"]


def test_long_texts_fill_several_packs_and_one_of_them_is_read_for_a_test(database: ResultsDatabase) -> None:
    long = [f"{number:9}" + f"{number} " * 3_000 for number in range(30)]
    columns = failed(long)
    assert len(columns.packs) > sum(map(len, long)) // (2 * PACK_BYTES)
    saved(database, failed([long[3], long[29], "short"]))
    saved(database, columns)
    assert sorted(stored(database)) == sorted([*long, "short"])
