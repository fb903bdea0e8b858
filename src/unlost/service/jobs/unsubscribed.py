"""Mail addresses to which nothing is sent any more, as hashes."""

from sqlalchemy import Connection, delete, insert, select

from unlost.service.jobs.tables import UNSUBSCRIBED


def add_unsubscribed(connection: Connection, customer: str, now: float) -> None:
    """Send no email to a mail address from now on. customer: its hash."""
    if not is_unsubscribed(connection, customer):
        connection.execute(insert(UNSUBSCRIBED).values(customer=customer, since=now))


def remove_unsubscribed(connection: Connection, customer: str) -> None:
    """Send email to a mail address again. customer: its hash."""
    connection.execute(delete(UNSUBSCRIBED).where(UNSUBSCRIBED.c.customer == customer))


def is_unsubscribed(connection: Connection, customer: str) -> bool:
    """Return whether nothing is sent to a mail address. customer: its hash."""
    chosen = select(UNSUBSCRIBED.c.customer).where(UNSUBSCRIBED.c.customer == customer)
    return connection.execute(chosen).first() is not None
