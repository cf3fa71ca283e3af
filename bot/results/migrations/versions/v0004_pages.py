"""What pages read: the suites of a target, the newest messages, and the revision of a repository's results."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the indices and the table."""
    op.create_index("nightjar_series_target", "nightjar_series", ["target_id"])
    op.create_index("nightjar_reports_newest", "nightjar_reports", ["series_id", "reported_at"])
    op.create_table(
        "nightjar_revisions",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("repository"),
        sqlite_with_rowid=False,
    )
