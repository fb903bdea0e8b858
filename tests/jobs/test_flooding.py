"""Protection against floods of orders: limits, fair sharing between networks, and a fair queue of emails."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_network

import pytest
from starlette.requests import HTTPConnection

from tests.jobs.in_memory_store import ORDER
from tests.virtual_clock import VirtualClock
from unlost.errors import BusyError, LimitError, UsageError
from unlost.jobs import (
    ClientIdentifier,
    Database,
    Job,
    JobState,
    JobStore,
    LinkSigner,
    MailOutbox,
    OrderLimits,
    OrderOrigin,
    hash_customer,
    states,
)

FREE = {"per_mail": 0, "per_client": 0, "per_address": 0}


@pytest.fixture
def clock() -> VirtualClock:
    """Return a virtual clock."""
    return VirtualClock()


@pytest.fixture
def jobs(url: str, clock: VirtualClock) -> Iterator[JobStore]:
    """Create a store without daily limits."""
    database = Database(url, clock)
    database.prepare()
    found = JobStore(database, max_unfinished=10_000)
    found.rules.set_limits(OrderLimits(**FREE))
    yield found
    database.close()


def submit_order(jobs: JobStore, mail: str, network: str = "", wide: str = "") -> Job:
    """Submit an unconfirmed order."""
    return jobs.submit(replace(ORDER, mail=mail), origin=OrderOrigin("", network, wide))


def test_default_limits_of_unconfirmed_orders(jobs: JobStore) -> None:
    """10 per email address, 20 per network, 100 per IPv6 /40, 200 per mail domain; confirmed orders do not count."""
    cases: dict[str, tuple[int, Callable[[int], Job]]] = {
        "pending_mail": (10, lambda n: submit_order(jobs, f"me+{n}@mail.example", f"a{n}")),
        "pending_network": (20, lambda n: submit_order(jobs, f"b{n}@gmail.com", "b")),
        "pending_domain": (200, lambda n: submit_order(jobs, f"c{n}@s{n}.flood.example", f"c{n}")),
    }
    for kind, (most, order) in cases.items():
        first = order(0)
        for number in range(1, most):
            order(number)
        with pytest.raises(LimitError) as refused:
            order(most)
        assert refused.value.kind == kind
        jobs.confirm(first.number)
        order(most)
    for number in range(100):
        submit_order(jobs, f"d{number}@gmail.com", f"d{number // 20}", "wide")
    with pytest.raises(LimitError) as refused:
        submit_order(jobs, "d@gmail.com", "d-other", "wide")
    assert refused.value.kind == "pending_network"
    for number in range(201):
        submit_order(jobs, f"e{number}@gmail.com", f"e{number}")  # a large provider's domain has no bound


def test_limits_of_unconfirmed_orders_are_configurable(jobs: JobStore) -> None:
    """New limits apply at once; 0 disables a limit."""
    jobs.rules.set_limits(OrderLimits(**FREE, pending_per_mail=1, pending_per_network=0))
    submit_order(jobs, "me@mail.example", "a")
    with pytest.raises(LimitError):
        submit_order(jobs, "me@mail.example", "b")
    for number in range(30):
        submit_order(jobs, f"{number}@gmail.com", "a")


def test_total_limit_is_shared_fairly_between_networks(jobs: JobStore) -> None:
    """At the total limit, the network with the most orders loses one to a network with few; it gets no new ones."""
    jobs.rules.set_limits(OrderLimits(**FREE, pending_total=10))
    flood = [submit_order(jobs, f"{n}@gmail.com", "flood").number for n in range(9)]
    other = submit_order(jobs, "o@gmail.com", "other").number
    mine = [submit_order(jobs, f"m{n}@gmail.com", "mine").number for n in range(4)]
    found = {number: jobs.get(number).state for number in (*flood, other, *mine)}
    assert [number for number in flood if found[number] is JobState.PENDING] == flood[:5]
    assert all(found[number] is JobState.PENDING for number in (other, *mine))
    with pytest.raises(BusyError):
        submit_order(jobs, "f@gmail.com", "flood")
    assert jobs.count_by_state()[JobState.PENDING] == 10


def test_bulk_deletion_of_unconfirmed_orders(jobs: JobStore) -> None:
    """All, those of a mail domain, or those from the network of a job; confirmed orders are retained."""
    a = [submit_order(jobs, f"{n}@x.evil.example", f"a{n}").number for n in range(3)]
    b = [submit_order(jobs, f"{n}@gmail.com", "b").number for n in range(3)]
    c = [submit_order(jobs, f"c{n}@gmail.com", f"c{n}").number for n in range(3)]
    jobs.confirm(c[0])
    jobs.confirm(a[0])
    assert jobs.remove_pending(mail_domain="evil.example") == 2
    assert jobs.remove_pending(like=b[0]) == 3
    assert jobs.remove_pending() == 2
    assert [jobs.get(number).state.value for number in (*a, *b, *c)] == (
        ["queued", "removed", "removed"] + ["removed"] * 3 + ["queued", "removed", "removed"]
    )
    assert MailOutbox(jobs.database).claim() == []


def test_outbox_is_a_fair_queue(jobs: JobStore, clock: VirtualClock) -> None:
    """Emails for other networks are next, however many one network caused before."""
    outbox = MailOutbox(jobs.database)
    for network in ("x", "y"):
        for number in range(20):
            submit_order(jobs, f"{network}{number}@gmail.com", network)
    clock.advance(10)
    first = outbox.claim(4)
    outbox.mark_sent(first)
    assert {mail.job.order.mail[0] for mail in first} == {"x", "y"}
    submit_order(jobs, "me@gmail.com", "mine")
    assert outbox.claim(4)[0].job.order.mail == "me@gmail.com"


def test_claims_of_a_killed_process_expire(jobs: JobStore, clock: VirtualClock) -> None:
    """Claims of a live process are renewed as long as it needs."""
    outbox = MailOutbox(jobs.database)
    submit_order(jobs, "me@gmail.com")
    submit_order(jobs, "you@gmail.com")
    (mine,) = outbox.claim(1)
    (lost,) = outbox.claim(1)
    for _ in range(5):
        clock.advance(20)
        outbox.renew({mine.number})
    assert [mail.number for mail in outbox.claim()] == [lost.number]
    outbox.mark_sent([mine])
    outbox.renew({mine.number})
    clock.advance(1_000)
    assert [mail.number for mail in outbox.claim()] == [lost.number]


def test_unsubscribed_address_gets_no_email(jobs: JobStore) -> None:
    """Pending emails are dropped and orders rejected until the address is subscribed again."""
    outbox = MailOutbox(jobs.database)
    pending = submit_order(jobs, "me@mail.example").number
    jobs.submit(replace(ORDER, mail="me@mail.example"), is_confirmed=True)
    claimed = jobs.claim("w", 60)
    assert claimed is not None
    jobs.unsubscribe(hash_customer("Me+x@mail.example"))
    jobs.unsubscribe(hash_customer("me@mail.example"))
    assert jobs.get(pending).state is JobState.REMOVED
    jobs.change(claimed.number, lambda job, now: states.finish(job, 1, now, (), {}))
    assert outbox.claim() == []
    with pytest.raises(UsageError, match="wants no email"):
        submit_order(jobs, "me@mail.example")
    jobs.resubscribe(hash_customer("me@mail.example"))
    submit_order(jobs, "me@mail.example")
    assert len(outbox.claim()) == 1


@pytest.mark.parametrize("ip_address", ["192.0.2.1", "2001:db8::1"])
def test_client_port_is_ignored(ip_address: str) -> None:
    """Some proxies add the port; otherwise all clients would share one limit."""
    clients = ClientIdentifier(LinkSigner(b"x" * 32), proxies=[ip_network("127.0.0.0/8")])

    def origin(forwarded: str) -> OrderOrigin:
        headers = [(b"x-forwarded-for", forwarded.encode())]
        return clients.order_origin(HTTPConnection({"type": "http", "headers": headers, "client": ("127.0.0.1", 1)}))

    with_port = f"[{ip_address}]:4711" if ":" in ip_address else f"{ip_address}:4711"
    assert origin(with_port) == origin(ip_address) != origin("192.0.3.1")
