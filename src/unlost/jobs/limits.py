"""Limits of orders: daily limits, limits of unconfirmed orders, blocked domains, and the rate limit of look-ups."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select

from unlost.errors import BlockedError, BusyError, LimitError, UriError, UsageError
from unlost.http.url import is_ip_literal, is_public_ip
from unlost.jobs.client_network import OrderOrigin
from unlost.jobs.database import Database
from unlost.jobs.models import Order
from unlost.jobs.tables import BLOCKED, PENDING_ORDERS, SETTINGS, TALLIES, hash_customer
from unlost.uri import SuffixList
from unlost.uri.names import page_name

_DAY = 86_400.0
KNOWN_LOGIN, KNOWN_LOGIN_SECONDS = "login-known", 90 * _DAY
"""Kind of tally that records a successful login from a client, and for how long it is retained."""
_LIMITS_SETTING = "limits"
_MAX_LIMIT = 1 << 40  # largest value of any limit
# Special-use and commonly used private names (RFC 6761, RFC 6762, RFC 8375, and appendix G of RFC 6762).
_PRIVATE_SUFFIXES = (
    ".localhost", ".local", ".localdomain", ".internal", ".intranet", ".private", ".corp", ".home", ".lan", ".home.arpa"
)  # fmt: skip
_PORT = re.compile(r":[0-9]+$", re.ASCII)
_DOMAIN = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_ORDER_LIMIT_NAMES = {"mail": "mail address", "client": "network", "address": "site"}
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
"""Mail domains with very many unrelated users."""
_PENDING_LIMIT_NAMES = {"pending_mail": "mail address", "pending_network": "network", "pending_domain": "mail domain"}
_LOOKUP_TALLY = "look"  # stored kind of a tally
_MAX_LOOKUPS = 30  # within _LOOKUP_WINDOW_SECONDS: enough for a user with ten sites who corrects typing errors
_LOOKUP_WINDOW_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class OrderLimits:
    """Limits of orders; 0 disables a limit.

    Attributes:
        per_mail: Orders in 24 hours for one email address.
        per_client: Orders in 24 hours from one client network.
        per_address: Orders in 24 hours for one host.
        megabytes: Stored size of one recovery.
        hours: Total time that workers spend on one recovery.
        pending_per_mail: Unconfirmed orders for one email address.
        pending_per_network: Unconfirmed orders from one IPv4 /24 or IPv6 /56.
        pending_per_wide_network: Unconfirmed orders from one IPv6 /40.
        pending_per_mail_domain: Unconfirmed orders for one mail domain, unless it belongs to a large provider.
        pending_total: Unconfirmed orders in all, shared fairly between networks.
    """

    per_mail: int = 10
    per_client: int = 50
    per_address: int = 10
    megabytes: int = 20_000
    hours: int = 72
    pending_per_mail: int = 10
    pending_per_network: int = 20
    pending_per_wide_network: int = 100
    pending_per_mail_domain: int = 200
    pending_total: int = 10_000


@dataclass(frozen=True, slots=True)
class BlockedDomain:
    """A domain that may not be ordered, including all hosts below it. `since` is in seconds since 1970."""

    domain: str
    since: float
    reason: str


def parse_domain(text: str) -> str:
    """Return the domain of a text that is a domain or a URL, without `www`.

    Raises:
        UsageError: The text has no valid domain.

    >>> parse_domain(" https://WWW.Example.com./a"), parse_domain("bücher.example")
    ('example.com', 'xn--bcher-kva.example')
    """
    name = normalize_host(text)
    if not _DOMAIN.fullmatch(name) or len(name) > 253:
        raise UsageError("domain: expected one, such as example.com")
    return name


def normalize_host(url: str) -> str:
    """Return the normalized host of a URL, or an empty string if it has none.

    URLs that recover the same site have the same normalized host.

    >>> normalize_host("http://www.%62ücher.example:8080/")
    'xn--bcher-kva.example'
    >>> normalize_host("http://0x7f.1/"), normalize_host("http://[::1]:80/")
    ('127.0.0.1', '[::1]')
    """
    try:
        return _PORT.sub("", page_name(url).partition("/")[0])
    except UriError:
        return ""


def is_private_host(host: str) -> bool:
    """Return whether a normalized host is a loopback host or belongs to a private network.

    Archives have no captures of such hosts.

    >>> [is_private_host(host) for host in ("localhost", "nas.local", "10.1.2.3", "[::1]", "[::ffff:127.0.0.1]")]
    [True, True, True, True, True]
    >>> [is_private_host(host) for host in ("example.com", "local.example.com", "93.184.216.34")]
    [False, False, False]
    """
    ip = host.strip("[]")
    if is_ip_literal(ip):
        return not is_public_ip(ip)
    return "." not in host or host.endswith(_PRIVATE_SUFFIXES)


class OrderRules:
    """Limits and blocked domains, stored in the database. All web processes and workers share them.

    Args:
        database: The job database.
        allows_private: Whether sites on loopback and private hosts may be ordered.
    """

    def __init__(self, database: Database, *, allows_private: bool = False) -> None:
        self._database = database
        self._allows_private = allows_private

    def limits(self) -> OrderLimits:
        """Return the current limits."""
        with self._database.reading() as connection:
            return self.read_limits(connection)

    def read_limits(self, connection: Connection) -> OrderLimits:
        """Return the current limits, in an open transaction."""
        return _load_limits(connection)

    def set_limits(self, limits: OrderLimits) -> None:
        """Store new limits.

        Raises:
            UsageError: A limit is out of range.
        """
        if wrong := [name for name, value in asdict(limits).items() if not 0 <= value <= _MAX_LIMIT]:
            raise UsageError(f"{wrong[0]}: expected a number from 0 on")
        with self._database.writing() as connection:
            connection.execute(delete(SETTINGS).where(SETTINGS.c.name == _LIMITS_SETTING))
            connection.execute(insert(SETTINGS).values(name=_LIMITS_SETTING, value=asdict(limits)))

    # Daily limits

    def count_order(self, connection: Connection, order: Order, client: str, now: float) -> None:
        """Check the daily limits and count an order, in the transaction that stores it.

        Args:
            connection: An open transaction.
            order: The order.
            client: Hash of the client's network, or an empty string if unknown.
            now: Seconds since 1970.

        Raises:
            BlockedError: The site may not be ordered.
            LimitError: A daily limit is reached.
        """
        host = normalize_host(order.url)
        self.check_host(connection, host)
        limits = self.read_limits(connection)
        tallies = {
            "mail": (hash_customer(order.mail), limits.per_mail),
            "client": (client, limits.per_client),
            "address": (sha256(host.encode()).hexdigest(), limits.per_address),
        }
        self._database.lock_names(connection, *(f"{kind} {who}" for kind, (who, _) in tallies.items()))
        for kind, (who, limit) in tallies.items():
            if who and limit and count_tallies(connection, kind, who, now - _DAY) >= limit:
                raise LimitError(
                    f"today there were {limit} orders already for this {_ORDER_LIMIT_NAMES[kind]}", _DAY, kind
                )
        for kind, (who, _) in tallies.items():
            if who:
                connection.execute(insert(TALLIES).values(kind=kind, who=who, at=now))

    def remove_old_counts(self, connection: Connection, now: float) -> None:
        """Remove tallies older than 24 hours, and tallies of logins after `KNOWN_LOGIN_SECONDS`."""
        is_expired = and_(
            TALLIES.c.at < now - _DAY, or_(TALLIES.c.kind != KNOWN_LOGIN, TALLIES.c.at < now - KNOWN_LOGIN_SECONDS)
        )
        connection.execute(delete(TALLIES).where(is_expired))

    # Blocked domains

    def check_host(self, connection: Connection, host: str) -> None:
        """Check that a host may be ordered.

        Raises:
            BlockedError: The host is private or blocked.
        """
        if self.refuses_private(host):
            raise BlockedError("url: expected a public site, not a loopback or private host")
        if _is_blocked(connection, host):
            raise BlockedError("url: this site is not recovered here")

    def refuses_private(self, host: str) -> bool:
        """Return whether a host is private and private hosts are refused."""
        return not self._allows_private and is_private_host(host)

    def is_blocked(self, url: str) -> bool:
        """Return whether the host of a URL is blocked."""
        with self._database.reading() as connection:
            return _is_blocked(connection, normalize_host(url))

    def list_blocked(self) -> list[BlockedDomain]:
        """Return all blocked domains, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(select(BLOCKED).order_by(BLOCKED.c.domain)).all()
        return [BlockedDomain(row.domain, row.since, row.reason) for row in rows]

    def block(self, domain: str, reason: str) -> str:
        """Block a domain and all hosts below it, and return its normalized name.

        Raises:
            UsageError: The domain is invalid.
        """
        name = parse_domain(domain)
        with self._database.writing() as connection:
            connection.execute(delete(BLOCKED).where(BLOCKED.c.domain == name))
            now = self._database.now(connection)
            connection.execute(insert(BLOCKED).values(domain=name, since=now, reason=reason[:2_000]))
        return name

    def unblock(self, domain: str) -> None:
        """Remove a domain from the blocked ones."""
        with self._database.writing() as connection:
            connection.execute(delete(BLOCKED).where(BLOCKED.c.domain == domain))


def count_tallies(connection: Connection, kind: str, who: str, since: float) -> int:
    """Return the number of tallies of a kind and key since a time."""
    condition = and_(TALLIES.c.kind == kind, TALLIES.c.who == who, TALLIES.c.at >= since)
    return int(connection.execute(select(func.count()).select_from(TALLIES).where(condition)).scalar_one())


def is_host_below(url: str, domain: str) -> bool:
    """Return whether the host of a URL is a domain or below it."""
    return f".{normalize_host(url)}".endswith(f".{domain}")


def _is_blocked(connection: Connection, host: str) -> bool:
    parts = host.split(".")
    suffixes = [".".join(parts[index:]) for index in range(len(parts))]
    return (
        connection.execute(select(BLOCKED.c.domain).where(BLOCKED.c.domain.in_(suffixes)).limit(1)).first() is not None
    )


def _load_limits(connection: Connection) -> OrderLimits:
    stored: Any = connection.execute(
        select(SETTINGS.c.value).where(SETTINGS.c.name == _LIMITS_SETTING)
    ).scalar_one_or_none()
    return (
        limits_from_json(stored, [each.name for each in fields(OrderLimits)])
        if isinstance(stored, Mapping)
        else OrderLimits()
    )


def limits_from_json(values: Mapping[str, Any], names: Sequence[str]) -> OrderLimits:
    """Return the stored limits; a value that is not an integer is replaced by its default."""
    return OrderLimits(**{name: values[name] for name in names if isinstance(values.get(name), int)})


def registered_mail_domain(mail: str, suffixes: SuffixList) -> str:
    """Return the registered domain of an email address, so that subdomains count together.

    >>> registered_mail_domain("me@a.b.Example.co.uk", SuffixList())
    'example.co.uk'
    """
    host = mail.rpartition("@")[2].lower()
    try:
        return suffixes.registered_domain(f"http://{host}/")
    except UriError:
        return host


class PendingOrders:
    """Unconfirmed orders and their limits. Methods run in the caller's transaction."""

    def __init__(self) -> None:
        self._suffixes = SuffixList()

    def admit(self, connection: Connection, order: Order, origin: OrderOrigin, limits: OrderLimits) -> int | None:
        """Check whether another unconfirmed order may be stored.

        If the total limit is reached, the newest order of the network with the most orders is evicted, unless the
        network of the new order has as many. Rejecting all orders would let one flood close the service.

        Returns:
            The job to evict, or None.

        Raises:
            LimitError: An email address, network or mail domain has too many unconfirmed orders.
            BusyError: The total limit is reached, and no network has more orders than this one.
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
        for kind, condition, limit in bounds:
            if limit and _count_pending(connection, condition) >= limit:
                raise LimitError(
                    f"{limit} orders of this {_PENDING_LIMIT_NAMES[kind]} wait to be confirmed",
                    _PENDING_RETRY_SECONDS,
                    kind,
                )
        if limits.pending_total and _count_pending(connection) >= limits.pending_total:
            return self._select_evicted(connection, origin)
        return None

    def _select_evicted(self, connection: Connection, origin: OrderOrigin) -> int:
        columns, size = PENDING_ORDERS.c, func.count()
        by_network = select(columns.network, size).group_by(columns.network)
        network, count = connection.execute(by_network.order_by(size.desc(), columns.network).limit(1)).one()
        if count <= _count_pending(connection, columns.network == origin.network) + 1:
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
        """Delete the origin of an order that was confirmed or removed."""
        connection.execute(delete(PENDING_ORDERS).where(PENDING_ORDERS.c.job == job))

    def list_jobs(
        self, connection: Connection, *, mail_domain: str = "", like: int | None = None, customer: str = ""
    ) -> list[int]:
        """Return the jobs of unconfirmed orders, by number.

        Args:
            connection: An open transaction.
            mail_domain: Only orders with email addresses at this registered domain.
            like: Only orders from the same network as this job.
            customer: Only orders of the email address with this hash.
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
        query = select(columns.job).where(and_(True, *conditions)).order_by(columns.job)
        return list(connection.execute(query).scalars())


def _count_pending(connection: Connection, *conditions: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(PENDING_ORDERS).where(*conditions)
    return int(connection.execute(query).scalar_one())


def _hash_domain(domain: str) -> str:
    return sha256(domain.encode()).hexdigest()


class LookupRateLimit:
    """Limits look-ups per client network. Counts are in the database, so all web processes share them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def try_acquire(self, client: str) -> bool:
        """Count a look-up and return True, or return False if the limit is reached. Raises as `Database` does."""
        with self._database.writing() as connection:
            self._database.lock_names(connection, f"{_LOOKUP_TALLY} {client}")
            now = self._database.now(connection)
            if count_tallies(connection, _LOOKUP_TALLY, client, now - _LOOKUP_WINDOW_SECONDS) >= _MAX_LOOKUPS:
                return False
            is_expired = and_(TALLIES.c.kind == _LOOKUP_TALLY, TALLIES.c.at < now - _LOOKUP_WINDOW_SECONDS)
            connection.execute(delete(TALLIES).where(is_expired))
            connection.execute(insert(TALLIES).values(kind=_LOOKUP_TALLY, who=client, at=now))
        return True
