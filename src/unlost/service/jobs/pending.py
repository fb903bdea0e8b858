"""Bounds on unconfirmed orders: per mail address, network and mail domain, and in all."""

from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select

from unlost.errors import BusyError, LimitError, UriError
from unlost.service.jobs.order import Order
from unlost.service.jobs.rows import hash_customer
from unlost.service.jobs.rules import OrderLimits
from unlost.service.jobs.tables import PENDING_ORDERS
from unlost.uri import SuffixList

_PENDING_RETRY_SECONDS = 3_600.0
_LARGE_PROVIDERS = frozenset(
    """
    126.com 163.com aol.com att.net bellsouth.net bk.ru bluewin.ch bol.com.br btinternet.com comcast.net cox.net
    daum.net email.cz fastmail.com free.fr freenet.de gmail.com gmx.at gmx.ch gmx.com gmx.de gmx.net googlemail.com
    hanmail.net hey.com hotmail.co.uk hotmail.com hotmail.de hotmail.es hotmail.fr hotmail.it icloud.com inbox.ru
    interia.pl laposte.net libero.it list.ru live.co.uk live.com live.de live.fr mac.com mail.com mail.ru mailbox.org
    me.com msn.com naver.com o2.pl onet.pl orange.fr outlook.com outlook.de outlook.fr pm.me posteo.de proton.me
    protonmail.com qq.com rediffmail.com rocketmail.com sbcglobal.net seznam.cz sfr.fr shaw.ca sina.com sky.com
    t-online.de telenet.be terra.com.br tuta.com tutanota.com uol.com.br verizon.net virgilio.it wanadoo.fr web.de
    wp.pl ya.ru yahoo.ca yahoo.co.in yahoo.co.jp yahoo.co.uk yahoo.com yahoo.com.br yahoo.de yahoo.es yahoo.fr
    yahoo.it yandex.com yandex.ru ymail.com ziggo.nl zoho.com
    """.split()  # noqa: SIM905  a list of words
)
"""Mail domains of which very many unrelated users have an address."""


@dataclass(frozen=True, slots=True)
class OrderOrigin:
    """Where an order comes from, as hashes; empty where that is unknown.

    client: the network address, as daily limits count it. network: the IPv4 /24 or IPv6 /56.
    wide_network: the IPv6 /40; empty for IPv4.
    """

    client: str = ""
    network: str = ""
    wide_network: str = ""


def registered_mail_domain(mail: str, suffixes: SuffixList) -> str:
    """Return the registered domain of a mail address: subdomains count together.

    >>> mail_domain_of("me@a.b.Example.co.uk", SuffixList())
    'example.co.uk'
    """
    host = mail.rpartition("@")[2].lower()
    try:
        return suffixes.registered_domain(f"http://{host}/")
    except UriError:
        return host


class PendingOrders:
    """The unconfirmed orders in a database. All methods run in the transaction of the caller."""

    def __init__(self) -> None:
        self._suffixes = SuffixList()

    def admit(self, connection: Connection, order: Order, origin: OrderOrigin, limits: OrderLimits) -> int | None:
        """Check whether one more order fits.

        Returns the job to remove for it, or None. If all places are taken, the newest order of the network with the
        most orders makes room, unless the new order's own network has as many.

        Raises:
            LimitError: A mail address, network or mail domain has too many.
            BusyError: All places are taken, and no network has more than this one.
        """
        domain = registered_mail_domain(order.mail, self._suffixes)
        columns = PENDING_ORDERS.c
        bounds: tuple[tuple[str, ColumnElement[bool], int], ...] = (
            ("pending_mail", columns.customer == hash_customer(order.mail), limits.pending_per_mail),
            ("pending_network", columns.network == origin.network, limits.pending_per_network if origin.network else 0),
            (
                "pending_network",
                columns.wide_network == origin.wide_network,
                limits.pending_per_wide_network if origin.wide_network else 0,
            ),
            (
                "pending_domain",
                columns.mail_domain == _hash_domain(domain),
                0 if domain in _LARGE_PROVIDERS else limits.pending_per_mail_domain,
            ),
        )
        for kind, condition, most in bounds:
            if most and _count_pending(connection, condition) >= most:
                raise LimitError(
                    f"{most} orders of this {_PENDING_LIMIT_NAMES[kind]} wait to be confirmed",
                    _PENDING_RETRY_SECONDS,
                    kind,
                )
        if limits.pending_total and _count_pending(connection) >= limits.pending_total:
            return self._select_evicted(connection, origin)
        return None

    def _select_evicted(self, connection: Connection, origin: OrderOrigin) -> int:
        columns, size = PENDING_ORDERS.c, func.count()
        by_network = select(columns.network, size).group_by(columns.network)
        network, most = connection.execute(by_network.order_by(size.desc(), columns.network).limit(1)).one()
        if most <= _count_pending(connection, columns.network == origin.network) + 1:
            raise BusyError("too many orders wait to be confirmed", _PENDING_RETRY_SECONDS)
        newest = select(func.max(columns.job)).where(columns.network == network)
        return int(connection.execute(newest).scalar_one())

    def add(self, connection: Connection, job: int, order: Order, origin: OrderOrigin) -> None:
        """Record an unconfirmed order."""
        values = {
            "job": job,
            "customer": hash_customer(order.mail),
            "mail_domain": _hash_domain(registered_mail_domain(order.mail, self._suffixes)),
            "network": origin.network,
            "wide_network": origin.wide_network,
        }
        connection.execute(insert(PENDING_ORDERS).values(values))

    def remove(self, connection: Connection, job: int) -> None:
        """Forget where an order came from: it was confirmed or removed."""
        connection.execute(delete(PENDING_ORDERS).where(PENDING_ORDERS.c.job == job))

    def list_jobs(
        self, connection: Connection, *, mail_domain: str = "", like: int | None = None, customer: str = ""
    ) -> list[int]:
        """Return the jobs of unconfirmed orders, by number.

        Args:
            connection: The transaction.
            mail_domain: Only orders with mail addresses at this registered domain.
            like: Only orders from the same network as this job.
            customer: Only orders of this hash of a mail address.
        """
        columns = PENDING_ORDERS.c
        conditions = []
        if mail_domain:
            conditions.append(
                columns.mail_domain == _hash_domain(registered_mail_domain(f"@{mail_domain}", self._suffixes))
            )
        if like is not None:
            network = select(columns.network).where(columns.job == like).scalar_subquery()
            conditions.append(columns.network == network)
        if customer:
            conditions.append(columns.customer == customer)
        chosen = select(columns.job).where(and_(True, *conditions)).order_by(columns.job)
        return list(connection.execute(chosen).scalars())


_PENDING_LIMIT_NAMES = {"pending_mail": "mail address", "pending_network": "network", "pending_domain": "mail domain"}


def _count_pending(connection: Connection, *conditions: ColumnElement[bool]) -> int:
    chosen = select(func.count()).select_from(PENDING_ORDERS).where(*conditions)
    return int(connection.execute(chosen).scalar_one())


def _hash_domain(domain: str) -> str:
    return sha256(domain.encode()).hexdigest()
