"""Transactions that are written once and run on both databases.

A transaction is a generator: it yields statements of `bot.engine.sql.portable` with their values, receives the rows of
each, and returns its result. An exception that it raises rolls everything back. SQLite's writer runs it in its thread,
in the commit that it shares with others; PostgreSQL runs it on one connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, LiteralString, Protocol, TypeVar, cast

from bot.engine.sql.portable import Row

Result = TypeVar("Result")
Statement = tuple[LiteralString, Mapping[str, object]]
Steps = Generator[Statement, list[Row], Result]


class Connector(Protocol):
    """A database that runs statements of `bot.engine.sql.portable`. All methods raise DatabaseFailure."""

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        """Run a statement for its effect."""
        ...

    async def execute_query_all_async(self, query: LiteralString, **arguments: Any) -> list[dict[str, Any]]:
        """Run a statement and return its rows."""
        ...

    async def transact(self, begin: Callable[[], Steps[Result]]) -> Result:
        """Run the transaction that `begin` returns and commit it; it may be begun several times.

        Raises the error of the transaction, after a rollback.
        """
        ...


async def run_separately(connector: Connector, steps: Steps[Result]) -> Result:
    """Run each statement in a transaction of its own, for steps that are right between any two of them."""
    return await run_steps(steps, lambda query, values: connector.execute_query_all_async(query, **values))


def first_statement(steps: Steps[Any]) -> Statement:
    """Begin a transaction; return its first statement. Raises StopIteration if it has none."""
    rows: Any = None  # with which a generator begins
    return steps.send(rows)


async def run_steps(
    steps: Steps[Result],
    execute: Callable[[LiteralString, Mapping[str, object]], Awaitable[list[Row]]],
    first: Statement | None = None,
) -> Result:
    """Return the result of a transaction whose statements `execute` runs, one after the other.

    If the caller has begun the transaction, `first` is the statement that it has got.
    """
    try:
        statement = first_statement(steps) if first is None else first
        while True:
            statement = steps.send(await execute(*statement))
    except StopIteration as end:
        return cast("Result", end.value)
