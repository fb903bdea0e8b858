"""The rate-limit state of archives, shared by all workers."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "account",
        sa.Column("archive", sa.String(300), primary_key=True),
        sa.Column("ledger", sa.Text, nullable=False),
    )
