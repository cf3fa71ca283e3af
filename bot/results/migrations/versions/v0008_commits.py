"""What people recognize a tested commit by: its title, its author, and its pull request."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "nightjar_commits",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("pull_request", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("repository", "sha"),
        sqlite_with_rowid=False,
    )
