"""SQL that is written once means the same on both databases."""

import datetime
import sqlite3
from typing import LiteralString

import psycopg
import pytest

from bot.engine.database import Database
from bot.engine.sql.errors import DatabaseFailure, DuplicateKey
from bot.engine.sql.portable import stored, translate
from bot.engine.sql.queueing_lock import DuplicateJob
from bot.engine.sql.transactions import Steps


@pytest.mark.parametrize(
    ("written", "sqlite"),
    [
        ("SELECT %(a)s", "SELECT :a"),
        ("SELECT '50%%'", "SELECT '50%'"),
        ("SELECT 7 %% 4", "SELECT 7 % 4"),
        ("SELECT %(a)s::text, '::text'", "SELECT :a, '::text'"),
        ("SELECT %(a)s::double precision", "SELECT :a"),
        ("SELECT 'it''s %%' || %(a)s", "SELECT 'it''s %' || :a"),
        ("x = ANY(%(ids)s)", "x IN (SELECT value FROM json_each(:ids))"),
        ("x = any( %(ids)s::text[] )", "x IN (SELECT value FROM json_each(:ids))"),
        ('SELECT "a::b"', 'SELECT "a::b"'),
        ("SELECT 1 -- 100% of %(a)s\n, 2", "SELECT 1 \n, 2"),
    ],
)
def test_translation(written: str, sqlite: str) -> None:
    assert translate(written) == sqlite


def test_a_parameter_is_converted_for_sqlite_or_refused() -> None:
    moment = datetime.datetime.fromtimestamp(90, datetime.UTC)
    values: list[object] = [moment, {"a": [1]}, ("a",), None, 7, 0.5, b"x", "text"]
    assert [stored(value) for value in values] == [90.0, '{"a":[1]}', '["a"]', None, 7, 0.5, b"x", "text"]
    with pytest.raises(TypeError, match="a parameter of SQL cannot be a set"):
        stored({1})


@pytest.mark.parametrize("wrong", ["SELECT 7 % 4", "SELECT %s", "SELECT '%(a)s'"])
def test_sql_with_a_different_meaning_on_the_two_databases_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"%|quotes"):
        translate(wrong)


async def test_insert_select_update_and_delete(database: Database) -> None:
    run = database.connector.execute_query_all_async
    put = (
        "INSERT INTO nightjar_records (key, value, version, at) VALUES (%(key)s, %(value)s, 1, %(at)s)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value RETURNING key, value, at"
    )
    assert await run(put, key="a", value="1", at=1.5) == [{"key": "a", "value": "1", "at": 1.5}]
    assert await run(put, key="a", value="2", at=9.0) == [{"key": "a", "value": "2", "at": 1.5}]
    await database.connector.execute_query_async(put, key="b%", value="3", at=2.5)
    assert await run("SELECT key FROM nightjar_records WHERE key LIKE 'b%%'") == [{"key": "b%"}]
    assert await run("SELECT key FROM nightjar_records WHERE key = ANY(%(k)s) ORDER BY key", k=["a", "x"]) == [
        {"key": "a"}
    ]
    assert await run("SELECT key FROM nightjar_records WHERE key = ANY(%(k)s)", k=[]) == []
    assert await run("UPDATE nightjar_records SET value = 'x' WHERE at > %(at)s RETURNING key", at=2) == [{"key": "b%"}]
    assert await run("SELECT key FROM nightjar_records WHERE CAST(%(v)s AS text) IS NULL OR value = %(v)s", v="x") == [
        {"key": "b%"}
    ]
    assert await run("DELETE FROM nightjar_records RETURNING key, date_part('epoch', to_timestamp(at)) AS at") in (
        [{"key": "a", "at": 1.5}, {"key": "b%", "at": 2.5}],
        [{"key": "b%", "at": 2.5}, {"key": "a", "at": 1.5}],
    )


async def test_rows_of_a_statement_without_a_result_are_an_error(database: Database) -> None:
    with pytest.raises(DatabaseFailure):
        await database.connector.execute_query_all_async("DELETE FROM nightjar_records")


async def test_both_databases_fail_with_errors_of_ours(database: Database) -> None:
    record = "INSERT INTO nightjar_records (key, value, version, at) VALUES ('a', '', 1, 0)"
    job = "INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock) VALUES ('q', 't', 'once:a')"

    def steps(statement: LiteralString) -> Steps[None]:
        yield statement, {}

    errors: list[type[Exception]] = []
    for statement in (record, job):
        await database.connector.execute_query_async(statement)
        for repeat in (
            lambda repeated=statement: database.connector.execute_query_async(repeated),
            lambda repeated=statement: database.connector.execute_query_all_async(f"{repeated} RETURNING 1 AS done"),
            lambda repeated=statement: database.connector.transact(lambda: steps(repeated)),
        ):
            with pytest.raises(DuplicateKey) as duplicate:
                await repeat()
            errors.append(duplicate.type)
    assert errors == [DuplicateKey] * 3 + [DuplicateJob] * 3
    for wrong in ("SELECT nothing", "INSERT INTO nightjar_records (key) VALUES (NULL)"):
        with pytest.raises(DatabaseFailure) as refused:
            await database.connector.execute_query_async(wrong)
        assert refused.type is DatabaseFailure
        assert isinstance(refused.value.__cause__, sqlite3.Error | psycopg.Error)


async def test_the_columns_of_a_job_have_the_same_types_on_both(database: Database) -> None:
    starts_at = datetime.datetime(2026, 11, 20, 21, 0, 0, 250_000, tzinfo=datetime.UTC)
    run = database.connector.execute_query_all_async
    (inserted,) = await run(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args, scheduled_at)"
        " VALUES ('q', 't', %(args)s, %(starts_at)s) RETURNING id, args, scheduled_at, abort_requested",
        args={"guid": "42", "n": [1, None]},
        starts_at=starts_at,
    )
    expected = {"id": inserted["id"], "args": {"guid": "42", "n": [1, None]}, "scheduled_at": starts_at}
    assert inserted == expected | {"abort_requested": False}
    assert inserted["abort_requested"] is False  # not 0
    (read,) = await run(
        "SELECT id, args->>'guid' AS guid, date_part('epoch', scheduled_at) AS starts_at,"
        " date_part('epoch', now()) > 1700000000 AS after FROM procrastinate_jobs"
    )
    assert (read["guid"], read["starts_at"], bool(read["after"])) == ("42", starts_at.timestamp(), True)


async def test_any_text_is_stored_unchanged(database: Database) -> None:
    run = database.connector.execute_query_all_async
    for key in ("nul \x00", "lone \ud800", "noncharacter \ufdd0", "emoji \U0001f600", "\\u0000"):
        await database.connector.execute_query_async(
            "INSERT INTO nightjar_records (key, value, version, at) VALUES (%(key)s, %(key)s, 1, 0)", key=key
        )
        assert await run("SELECT key, value FROM nightjar_records WHERE key = %(key)s", key=key) == [
            {"key": key, "value": key}
        ]
        assert await run(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args)"
            " VALUES ('q', 't', %(key)s, %(args)s) RETURNING lock, args",
            key=key,
            args={key: [key]},
        ) == [{"lock": key, "args": {key: [key]}}]
