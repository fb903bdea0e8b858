"""Limits of orders: per day, by size and duration, and blocked sites."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.jobs.in_memory_store import ORDER
from tests.virtual_clock import VirtualClock
from unlost.errors import BlockedError, LimitError, UsageError
from unlost.jobs import (
    Database,
    JobQuota,
    JobState,
    JobStore,
    OrderLimits,
    OrderOrigin,
    OrderRules,
    file_url,
    is_host_below,
    is_private_host,
    list_events,
    parse_domain,
    parse_order,
    seconds_worked,
    states,
)

DAY = 86_400.0


@pytest.mark.parametrize("kind", ["mail", "client", "address"])
def test_daily_limits(url: str, kind: str) -> None:
    """Orders per email address, network and site are limited within 24 hours."""
    clock = VirtualClock(1_700_000_000)
    database = Database(url, clock)
    database.prepare()
    jobs = JobStore(database)
    jobs.rules.set_limits(replace(OrderLimits(0, 0, 0), **{f"per_{kind}": 2}))
    same = {"mail": ("me@example.org", "x", "http://{}.example/"), "client": ("{}@example.org", "x", "http://{}.example/"),
            "address": ("{}@example.org", "{}", "http://lost.example/{}")}[kind]  # fmt: skip

    def submit(number: int) -> None:
        mail, client, site_url = (each.format(number) for each in same)
        jobs.submit(replace(ORDER, mail=mail, url=site_url), origin=OrderOrigin(client))

    submit(1)
    submit(2)
    with pytest.raises(LimitError) as refused:
        submit(3)
    assert refused.value.kind == kind
    jobs.submit(replace(ORDER, mail="other@example.org", url="http://other.example/"), origin=OrderOrigin("other"))
    clock.advance(DAY + 1)
    jobs.apply_retention()
    submit(4)
    jobs.submit(replace(ORDER, mail="me@example.org"), is_confirmed=True, origin=OrderOrigin("x"))  # an administrator's
    database.close()


@pytest.mark.parametrize(
    "site_url",
    [
        "localhost", "http://localhost:8080/x", "http://LOCALHOST./", "http://a.localhost/", "http://intranet/",
        "http://nas.local/", "http://www.box.lan/", "http://router.home.arpa/", "http://db.internal/",
        "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/",
        "http://0.0.0.0/", "http://10.1.2.3/", "http://172.16.0.1/", "http://192.168.0.1:81/", "http://169.254.169.254/",
        "http://100.64.0.1/", "http://224.0.0.1/", "http://[::1]/", "http://[::]/", "http://[fe80::1]/",
        "http://[fd00::1]/", "http://[::ffff:10.0.0.1]/", "http://[2002:7f00:1::]/",
        "http://[::127.0.0.1]/", "http://[64:ff9b::10.0.0.1]/", "http://[fec0::1]/",
    ],
)  # fmt: skip
def test_private_hosts_are_rejected(tmp_path: Path, site_url: str) -> None:
    """Also for administrators, unless a setting allows them."""
    database = Database(file_url(tmp_path / "jobs.sqlite"))
    database.prepare()
    order = parse_order({"url": site_url, "mail": "me@example.org"}, ())
    for is_confirmed in (False, True):
        with pytest.raises(BlockedError, match="url: expected a public site"):
            JobStore(database).submit(order, is_confirmed=is_confirmed)
    assert JobStore(database, allows_private=True).submit(order).number == 1
    database.close()


@pytest.mark.parametrize("host", ["lost.example", "local.lost.example", "8.8.8.8", "[2606:4700::1111]", "home.page"])
def test_public_hosts_are_not_private(host: str) -> None:
    """Names that look similar, and public IP addresses."""
    assert not is_private_host(host)


@pytest.mark.parametrize(
    ("mail", "stored"),
    [
        ("me@bücher.example", "me@xn--bcher-kva.example"),
        ("Me+x@BÜCHER.Example", "Me+x@xn--bcher-kva.example"),
        ("me@www.例え.jp", "me@www.xn--r8jz45g.jp"),
        ("me@हिन्दी.example", "me@xn--j2bd4cyah0f.example"),
        ("me@xn--bcher-kva.example", "me@xn--bcher-kva.example"),
        ("Me@Example.org", "Me@Example.org"),
    ],
)
def test_international_mail_domains_are_encoded(mail: str, stored: str) -> None:
    """Their domains are stored in ASCII, which every mail server accepts."""
    assert parse_order({"url": "lost.example", "mail": mail}, ()).mail == stored


@pytest.mark.parametrize("mail", ["mé@example.org", "me@bü cher.de", "me@bü:80", "me@ü@b", "me@ü/x", "me@" + "ü" * 254])
def test_invalid_mail_addresses_are_rejected(mail: str) -> None:
    """Also after the domain was encoded."""
    with pytest.raises(UsageError, match="mail: expected"):
        parse_order({"url": "lost.example", "mail": mail}, ())


def test_windows_file_names_are_the_default() -> None:
    """The default of orders."""
    order = {"url": "lost.example", "mail": "me@example.org"}
    assert [parse_order({**order, **more}, ()).windows for more in ({}, {"windows": False})] == [True, False]


def test_blocked_domains(url: str) -> None:
    """A domain and its subdomains are rejected, also for administrators; others are not."""
    database = Database(url)
    database.prepare()
    jobs, rules = JobStore(database), OrderRules(database)
    assert rules.block("https://WWW.Gone.example./x", "asked") == "gone.example"
    rules.block("b.gone.example", "asked")
    rules.block("gone.example", "asked again")
    assert [(each.domain, each.reason) for each in rules.list_blocked()] == [
        ("b.gone.example", "asked"), ("gone.example", "asked again"),
    ]  # fmt: skip
    for site_url in ("http://gone.example/", "https://a.b.gone.example:8080/x", "http://GONE.example"):
        assert rules.is_blocked(site_url)
        for is_confirmed in (True, False):
            with pytest.raises(BlockedError):
                jobs.submit(replace(ORDER, url=site_url), is_confirmed=is_confirmed)
    for site_url in ("http://notgone.example/", "http://example/", "http://gone.example.org/", "http://[::1]/"):
        assert not rules.is_blocked(site_url)
    rules.unblock("gone.example")
    assert rules.is_blocked("http://b.gone.example/")
    assert not rules.is_blocked("http://gone.example/")
    for wrong in ("", "a b", "x" * 300, "http://[::1]/", "..", "-a.example"):
        with pytest.raises(UsageError):
            parse_domain(wrong)
    database.close()


@pytest.mark.parametrize(
    "site_url",
    [
        "bücher.example", "http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/", "http://www.bücher.example./",
        "http://bücher\uff0eexample/", "http://%62ücher.example:99/", "http:///bücher..example/", "http://x@BÜCHER.example/a",
    ],
)  # fmt: skip
def test_block_applies_to_all_spellings_of_a_host(tmp_path: Path, site_url: str) -> None:
    """Every spelling of a blocked site's URL is rejected, counted and taken down."""
    database = Database(file_url(tmp_path / "jobs.sqlite"))
    database.prepare()
    jobs = JobStore(database)
    order = parse_order({"url": site_url, "mail": "me@example.org"}, ())
    job = jobs.submit(order)
    assert [each.number for each in jobs.list_below_domain(jobs.rules.block("bücher.example", "asked"))] == [job.number]
    with pytest.raises(BlockedError):
        jobs.submit(order)
    database.close()


def test_takedown_finds_all_jobs(url: str) -> None:
    """Jobs of the domain and its subdomains in any state except removed."""
    database = Database(url)
    database.prepare()
    jobs = JobStore(database)
    hosts = ("gone.example", "a.gone.example", "notgone.example")
    numbers = [jobs.submit(replace(ORDER, url=f"http://{host}/"), is_confirmed=True).number for host in hosts]
    assert [job.number for job in jobs.list_below_domain("gone.example")] == numbers[:2]
    assert is_host_below("http://a.gone.example/", "gone.example")
    assert jobs.recent_durations() == []
    database.close()


def test_event_log_of_a_job(url: str) -> None:
    """Every change of state and worker is logged in order, with its reason; renewals are not."""
    database = Database(url)
    database.prepare()
    jobs = JobStore(database)
    number = jobs.submit(ORDER).number
    jobs.confirm(number)
    claimed = jobs.claim("w", 60)
    assert claimed is not None
    jobs.renew_lease(number, claimed.generation, 60, claimed.progress)
    jobs.change(number, states.pause)
    jobs.change(number, states.resume)
    assert jobs.place(jobs.get(number)) == 1
    jobs.change(number, states.remove)
    found = [(each.what, each.detail) for each in list_events(database, number)]
    assert found == [
        ("pending", ""), ("queued", ""), ("processing", "w, generation 1"), ("paused", ""), ("queued", ""),
        ("removed", "cancelled"),
    ]  # fmt: skip
    assert jobs.get(number).state is JobState.REMOVED
    database.close()


def test_seconds_worked(url: str) -> None:
    """The time of all workers counts, including lost leases; waiting does not."""
    clock = VirtualClock(1_700_000_000)
    database = Database(url, clock)
    database.prepare()
    jobs = JobStore(database)
    number = jobs.submit(ORDER, is_confirmed=True).number
    assert seconds_worked(database, number) == 0
    jobs.claim("w", 60)
    clock.advance(50)
    jobs.change(number, lambda job, now: states.release(job, 1, now))
    clock.advance(DAY)
    jobs.claim("w", 60)
    clock.advance(DAY)  # it is lost: a minute counts
    jobs.claim("other", 60)
    clock.advance(5)
    assert seconds_worked(database, number) == 115
    assert [each.what for each in list_events(database, number)][-3:] == ["processing", "lost", "processing"]
    jobs.change(number, states.cancel)
    jobs.retry(number)
    clock.advance(DAY)
    jobs.claim("w", 60)
    clock.advance(1)
    assert seconds_worked(database, number) == 116
    database.close()


def test_recovery_stops_at_the_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops at the maximum size or duration and reports which; 0 disables a limit."""
    now = 0.0
    monkeypatch.setattr("unlost.jobs.worker.time.monotonic", lambda: now)
    large, endless = (
        JobQuota(tmp_path, OrderLimits(megabytes=1, hours=0)),
        JobQuota(tmp_path, OrderLimits(megabytes=0, hours=0)),
    )
    long = JobQuota(tmp_path / "nowhere", OrderLimits(megabytes=1, hours=2))
    (tmp_path / "a.warc.gz").write_bytes(bytes(600_000))
    assert not large.is_exceeded()
    (tmp_path / "b.warc.gz").write_bytes(bytes(600_000))
    assert not large.is_exceeded(), "it looks once a second"
    now = 7_199.0
    assert (large.is_exceeded(), large.reached) == (True, "it ended at 1 MB, which is the limit here")
    assert not long.is_exceeded()
    now = 7_201.0
    assert (long.is_exceeded(), long.reached) == (True, "it ended after 2 hours, which is the limit here")
    assert not endless.is_exceeded()
    assert JobQuota(tmp_path / "nowhere", OrderLimits(hours=2), worked=7_200.0).is_exceeded()
