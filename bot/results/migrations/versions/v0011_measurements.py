"""What tests measure is stored as numbers, in blocks beside the columns of each run."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create the tables."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "nightjar_metrics",
        sa.Column("id", number, primary_key=True),
        sa.Column("suite_id", number, sa.ForeignKey("nightjar_suites.id"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("better", sa.Text(), nullable=False),
        sa.UniqueConstraint("suite_id", "name", "unit", "better", name="nightjar_metrics_once"),
    )
    op.create_table(
        "nightjar_measurements",
        sa.Column("suite_id", number, sa.ForeignKey("nightjar_suites.id"), nullable=False, primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("metric_id", number, sa.ForeignKey("nightjar_metrics.id"), nullable=False, primary_key=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("digits", sa.BigInteger(), nullable=False),
        sa.Column("exponent", sa.Integer(), nullable=False),
        sa.UniqueConstraint("suite_id", "position", name="nightjar_measurements_positions"),
    )
    op.create_table(
        "nightjar_numbers",
        sa.Column("series_id", number, sa.ForeignKey("nightjar_series.id"), primary_key=True),
        sa.Column("block", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("run_id", number, sa.ForeignKey("nightjar_runs.id"), primary_key=True),
        sa.Column("numbers", sa.LargeBinary(), nullable=False),
        sqlite_with_rowid=False,
    )
