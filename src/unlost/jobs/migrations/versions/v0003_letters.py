"""Emails to owners of jobs, and API tokens of administrators."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the tables."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "letter",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        sa.Column("job", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("due", sa.Float, comment="None once it was sent, or given up"),
        sa.Column("tries", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("sent", sa.Float),
        sa.Column("message", sa.Text, nullable=False, server_default=sa.text("''")),
    )
    op.create_index("letter_due", "letter", ["due"])
    op.create_index("letter_job", "letter", ["job"])
    op.create_table(
        "token",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("made", sa.Float, nullable=False),
    )
