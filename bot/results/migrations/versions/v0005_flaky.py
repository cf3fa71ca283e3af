"""At which commits tests became flaky, or ceased to be."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the index."""
    where = sa.text("(before >= 8 OR after >= 8)")
    op.create_index(
        "nightjar_changes_flaky", "nightjar_changes", ["point_id"], sqlite_where=where, postgresql_where=where
    )
