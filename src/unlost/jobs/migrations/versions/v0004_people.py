"""Administrators, their sessions and settings, blocked domains, the event log of jobs, and counts of orders."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "event",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        sa.Column("job", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("what", sa.String(32), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("event_job", "event", ["job", "number"])
    op.create_table(
        "tally",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("who", sa.String(64), nullable=False, comment="a hash"),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("tally_who", "tally", ["kind", "who", "at"])
    op.create_index("tally_at", "tally", ["at"])
    op.create_table(
        "setting",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.JSON, nullable=False),
    )
    op.create_table(
        "blocked",
        sa.Column("domain", sa.String(255), primary_key=True),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "admin",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("password", sa.String(300), nullable=False, comment="a hash, by scrypt"),
        sa.Column("made", sa.Float, nullable=False),
    )
    op.create_table(
        "session",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("admin", sa.String(200), nullable=False),
        sa.Column("begun", sa.Float, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
    )
