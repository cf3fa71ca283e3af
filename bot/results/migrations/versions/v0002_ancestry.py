"""How commits lie to one another."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "nightjar_ancestry",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("other", sa.Text(), nullable=False),
        sa.Column("is_ancestor", sa.Boolean(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("met_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("repository", "sha", "other"),
        sqlite_with_rowid=False,
    )
