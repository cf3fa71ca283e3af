"""Procrastinate's PostgreSQL connector, extended for replicas and for any text that people write."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import uuid
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any, LiteralString, TypeVar, cast
from weakref import WeakSet

import procrastinate
import psycopg
from procrastinate import connector, schema
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.manager import QUEUEING_LOCK_CONSTRAINT
from procrastinate.sync_psycopg_connector import wrap_exceptions
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import Json, Jsonb, set_json_dumps, set_json_loads
from psycopg_pool import AsyncConnectionPool

from bot.engine.changes import Outdated, RecordChange
from bot.engine.jobs.definitions import DELIVERY_PRIORITY, URGENT_PRIORITY
from bot.engine.jobs.inbox import (
    BODIES_AT_ONCE,
    FORGET_BODY,
    MOVE_BODY,
    STORE,
    STORE_IGNORED,
    STORE_ONE_IGNORED,
    Values,
    ids_of,
    moved_values,
    unique_deliveries,
)
from bot.engine.jobs.once import ONCE, NewJob
from bot.engine.jobs.steps import ANY_QUEUE, FETCH, FINISH_NOTED, SCANNED, WAKE
from bot.engine.outage import is_outage
from bot.engine.postgres.announcer import JobAnnouncer
from bot.engine.postgres.batches import Batcher
from bot.engine.postgres.schema import BEFORE_MOVE, LOCK_ID, VERSIONS
from bot.engine.records import values_of_record
from bot.engine.sql.errors import DatabaseFailure, DuplicateKey
from bot.engine.sql.portable import Row, check_version, dumps, loads, original, storable
from bot.engine.sql.queueing_lock import DuplicateJob
from bot.engine.sql.transactions import Steps, first_statement, run_steps

CONNECTIONS = 10
"""The most connections of one process, besides the one that listens for notifications."""

PATIENCE = 5.0
"""Seconds to wait for a connection: GitHub waits ten for our answer, and an error in time is better than none."""

RECONNECT_FOR = 2.0
"""Seconds for which the pool tries to replace a connection by itself. Its pauses double, up to minutes. After it has
given up, the next request for a connection makes it try at once, so it uses a server within seconds of its return."""

LONGEST_STATEMENT = "1min"
"""Our statements take milliseconds. If the server chooses a plan that takes hours, because its statistics are outdated,
the statement ends with an error, and the job runs again later. A URL may set another limit (`options`)."""

LOOK_SECONDS = 600.0
"""Seconds after which psycopg looks at a connection on which nothing happens."""

CONNECTION_DEFAULTS = {
    "application_name": "nightjar",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",  # milliseconds, the others are seconds
}
"""Defaults that a URL may override: with them, a lost connection is noticed in seconds instead of hours."""

ONCE_INDEX = "nightjar_once"
LOCK_INDEX = "procrastinate_jobs_lock_idx_v1"
OLD_BODIES: LiteralString = (
    "SELECT id FROM procrastinate_jobs WHERE task_name = 'deliver' AND id > %s ORDER BY id LIMIT %s"
)
OLD_BODY: LiteralString = "SELECT lock, args FROM procrastinate_jobs WHERE id = %s FOR UPDATE"
NOTIFY: LiteralString = "SELECT pg_notify(%(channel)s, %(payload)s)"
FAILED = "the database does not answer, or it refused a statement"
MAY_RUN = "NJ001"
"""The code of the message by which a trigger says that jobs may run (`bot.engine.postgres.schema.ANNOUNCED`)."""
OUTDATED = "NJ002"
"""The code of the error by which the end of a job says that a record was changed (`schema.ENDS`)."""
_LIMIT_STATEMENTS: LiteralString = (
    "SELECT set_config('statement_timeout', %s, false) WHERE current_setting('statement_timeout') = '0'"
)


Result = TypeVar("Result")
Configure = Callable[[psycopg.AsyncConnection], Awaitable[None]]


async def _configure(connection: psycopg.AsyncConnection) -> None:
    set_json_dumps(dumps, connection)
    set_json_loads(loads, connection)
    # Every query is one statement: BEGIN and COMMIT around it would be two more round trips.
    await connection.set_autocommit(True)
    # Not in the `options` of the URL: PgBouncer refuses a connection that has any.
    await connection.execute(_LIMIT_STATEMENTS, [LONGEST_STATEMENT])


class _Connection(psycopg.AsyncConnection[Any]):
    """A connection that wakes up only when the server says something.

    Psycopg looks at each waiting connection ten times a second, so that Ctrl-C can interrupt a wait that blocks. Waits
    of an event loop don't block.
    """

    async def wait(self, gen: PQGen[Result], interval: float = LOOK_SECONDS, timeout: float | None = None) -> Result:  # noqa: ASYNC109  # as psycopg has it
        """Return the result of a generator that waits for the server."""
        return await super().wait(gen, interval, timeout)


class _Pool(AsyncConnectionPool[psycopg.AsyncConnection]):
    """A pool that says which transactions let jobs run, and never loses a cancellation.

    It calls `announce` when a connection comes back on which the server has sent the message `MAY_RUN`: by then, the
    transaction has ended.

    psycopg's pool waits with `asyncio.wait_for`. Up to Python 3.11 that function ignores a cancellation that arrives
    together with its result (https://github.com/python/cpython/issues/86296). A cancelled loop would then run for ever,
    and its caller would hang.
    """

    def __init__(self, announce: Callable[[], None], configure: Configure, **arguments: Any) -> None:
        async def configure_listening(connection: psycopg.AsyncConnection) -> None:
            connection.add_notice_handler(lambda message: self._hear(connection, message))
            await configure(connection)

        defaults = {"check": _check, "connection_class": _Connection}
        super().__init__(**{**arguments, **defaults}, configure=configure_listening)
        self._announce = announce
        self._announcing = WeakSet[psycopg.AsyncConnection]()

    def _hear(self, connection: psycopg.AsyncConnection, message: psycopg.errors.Diagnostic) -> None:
        if message.sqlstate == MAY_RUN:
            self._announcing.add(connection)

    def withdraw(self, connection: psycopg.AsyncConnection) -> None:
        """Forget the messages of the transaction that a connection runs."""
        self._announcing.discard(connection)

    async def putconn(self, connection: psycopg.AsyncConnection) -> None:
        """Take a connection back, whatever became of its transaction."""
        if connection in self._announcing:
            self._announcing.discard(connection)
            self._announce()
        await super().putconn(connection)

    async def getconn(self, timeout: float | None = None) -> psycopg.AsyncConnection:  # noqa: ASYNC109  # as the pool has it
        """Return a connection, unless this task was cancelled meanwhile."""
        task = asyncio.current_task()
        cancellations = task.cancelling() if task else 0
        connection = await super().getconn(timeout)
        if task and task.cancelling() > cancellations:
            await self.putconn(connection)
            raise asyncio.CancelledError
        return connection


async def _check(connection: psycopg.AsyncConnection) -> None:
    """Raise psycopg.OperationalError if the server has closed the connection.

    Psycopg's own check is a round trip before each statement. But a connection becomes readable when the server closes
    it, and a healthy idle one has nothing to read: so only readable connections are checked.
    """
    readable = select.poll()
    readable.register(connection.fileno(), select.POLLIN)
    if readable.poll(0):
        await _Pool.check_connection(connection)


class PostgresConnector(procrastinate.PsycopgConnector):
    """Answer Procrastinate and our own SQL from PostgreSQL.

    In addition to Procrastinate's connector: it stores any text unchanged (`bot.engine.sql.portable`); a duplicate
    `once:` key raises the same DuplicateJob whether the first job waits or has ended; workers are notified after a
    commit (`bot.engine.postgres.announcer`), and no notification is lost between two fetches.
    """

    def __init__(self, database_url: str) -> None:
        """Create a connector for a URL. Raises psycopg.ProgrammingError for a URL that libpq does not understand."""
        self.conninfo = make_conninfo(database_url, **_defaults_for(database_url))
        super().__init__(
            conninfo=self.conninfo,
            min_size=1,
            max_size=CONNECTIONS,
            timeout=PATIENCE,
            reconnect_timeout=RECONNECT_FOR,
            configure=_configure,
            pool_factory=partial(_Pool, self._announce),
        )
        self._deliveries = Batcher[Values, list[Row]](self._store, is_outage, PATIENCE)
        self._listeners: list[connector.Notify] = []
        self._notification_count = 0
        self._waking: asyncio.Task[None] | None = None
        # With a name of ours, so that this process can leave out its own notifications.
        self._payload = json.dumps({"type": "job_inserted", "job_id": 0, "process": uuid.uuid4().hex})
        self._others = JobAnnouncer(self._notify_others)

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        """Run a query for its effect."""
        with _own_errors():
            await super().execute_query_async(query, **arguments)

    async def execute_query_all_async(self, query: LiteralString, **arguments: Any) -> list[Row]:
        """Run a query and return its rows."""
        if query == FETCH:
            return await self._fetch(arguments)
        if query == STORE:
            return await self._deliveries.call(arguments)
        if query == FINISH_NOTED:
            with _own_errors(), wrap_exceptions():
                async with self.pool.connection() as connection:
                    return await self._execute(connection, query, arguments)
        with _own_errors():
            rows = await super().execute_query_all_async(query, **arguments)
        return [_original(row) for row in rows]

    async def _store(self, deliveries: Sequence[Values]) -> list[list[Row]]:
        with _own_errors(), wrap_exceptions():
            async with self.pool.connection() as connection:
                cursor = await connection.execute(*_statement_of_store(deliveries))
                new = await cursor.fetchall()
        return ids_of(deliveries, {original(guid): delivery_id for delivery_id, guid in new})

    async def transact(self, begin: Callable[[], Steps[Result]]) -> Result:
        """Run a transaction, as `bot.engine.sql.transactions` describes."""
        steps = begin()
        try:
            first = first_statement(steps)
        except StopIteration as end:
            return cast("Result", end.value)
        with _own_errors(), wrap_exceptions():
            async with self.pool.connection() as connection:
                # No statement follows the end of a job, so that it needs no BEGIN and COMMIT, two more round trips.
                is_single = first[0] == FINISH_NOTED
                async with contextlib.nullcontext() if is_single else connection.transaction():
                    return await run_steps(steps, partial(self._execute, connection), first)

    async def _execute(
        self, connection: psycopg.AsyncConnection, query: LiteralString, values: Mapping[str, object]
    ) -> list[Row]:
        statement: tuple[LiteralString, Mapping[str, object]]
        if query == STORE:
            statement = _statement_of_store([values])
        elif query == FINISH_NOTED:
            statement = query, _values_of_end(**dict[str, Any](values))
        else:
            statement = query, self._wrap_json(dict(values))
        async with self._get_cursor(connection) as cursor:
            await cursor.execute(*statement)
            rows = await cursor.fetchall() if cursor.description else []
        if query == FINISH_NOTED and rows and rows[0]["id"] is not None:
            # All jobs of this transaction have the lock under which the successor runs now.
            cast("_Pool", self.pool).withdraw(connection)
        return [_original(row) for row in rows]

    async def execute_query_one_async(self, query: LiteralString, **arguments: Any) -> Row:
        """Run a query and return its first row."""
        with _own_errors():
            return _original(await super().execute_query_one_async(query, **arguments))

    async def _fetch(self, arguments: dict[str, Any]) -> list[Row]:
        """Fetch jobs; wake the worker for another fetch if a notification arrived while this one found nothing.

        The worker drops notifications that arrive during a fetch, and then sleeps until its next poll. If two replicas
        fetch jobs of one lock at the same time, the unique index refuses one of them, which is no error.
        """
        count_before = self._notification_count
        try:
            with _own_errors():
                rows = await super().execute_query_all_async(FETCH, **arguments)
        except DatabaseFailure as error:
            if not _is_refused(error):
                raise
            # Another job may be free, so make the worker fetch again: -1 differs from every count.
            rows, count_before = [{"id": None, SCANNED: 0, "more": True}], -1
        if count_before == self._notification_count and rows[0]["more"] is False:
            self._others.withdraw()
        if rows[0]["id"] is None and count_before != self._notification_count:
            self._wake_soon()
        return [_original(row) for row in rows]

    def _announce(self) -> None:
        """Wake the worker of this process, and soon those of the others."""
        self._notification_count += 1
        self._wake_soon()
        self._others.announce()

    async def _notify_others(self) -> None:
        with _own_errors():
            await super().execute_query_async(NOTIFY, channel=ANY_QUEUE, payload=self._payload)

    async def close_async(self) -> None:
        """Tell the others what they have not been told yet, then disconnect."""
        if self._async_pool is not None:
            await self._others.finish()
        await super().close_async()

    @property
    def notification_count(self) -> int | None:
        """How many notifications have arrived, None while nobody listens."""
        return self._notification_count if self._listeners else None

    def _wake_soon(self) -> None:
        """Wake the worker once it sleeps."""
        if self._listeners and (self._waking is None or self._waking.done()):
            self._waking = asyncio.create_task(self._wake())

    async def _wake(self) -> None:
        for listener in tuple(self._listeners):
            await listener(channel=ANY_QUEUE, payload=WAKE)

    async def listen_notify(self, on_notification: connector.Notify, channels: Iterable[str]) -> None:
        """Call back for every notification on these channels, until cancelled."""

        async def hear(*, channel: str, payload: str) -> None:
            if payload == self._payload:
                return
            self._notification_count += 1
            await on_notification(channel=channel, payload=payload)

        self._listeners.append(on_notification)
        try:
            with _own_errors():
                await super().listen_notify(hear, list(channels))
        finally:
            self._listeners.remove(on_notification)

    async def _loop_notify(
        self,
        on_notification: connector.Notify,
        connection: psycopg.AsyncConnection,
        timeout: float = connector.LISTEN_TIMEOUT,  # noqa: ASYNC109  # as the base class has it
    ) -> None:
        """Wait for notifications until the connection breaks, and check it where none comes for `timeout` seconds.

        It fetches at first: the notifications before this connection listened went to nobody. The base class waits with
        `asyncio.wait_for`, which may ignore a cancellation (see `_Pool`).
        """
        self._notification_count += 1
        self._wake_soon()
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                async with contextlib.aclosing(connection.notifies(timeout=timeout)) as notifications:
                    async for notification in notifications:
                        await on_notification(channel=notification.channel, payload=notification.payload)
                await connection.execute("SELECT 1")

    def _wrap_value(self, value: object) -> object:
        return _storable(value) if isinstance(value, str) else super()._wrap_value(value)

    async def upgrade(self) -> None:
        """Create the schema, or upgrade it to the newest version; replicas that start at the same time take turns."""
        async with self.pool.connection() as connection:
            if await _bring_to(connection, BEFORE_MOVE) == BEFORE_MOVE:
                await _move_bodies(connection)
            await _bring_to(connection, len(VERSIONS))


async def _bring_to(connection: psycopg.AsyncConnection, target_version: int) -> int:
    """Upgrade the schema to a version, unless it has a newer one; return the version that it then has."""
    async with connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 0")  # a large table may take long
        # The lock ends with the transaction, also when this process is killed:
        # https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_ID,))
        if not await _exists(connection, "procrastinate_jobs"):
            await connection.execute(schema.SchemaManager.get_schema())
        version = 0
        if await _exists(connection, "nightjar_schema"):
            version_row = await (await connection.execute("SELECT version FROM nightjar_schema")).fetchone()
            version = int(version_row[0]) if version_row else 0
        check_version(version, len(VERSIONS))
        for step in VERSIONS[version:target_version]:
            await connection.execute(step)
        if version < target_version:
            await connection.execute("UPDATE nightjar_schema SET version = %s", (target_version,))
    return max(version, target_version)


async def _move_bodies(connection: psycopg.AsyncConnection) -> None:
    """Move the bodies of deliveries from the arguments of their jobs to the inbox, in batches.

    Replicas that start at the same time may all do this: none repeats the work of another.
    """
    last_id, remaining = 0, True
    while remaining:
        async with connection.transaction():
            jobs = await (await connection.execute(OLD_BODIES, (last_id, BODIES_AT_ONCE))).fetchall()
            for (job_id,) in jobs:
                job_row = await (await connection.execute(OLD_BODY, (job_id,))).fetchone()
                if job_row is not None and "body" in job_row[1]:
                    lock, args = job_row
                    values = {name: _storable(value) for name, value in moved_values(job_id, lock, args).items()}
                    await connection.execute(MOVE_BODY, values)
                    args_without_body = Jsonb({name: value for name, value in args.items() if name != "body"})
                    await connection.execute(FORGET_BODY, {"id": job_id, "args": args_without_body})
        last_id, remaining = (jobs[-1][0], True) if jobs else (last_id, False)


def _statement_of_store(deliveries: Sequence[Mapping[str, object]]) -> tuple[LiteralString, Values]:
    """Return the statement that stores deliveries, and its values: the bodies, and JSON with all else of each."""
    unique, urgent_locks = unique_deliveries(deliveries)
    are_ignored = all(row["note"] is not None for row in unique)
    if are_ignored and len(unique) == 1:
        return STORE_ONE_IGNORED, {name: _storable(value) for name, value in unique[0].items()}
    for row in unique:
        if isinstance(moment := row.get("scheduled_at"), datetime):
            row["scheduled_at"] = moment.isoformat()
    values: Values = {"bodies": [row.pop("body") for row in unique], "rows": Json(unique)}
    if are_ignored:
        return STORE_IGNORED, values
    first = [_storable(lock) for lock in urgent_locks]
    return STORE, {**values, "first": first, "urgent": URGENT_PRIORITY, "plain": DELIVERY_PRIORITY}


def _values_of_end(
    *,
    outcome: str,
    note: str,
    reads: Sequence[str],
    plan: NewJob | None = None,
    jobs: Sequence[NewJob] = (),
    changes: Sequence[RecordChange] = (),
    **values: object,
) -> Mapping[str, object]:
    """Return the values of `FINISH_NOTED`."""
    return {
        **values,
        "outcome": storable(outcome),
        "note": storable(note),
        "reads": [storable(name) for name in reads],
        "plan_key": None if plan is None else storable(ONCE + plan.key),
        "plan_args": None if plan is None else Jsonb(plan.args),
        "jobs": Json([_row_of_job(job) for job in jobs]) if jobs else None,
        "changes": Json([_row_of_change(change) for change in changes]) if changes else None,
        "least_priority": URGENT_PRIORITY,
    }


def _row_of_job(job: NewJob) -> dict[str, object]:
    scheduled_at = job.scheduled_at.isoformat() if job.scheduled_at else None
    return {**asdict(job), "key": ONCE + job.key, "scheduled_at": scheduled_at}


def _row_of_change(change: RecordChange) -> dict[str, object]:
    if change.value is None:
        return {"key": change.name}
    values = values_of_record(change.name, change.value)
    return {**values, "is_guarded": change.is_guarded, "was": change.read_text}


def _storable(value: object) -> object:
    return storable(value) if isinstance(value, str) else value


def _defaults_for(database_url: str) -> dict[str, str]:
    parameters = conninfo_to_dict(database_url)
    return {name: value for name, value in CONNECTION_DEFAULTS.items() if name not in parameters}


async def _exists(connection: psycopg.AsyncConnection, table: str) -> bool:
    # NULL where a cast to regclass would raise, and so end the transaction.
    row = await (await connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,))).fetchone()
    return bool(row and row[0])


def _original(row: dict[str, Any]) -> Row:
    return {name: original(value) if isinstance(value, str) else value for name, value in row.items()}


def _is_refused(error: DatabaseFailure) -> bool:
    """Return whether another replica fetched jobs of the same locks at the same time."""
    cause = error.__cause__
    if isinstance(cause, UniqueViolation):
        return cause.constraint_name == LOCK_INDEX
    return isinstance(cause, psycopg.errors.DeadlockDetected)


@contextlib.contextmanager
def _own_errors() -> Generator[None]:
    """Raise our own errors for what psycopg raises: DuplicateJob, DuplicateKey, Outdated, else DatabaseFailure."""
    try:
        yield
    except UniqueViolation as error:
        if error.constraint_name in (ONCE_INDEX, QUEUEING_LOCK_CONSTRAINT):
            raise DuplicateJob(error.queueing_lock) from error
        raise DuplicateKey(str(error.constraint_name)) from error
    except ConnectorException as error:
        cause = error.__cause__
        if isinstance(cause, psycopg.Error) and cause.sqlstate == OUTDATED:
            raise Outdated(original(cause.diag.message_detail or "")) from None
        raise DatabaseFailure(FAILED) from cause
