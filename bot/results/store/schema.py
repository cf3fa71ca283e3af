"""The tables of results, for both databases; `bot/results/migrations` makes them.

What stands here is what those migrations lead to, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from bot.engine import text

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""SQLite numbers rows by itself for INTEGER alone."""


class Storable(sa.types.TypeDecorator[str]):
    """Text from outside, which both databases hold unharmed (`bot.engine.text`)."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text as it is stored."""
        return None if value is None else text.storable(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text as it came."""
        return None if value is None else text.original(value)


AT_ONCE = 500
"""The most values of one IN; SQLite allows 32,766 (https://sqlite.org/limits.html#max_variable_number)."""

Value = TypeVar("Value")


def in_parts(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield values in parts of AT_ONCE at most: those of one statement."""
    for start in range(0, len(values), AT_ONCE):
        yield values[start : start + AT_ONCE]


metadata = sa.MetaData()
OPEN = sa.text("(announced < revision OR NOT over)")
NOT_ENDED = sa.text("ended = ''")
OF_FLAKY = sa.text("(before >= 8 OR after >= 8)")
"""A test became flaky, or ceased to be (`columns.FLAKY`). Queries must repeat it literally to use the index."""


def _id() -> sa.Column[int]:
    return sa.Column("id", Id, primary_key=True)


def _of(table: str, *, key: bool = False) -> sa.Column[int]:
    return sa.Column(f"{table}_id", Id, sa.ForeignKey(f"nightjar_{table}s.id"), nullable=False, primary_key=key)


suites = sa.Table(
    "nightjar_suites",
    metadata,
    _id(),
    sa.Column("repository", sa.Text, nullable=False),
    sa.Column("suite", Storable, nullable=False),
    sa.Column("names", sa.Integer, nullable=False),  # how many there are in nightjar_names
    sa.UniqueConstraint("repository", "suite", name="nightjar_suites_once"),
)

names = sa.Table(
    "nightjar_names",
    metadata,
    _of("suite", key=True),
    sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),  # the place of the block's first name
    sa.Column("names", sa.LargeBinary, nullable=False),
)

targets = sa.Table(
    "nightjar_targets",
    metadata,
    _id(),
    sa.Column("repository", sa.Text, nullable=False),
    sa.Column("lab", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.UniqueConstraint("repository", "lab", "target", name="nightjar_targets_once"),
)

runs = sa.Table(
    "nightjar_runs",
    metadata,
    _id(),
    _of("target"),
    sa.Column("sha", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("suite", Storable),  # null where the manifest could not be read
    sa.Column("version", Storable, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", Storable, nullable=False),
    sa.Column("received_at", sa.Double, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("claims", sa.Text),  # JSON
    sa.Column("committed_at", sa.Double),  # null where the run was not admitted
    sa.Column("mainline", sa.Boolean),
    sa.Column("pull_request", sa.Integer),
    sa.UniqueConstraint("target_id", "sha", "run_id", name="nightjar_runs_once"),
    sa.Index("nightjar_runs_received", "target_id", "received_at"),
    sa.Index("nightjar_runs_state", "state", "received_at"),
)
found_state = sa.func.coalesce(runs.c.state, "")
"""The state of a run, for statements that find runs by something else.

Without statistics, SQLite takes the index of states for the better one, and reads every stored run.
"""

columns = sa.Table(
    "nightjar_columns",
    metadata,
    sa.Column("run_id", Id, sa.ForeignKey("nightjar_runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("statuses", sa.LargeBinary, nullable=False),
    sa.Column("durations", sa.LargeBinary, nullable=False),
    sa.Column("reasons", sa.LargeBinary),
)

texts = sa.Table(
    "nightjar_texts",
    metadata,
    sa.Column("id", Id, primary_key=True, autoincrement=False),  # the number of the pack's first text
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("texts", sa.LargeBinary, nullable=False),  # `text_packs.py`
)

digests = sa.Table(
    "nightjar_digests",
    metadata,
    sa.Column("digest", sa.LargeBinary, primary_key=True),  # the beginning of a text's SHA-256
    sa.Column("number", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

series = sa.Table(
    "nightjar_series",
    metadata,
    _id(),
    _of("suite"),
    _of("target"),
    sa.UniqueConstraint("suite_id", "target_id", name="nightjar_series_once"),
    sa.Index("nightjar_series_target", "target_id"),
)

points = sa.Table(
    "nightjar_points",
    metadata,
    _id(),
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), nullable=False),
    sa.Column("committed_at", sa.Double, nullable=False),
    sa.Column("sha", sa.Text, nullable=False),
    sa.Column("pull_request", sa.Integer),
    sa.Column("mainline", sa.Boolean, nullable=False),
    sa.Column("complete", sa.Boolean, nullable=False),
    sa.Column("infra", Storable, nullable=False),  # why its results are unusable; empty if they are not
    sa.Column("linked", sa.Boolean, nullable=False),  # it is a member of the series
    # How many tests ended in which way, as a grid counts them; null where a grid counts them itself (`counted.py`).
    *(sa.Column(name, sa.Integer) for name in ("passed", "failed", "skipped", "flaky", "new")),
    sa.UniqueConstraint("series_id", "sha", name="nightjar_points_once"),
    sa.Index("nightjar_points_order", "series_id", "committed_at", "sha"),
)

changes = sa.Table(
    "nightjar_changes",
    metadata,
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), primary_key=True),
    sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("point_id", Id, sa.ForeignKey("nightjar_points.id"), primary_key=True),
    sa.Column("before", sa.SmallInteger, nullable=False),
    sa.Column("after", sa.SmallInteger, nullable=False),
    sa.Index("nightjar_changes_point", "point_id", "before", "after"),  # so that flips are counted without the rows
    sa.Index("nightjar_changes_flaky", "point_id", sqlite_where=OF_FLAKY, postgresql_where=OF_FLAKY),
    sqlite_with_rowid=False,
)

renames = sa.Table(
    "nightjar_renames",
    metadata,
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), primary_key=True),
    sa.Column("point_id", Id, sa.ForeignKey("nightjar_points.id"), primary_key=True),
    sa.Column("pairs", sa.LargeBinary, nullable=False),  # `rename_pairs.py`
)

ancestry = sa.Table(
    "nightjar_ancestry",
    metadata,
    sa.Column("repository", sa.Text, primary_key=True),
    sa.Column("sha", sa.Text, primary_key=True),
    sa.Column("other", sa.Text, primary_key=True),
    sa.Column("is_ancestor", sa.Boolean, nullable=False),  # of `sha`
    sa.Column("url", sa.Text, nullable=False),  # the page of `other`
    sa.Column("met_at", sa.Double, nullable=False),  # when the newest commit that both contain was committed, or 0
    sqlite_with_rowid=False,
)

reports = sa.Table(
    "nightjar_reports",
    metadata,
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), primary_key=True),
    sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("since", sa.Text, primary_key=True),  # the commit at which the failure began
    sa.Column("good", sa.Text, nullable=False),  # the last one at which the test passed; empty if it never did
    sa.Column("reported_in", sa.Text, nullable=False),  # the commit of the message
    sa.Column("reported_at", sa.Double, nullable=False),
    sa.Column("ended", sa.Text, nullable=False),  # how it ended; empty while it lasts
    sa.Column("ended_in", sa.Text, nullable=False),
    sa.Column("ended_at", sa.Double, nullable=False),
    sa.Index("nightjar_reports_open", "series_id", sqlite_where=NOT_ENDED, postgresql_where=NOT_ENDED),
    sa.Index("nightjar_reports_newest", "series_id", "reported_at"),
    sqlite_with_rowid=False,
)

checks = sa.Table(
    "nightjar_checks",
    metadata,
    _of("target", key=True),
    sa.Column("sha", sa.Text, primary_key=True),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("announced", sa.Integer, nullable=False),  # the revision that a check run was written for, or 0
    sa.Column("over", sa.Boolean, nullable=False),  # and nothing more was expected then
    sa.Index("nightjar_checks_open", "target_id", sqlite_where=OPEN, postgresql_where=OPEN),
)

revisions = sa.Table(
    "nightjar_revisions",
    metadata,
    sa.Column("repository", sa.Text, primary_key=True),  # in lower case
    sa.Column("revision", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
