"""Points say how many tests ended in which way; those that are there already are counted by whoever reads them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns."""
    for name in ("passed", "failed", "skipped", "flaky", "new"):
        op.add_column("nightjar_points", sa.Column(name, sa.Integer(), nullable=True))
