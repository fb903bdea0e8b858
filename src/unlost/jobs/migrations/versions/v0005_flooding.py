"""Origins of unconfirmed orders, unsubscribed addresses, and the fair queue of emails."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_PENDING_SECONDS = 172_800


def upgrade() -> None:
    """Create the tables, columns and indexes. Orders that are pending expire after 48 hours."""
    op.create_table(
        "pending_order",
        sa.Column("job", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("customer", sa.String(64), nullable=False, comment="a hash of the mail address"),
        sa.Column("mail_domain", sa.String(64), nullable=False, comment="a hash"),
        sa.Column("network", sa.String(64), nullable=False, comment="a hash of the IPv4 /24 or IPv6 /56"),
        sa.Column("wide_network", sa.String(64), nullable=False, comment="a hash of the IPv6 /40; empty for IPv4"),
    )
    for name in ("customer", "mail_domain", "network", "wide_network"):
        op.create_index(f"pending_order_{name}", "pending_order", [name])
    op.create_table(
        "unsubscribed",
        sa.Column("customer", sa.String(64), primary_key=True, comment="a hash of the mail address"),
        sa.Column("since", sa.Float, nullable=False),
    )
    fair_key = sa.Column(
        "fair_key", sa.String(64), nullable=False, server_default=sa.text("''"),
        comment="a hash; every key gets an equal share of what is sent",
    )  # fmt: skip
    op.add_column("letter", fair_key)
    op.create_index("letter_sent", "letter", ["sent"])
    op.create_index("job_not_before", "job", ["state", "not_before"])
    op.execute(f"UPDATE job SET due = changed + {_PENDING_SECONDS} WHERE state = 'pending'")  # noqa: S608  a constant
