"""Changes of what tests measure are stored, with the nights in which the bot looked for them."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Create the tables."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "nightjar_level_changes",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("target_id", number, sa.ForeignKey("nightjar_targets.id"), nullable=False),
        sa.Column("series_id", number, sa.ForeignKey("nightjar_series.id"), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("metric_id", number, sa.ForeignKey("nightjar_metrics.id"), nullable=False),
        sa.Column("since", sa.Text(), nullable=False),
        sa.Column("since_at", sa.Double(), nullable=False),
        sa.Column("good", sa.Text(), nullable=False),
        sa.Column("confirmed_in", sa.Text(), nullable=False),
        sa.Column("confirmed_at", sa.Double(), nullable=False),
        sa.Column("before", sa.Double(), nullable=False),
        sa.Column("after", sa.Double(), nullable=False),
        sa.Column("low", sa.Double(), nullable=False),
        sa.Column("high", sa.Double(), nullable=False),
        sa.Column("ended_in", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("nightjar_level_changes_newest", "nightjar_level_changes", ["repository", "confirmed_at", "id"])
    op.create_index("nightjar_level_changes_target", "nightjar_level_changes", ["target_id", "confirmed_at", "id"])
    op.create_index("nightjar_level_changes_series", "nightjar_level_changes", ["series_id", "ordinal", "metric_id"])
    op.create_table(
        "nightjar_searched_nights",
        sa.Column("series_id", number, sa.ForeignKey("nightjar_series.id"), primary_key=True),
        sa.Column("nights", sa.LargeBinary(), nullable=False),
    )
