"""What moved is listed by the commits at which the levels changed, no longer by those that confirmed the changes."""

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Replace the index for the changes of a target, and add one for those of a repository."""
    op.drop_index("nightjar_level_changes_target", "nightjar_level_changes")
    op.create_index("nightjar_level_changes_target_since", "nightjar_level_changes", ["target_id", "since_at", "id"])
    op.create_index("nightjar_level_changes_since", "nightjar_level_changes", ["repository", "since_at", "id"])
