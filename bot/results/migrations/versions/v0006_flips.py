"""The index of changes by commit says what changed, so that flips are counted without the rows themselves."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the index again."""
    op.drop_index("nightjar_changes_point", "nightjar_changes")
    op.create_index("nightjar_changes_point", "nightjar_changes", ["point_id", "before", "after"])
