"""Of which failures people got messages."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "nightjar_reports",
        sa.Column("series_id", ID, nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("since", sa.Text(), nullable=False),
        sa.Column("good", sa.Text(), nullable=False),
        sa.Column("reported_in", sa.Text(), nullable=False),
        sa.Column("reported_at", sa.Double(), nullable=False),
        sa.Column("ended", sa.Text(), nullable=False),
        sa.Column("ended_in", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["series_id"], ["nightjar_series.id"]),
        sa.PrimaryKeyConstraint("series_id", "ordinal", "since"),
        sqlite_with_rowid=False,
    )
    where = sa.text("ended = ''")
    op.create_index(
        "nightjar_reports_open", "nightjar_reports", ["series_id"], sqlite_where=where, postgresql_where=where
    )
