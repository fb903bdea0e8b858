"""Jobs and workers."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "job",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        sa.Column("customer", sa.String(64), nullable=False, comment="a hash of the mail address, to count orders by"),
        sa.Column("customer_order", sa.JSON, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("submitted", sa.Float, nullable=False),
        sa.Column("changed", sa.Float, nullable=False),
        sa.Column("confirmed", sa.Float),
        sa.Column("begun", sa.Float),
        sa.Column("ended", sa.Float),
        sa.Column("picked_up", sa.Float),
        sa.Column("turn", sa.BigInteger, nullable=False),
        sa.Column("not_before", sa.Float, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("worker", sa.String(200)),
        sa.Column("lease_until", sa.Float),
        sa.Column("for_worker", sa.String(200)),
        sa.Column("crashes", sa.Integer, nullable=False),
        sa.Column("rounds", sa.Integer, nullable=False),
        sa.Column("reminders", sa.Integer, nullable=False),
        sa.Column("recovered", sa.BigInteger, nullable=False),
        sa.Column("missing", sa.BigInteger, nullable=False),
        sa.Column("queued", sa.BigInteger, nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("packages", sa.JSON, nullable=False),
        sa.Column("figures", sa.JSON, nullable=False),
        sa.Column("due", sa.Float, comment="when there is something to do about it that no worker does"),
    )
    op.create_index("job_turn", "job", ["state", "turn", "number"])
    op.create_index("job_due", "job", ["due"])
    op.create_index("job_customer", "job", ["customer", "state"])
    op.create_table(
        "worker",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("begun", sa.Float, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
    )
