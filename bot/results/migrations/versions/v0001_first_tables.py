"""The first tables of results."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make them."""
    _names()
    _runs()
    _series()
    _changes()
    _checks()


def _names() -> None:
    op.create_table(
        "nightjar_suites",
        sa.Column("id", ID, nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("names", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("repository", "suite", name="nightjar_suites_once"),
    )
    op.create_table(
        "nightjar_names",
        sa.Column("suite_id", ID, nullable=False),
        sa.Column("first", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("names", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["suite_id"],
            ["nightjar_suites.id"],
        ),
        sa.PrimaryKeyConstraint("suite_id", "first"),
    )
    op.create_table(
        "nightjar_targets",
        sa.Column("id", ID, nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("lab", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("repository", "lab", "target", name="nightjar_targets_once"),
    )


def _runs() -> None:
    op.create_table(
        "nightjar_runs",
        sa.Column("id", ID, nullable=False),
        sa.Column("target_id", ID, nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("claims", sa.Text(), nullable=True),
        sa.Column("committed_at", sa.Double(), nullable=True),
        sa.Column("mainline", sa.Boolean(), nullable=True),
        sa.Column("pull_request", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["target_id"],
            ["nightjar_targets.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("target_id", "sha", "run_id", name="nightjar_runs_once"),
    )
    op.create_index("nightjar_runs_received", "nightjar_runs", ["target_id", "received_at"])
    op.create_index("nightjar_runs_state", "nightjar_runs", ["state", "received_at"])
    op.create_table(
        "nightjar_columns",
        sa.Column("run_id", ID, nullable=False),
        sa.Column("statuses", sa.LargeBinary(), nullable=False),
        sa.Column("durations", sa.LargeBinary(), nullable=False),
        sa.Column("reasons", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["nightjar_runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_table(
        "nightjar_texts",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("texts", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "nightjar_digests",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_with_rowid=False,
    )


def _series() -> None:
    op.create_table(
        "nightjar_series",
        sa.Column("id", ID, nullable=False),
        sa.Column("suite_id", ID, nullable=False),
        sa.Column("target_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["suite_id"],
            ["nightjar_suites.id"],
        ),
        sa.ForeignKeyConstraint(
            ["target_id"],
            ["nightjar_targets.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("suite_id", "target_id", name="nightjar_series_once"),
    )
    op.create_table(
        "nightjar_points",
        sa.Column("id", ID, nullable=False),
        sa.Column("series_id", ID, nullable=False),
        sa.Column("committed_at", sa.Double(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("pull_request", sa.Integer(), nullable=True),
        sa.Column("mainline", sa.Boolean(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("infra", sa.Text(), nullable=False),
        sa.Column("linked", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["series_id"],
            ["nightjar_series.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("series_id", "sha", name="nightjar_points_once"),
    )
    op.create_index("nightjar_points_order", "nightjar_points", ["series_id", "committed_at", "sha"])


def _changes() -> None:
    op.create_table(
        "nightjar_changes",
        sa.Column("series_id", ID, nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("point_id", ID, nullable=False),
        sa.Column("before", sa.SmallInteger(), nullable=False),
        sa.Column("after", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["point_id"],
            ["nightjar_points.id"],
        ),
        sa.ForeignKeyConstraint(
            ["series_id"],
            ["nightjar_series.id"],
        ),
        sa.PrimaryKeyConstraint("series_id", "ordinal", "point_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("nightjar_changes_point", "nightjar_changes", ["point_id"])
    op.create_table(
        "nightjar_renames",
        sa.Column("series_id", ID, nullable=False),
        sa.Column("point_id", ID, nullable=False),
        sa.Column("pairs", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["point_id"],
            ["nightjar_points.id"],
        ),
        sa.ForeignKeyConstraint(
            ["series_id"],
            ["nightjar_series.id"],
        ),
        sa.PrimaryKeyConstraint("series_id", "point_id"),
    )


def _checks() -> None:
    op.create_table(
        "nightjar_checks",
        sa.Column("target_id", ID, nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("announced", sa.Integer(), nullable=False),
        sa.Column("over", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["target_id"],
            ["nightjar_targets.id"],
        ),
        sa.PrimaryKeyConstraint("target_id", "sha"),
    )
    still_open = sa.text("(announced < revision OR NOT over)")
    op.create_index(
        "nightjar_checks_open",
        "nightjar_checks",
        ["target_id"],
        sqlite_where=still_open,
        postgresql_where=still_open,
    )
