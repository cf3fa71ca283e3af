"""The tables of results, for both databases.

`bot/results/migrations` creates them step by step; a test compares the outcome with these definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from bot.engine.sql.portable import ESCAPE, original, storable

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""SQLite numbers rows by itself only if the type is INTEGER: https://sqlite.org/lang_createtable.html#rowid"""


def _original(value: str | None) -> str | None:
    return value if value is None or ESCAPE not in value else original(value)


class Storable(sa.types.TypeDecorator[str]):
    """Text from outside, in a form that both databases can store (`bot.engine.sql.portable`)."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text as it is stored."""
        return None if value is None else storable(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[str | None], str | None]:
        """Return the function that returns the original text; `process_result_value` would be two more calls."""
        return _original


MAX_IN_VALUES = 500
"""The most values of one IN. SQLite allows 32,766 (https://sqlite.org/limits.html#max_variable_number)."""

Value = TypeVar("Value")


def in_chunks(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Yield values in chunks of at most MAX_IN_VALUES, one for each statement."""
    for start in range(0, len(values), MAX_IN_VALUES):
        yield values[start : start + MAX_IN_VALUES]


metadata = sa.MetaData()
# Conditions of partial indices. Queries repeat them literally, without parameters: SQLite uses such an index only if it
# can prove that the query's condition implies the index's own. https://sqlite.org/partialindex.html
OPEN = sa.text("(announced < revision OR NOT over)")
NOT_ENDED = sa.text("ended = ''")
OF_FLAKY = sa.text("(before >= 8 OR after >= 8)")
"""A test became flaky, or ceased to be (`columns.FLAKY`)."""


def _id_column() -> sa.Column[int]:
    return sa.Column("id", Id, primary_key=True)


def _foreign_key(table: str, *, key: bool = False) -> sa.Column[int]:
    return sa.Column(f"{table}_id", Id, sa.ForeignKey(f"nightjar_{table}s.id"), nullable=False, primary_key=key)


suites = sa.Table(
    "nightjar_suites",
    metadata,
    _id_column(),
    sa.Column("repository", sa.Text, nullable=False),
    sa.Column("suite", Storable, nullable=False),
    sa.Column("names", sa.Integer, nullable=False),  # how many there are in nightjar_names
    sa.UniqueConstraint("repository", "suite", name="nightjar_suites_once"),
)

# Blocks are only added, never changed, so the ordinal of a name is stable, and columns can refer to it
# (docs/decisions/results-as-columns.md).
names = sa.Table(
    "nightjar_names",
    metadata,
    _foreign_key("suite", key=True),
    sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),  # the ordinal of the block's first name
    sa.Column("names", sa.LargeBinary, nullable=False),
)

targets = sa.Table(
    "nightjar_targets",
    metadata,
    _id_column(),
    sa.Column("repository", sa.Text, nullable=False),
    sa.Column("lab", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.UniqueConstraint("repository", "lab", "target", name="nightjar_targets_once"),
)

runs = sa.Table(
    "nightjar_runs",
    metadata,
    _id_column(),
    _foreign_key("target"),
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
    sa.Index("nightjar_runs_received", "target_id", "received_at"),  # the last run of a target, and those of a period
    sa.Index("nightjar_runs_state", "state", "received_at"),  # runs that wait for files, and lists by state
)
unindexed_state = sa.func.coalesce(runs.c.state, "")
"""The state of a run, for statements that find runs by other columns.

The function keeps SQLite from using the index of states: without statistics, it prefers that one, and reads every
stored run.
"""

columns = sa.Table(
    "nightjar_columns",
    metadata,
    sa.Column("run_id", Id, sa.ForeignKey("nightjar_runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("statuses", sa.LargeBinary, nullable=False),
    sa.Column("durations", sa.LargeBinary, nullable=False),
    sa.Column("reasons", sa.LargeBinary),
)

# The log and other files of a run, which stay in the bucket. Without a row ID, those of a run lie together.
artifacts = sa.Table(
    "nightjar_artifacts",
    metadata,
    sa.Column("run_id", Id, sa.ForeignKey("nightjar_runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)

texts = sa.Table(
    "nightjar_texts",
    metadata,
    sa.Column("id", Id, primary_key=True, autoincrement=False),  # the number of the pack's first text
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("texts", sa.LargeBinary, nullable=False),  # `text_packs.py`
)

# A row is found by its digest alone. Without a row ID, SQLite stores it only in the index of the primary key:
# https://sqlite.org/withoutrowid.html
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
    _id_column(),
    _foreign_key("suite"),
    _foreign_key("target"),
    sa.UniqueConstraint("suite_id", "target_id", name="nightjar_series_once"),
    sa.Index("nightjar_series_target", "target_id"),
)

points = sa.Table(
    "nightjar_points",
    metadata,
    _id_column(),
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), nullable=False),
    sa.Column("committed_at", sa.Double, nullable=False),
    sa.Column("sha", sa.Text, nullable=False),
    sa.Column("pull_request", sa.Integer),
    sa.Column("mainline", sa.Boolean, nullable=False),
    sa.Column("complete", sa.Boolean, nullable=False),
    sa.Column("infra", Storable, nullable=False),  # why its results are unusable; empty if they are not
    # It is a member of the series: complete, on the nightly branch and not infra. Otherwise thousands of tests would
    # look removed, and then new.
    sa.Column("linked", sa.Boolean, nullable=False),
    # How many tests ended in which way, for grids; null where a grid must count the columns (`grid/stored_counts.py`).
    *(sa.Column(name, sa.Integer) for name in ("passed", "failed", "skipped", "flaky", "new")),
    # Of the failed ones: those that the flakiness of their tests explains, and those that passed at the same commit.
    *(sa.Column(name, sa.Integer) for name in ("known", "failed_flaky")),
    sa.UniqueConstraint("series_id", "sha", name="nightjar_points_once"),
    sa.Index("nightjar_points_order", "series_id", "committed_at", "sha"),  # the SHA orders commits of the same second
)

# What tests measure, once for each suite: `latency` in ms, of which lower values are better.
metrics = sa.Table(
    "nightjar_metrics",
    metadata,
    _id_column(),
    _foreign_key("suite"),
    sa.Column("name", Storable, nullable=False),
    sa.Column("unit", Storable, nullable=False),
    sa.Column("better", sa.Text, nullable=False),
    sa.UniqueConstraint("suite_id", "name", "unit", "better", name="nightjar_metrics_once"),
)

# One row for each test and what it ever measured. As with names, positions are only added, so blocks can refer to them
# (docs/decisions/measurements-in-blocks.md).
measurements = sa.Table(
    "nightjar_measurements",
    metadata,
    _foreign_key("suite", key=True),
    sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),  # of the test's name
    _foreign_key("metric", key=True),
    sa.Column("position", sa.Integer, nullable=False),
    # The base of its numbers: `digits` * 10 ** `exponent`.
    sa.Column("digits", sa.BigInteger, nullable=False),
    sa.Column("exponent", sa.Integer, nullable=False),
    sa.UniqueConstraint("suite_id", "position", name="nightjar_measurements_positions"),
)

# The run comes last in the key, because a series asks for one block of all runs.
numbers = sa.Table(
    "nightjar_numbers",
    metadata,
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), primary_key=True),
    sa.Column("block", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("run_id", Id, sa.ForeignKey("nightjar_runs.id"), primary_key=True),
    sa.Column("numbers", sa.LargeBinary, nullable=False),  # `number_blocks.py`
    sqlite_with_rowid=False,
)

# What moved: the changes of the level of what a test measures, found when a nightly run was stored
# (docs/decisions/stored-level-changes.md). The ID is a digest of the series and the commit `since`.
level_changes = sa.Table(
    "nightjar_level_changes",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("repository", sa.Text, nullable=False),
    _foreign_key("target"),
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    _foreign_key("metric"),
    sa.Column("since", sa.Text, nullable=False),
    sa.Column("since_at", sa.Double, nullable=False),
    sa.Column("good", sa.Text, nullable=False),  # the last nightly commit before `since` that has the measurement
    sa.Column("confirmed_in", sa.Text, nullable=False),
    sa.Column("confirmed_at", sa.Double, nullable=False),
    *(sa.Column(name, sa.Double, nullable=False) for name in ("before", "after", "low", "high")),
    sa.Column("ended_in", sa.Text, nullable=False),  # empty while the change lasts
    sa.Column("ended_at", sa.Double, nullable=False),
    sa.Index("nightjar_level_changes_newest", "repository", "confirmed_at", "id"),  # what was confirmed in a repository
    sa.Index("nightjar_level_changes_since", "repository", "since_at", "id"),  # what moved in a repository
    sa.Index("nightjar_level_changes_target_since", "target_id", "since_at", "id"),  # ... and on a target
    sa.Index("nightjar_level_changes_series", "series_id", "ordinal", "metric_id"),
    sqlite_with_rowid=False,
)

# The nights of a series in which changes have been looked for: a digest of four bytes each.
searched_nights = sa.Table(
    "nightjar_searched_nights",
    metadata,
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), primary_key=True),
    sa.Column("nights", sa.LargeBinary, nullable=False),
)

# The test comes before the point in the key, because a history asks for one test at all points.
changes = sa.Table(
    "nightjar_changes",
    metadata,
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), primary_key=True),
    sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("point_id", Id, sa.ForeignKey("nightjar_points.id"), primary_key=True),
    sa.Column("before", sa.SmallInteger, nullable=False),
    sa.Column("after", sa.SmallInteger, nullable=False),
    sa.Index("nightjar_changes_point", "point_id", "before", "after"),  # counts flips without reading the rows
    sa.Index("nightjar_changes_flaky", "point_id", sqlite_where=OF_FLAKY, postgresql_where=OF_FLAKY),
    sqlite_with_rowid=False,
)

# One row for all renames at a commit: a runner that changes its rule for names renames thousands of tests at once.
renames = sa.Table(
    "nightjar_renames",
    metadata,
    sa.Column("series_id", Id, sa.ForeignKey("nightjar_series.id"), primary_key=True),
    sa.Column("point_id", Id, sa.ForeignKey("nightjar_points.id"), primary_key=True),
    sa.Column("pairs", sa.LargeBinary, nullable=False),  # `rename_pairs.py`
)

# For the whole repository, and for ever: ancestry never changes (docs/decisions/ancestors-by-comparison.md).
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

# Rows stay when a failure ends, so that people can ask what was reported. `since` is in the key, because a test may
# fail again (docs/decisions/regression-notifications.md).
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
    sa.Index("nightjar_reports_newest", "series_id", "reported_at"),  # the Atom feed
    sqlite_with_rowid=False,
)

checks = sa.Table(
    "nightjar_checks",
    metadata,
    _foreign_key("target", key=True),
    sa.Column("sha", sa.Text, primary_key=True),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),  # grows with every change of what the check run says
    sa.Column("announced", sa.Integer, nullable=False),  # the revision that a check run was last written for, or 0
    sa.Column("over", sa.Boolean, nullable=False),  # whether no more results were expected then
    sa.Index("nightjar_checks_open", "target_id", sqlite_where=OPEN, postgresql_where=OPEN),
)

# Once for each tested commit: its title, its author's name, and the number of its pull request.
commits = sa.Table(
    "nightjar_commits",
    metadata,
    sa.Column("repository", sa.Text, primary_key=True),
    sa.Column("sha", sa.Text, primary_key=True),
    sa.Column("title", Storable, nullable=False),
    sa.Column("author", Storable, nullable=False),
    sa.Column("pull_request", sa.Integer),
    sqlite_with_rowid=False,
)

# Pages are stored until this number grows.
revisions = sa.Table(
    "nightjar_revisions",
    metadata,
    sa.Column("repository", sa.Text, primary_key=True),  # in lower case
    sa.Column("revision", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
