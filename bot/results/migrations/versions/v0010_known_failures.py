"""Points say how many failures are explained; those that are there already are counted by whoever reads them."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the columns."""
    for name in ("known", "failed_flaky"):
        op.add_column("nightjar_points", sa.Column(name, sa.Integer(), nullable=True))
