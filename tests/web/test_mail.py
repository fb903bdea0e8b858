"""Emails to owners through a real mail server: TLS, retries, and no secrets in logs."""

import logging
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import getaddresses
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.external.smtp_sink import PASSWORD, USER, run_smtp_sink
from tests.jobs.in_memory_store import ORDER
from tests.jobs.service_process import ORDER as SENT
from tests.jobs.service_process import run_service
from tests.recovery.sample_site import sample_site, serve_site
from tests.virtual_clock import VirtualClock
from tests.waiting import wait_until
from tests.webui.visitor import Visitor
from unlost.errors import UsageError
from unlost.jobs import (
    Database,
    Job,
    JobProgress,
    JobState,
    JobStore,
    LinkSigner,
    MailKind,
    MailOutbox,
    OrderLimits,
    PendingMail,
    RetentionPolicy,
    file_url,
    load_secret,
    parse_order,
    states,
)
from unlost.jobs.models import _MAIL
from unlost.mail import MailError, MailRenderer, MailSender, MailServer, SmtpConnectionPool, parse_mail_server
from unlost.web.jobs_api import _download_name


def letter(to: str = "me@example.org") -> EmailMessage:
    """Return a message."""
    message = EmailMessage()
    message["To"], message["From"], message["Subject"] = to, "unlost@example.org", "x"
    message.set_content("hello")
    return message


def server(scheme: str, port: int, ca: Path | None, password: str = PASSWORD) -> MailServer:
    """Return the settings of the mail server."""
    user = f"{USER}@" if scheme == "smtp" else ""
    return parse_mail_server(f"{scheme}://{user}127.0.0.1:{port}", "unlost@example.org", password, ca)


@pytest.mark.parametrize(("tls", "scheme"), [("starttls", "smtp"), ("smtps", "smtps"), ("none", "smtp+plain")])
def test_email_is_delivered(tmp_path: Path, tls: str, scheme: str) -> None:
    """By STARTTLS, by implicit TLS, and locally without TLS."""
    with run_smtp_sink(tmp_path, tls=tls) as sink:
        server(scheme, sink.port, sink.ca).send(letter())
    assert [each["Subject"] for each in sink.messages] == ["x"]


def test_nothing_is_sent_without_tls(tmp_path: Path) -> None:
    """A server without TLS or with an untrusted certificate gets neither email nor password."""
    with run_smtp_sink(tmp_path, tls="none") as sink, pytest.raises(MailError, match="STARTTLS"):
        server("smtp", sink.port, None).send(letter())
    with run_smtp_sink(tmp_path) as sink, pytest.raises(MailError, match="certificate"):
        server("smtp", sink.port, None).send(letter())
    with run_smtp_sink(tmp_path, cert_for="127.0.0.2") as sink, pytest.raises(MailError, match="certificate"):
        server("smtp", sink.port, sink.ca).send(letter())
    assert sink.messages == []
    with pytest.raises(UsageError, match="everybody to read"):
        parse_mail_server("smtp+plain://me@localhost", "a@b")


def test_login_error_does_not_contain_the_password(tmp_path: Path) -> None:
    """The repr of the server does not contain it, either."""
    with run_smtp_sink(tmp_path) as sink:
        wrong = server("smtp", sink.port, sink.ca, "wrong-secret")
        with pytest.raises(MailError, match="refused the login") as raised:
            wrong.send(letter())
    assert "wrong-secret" not in f"{raised.value!r} {wrong!r}"


@pytest.fixture
def post(tmp_path: Path) -> Iterator[tuple[JobStore, MailOutbox, MailRenderer, VirtualClock]]:
    """Create a job store and an outbox with emails."""
    clock = VirtualClock()
    database = Database(file_url(tmp_path / "jobs.sqlite"), clock)
    database.prepare()
    jobs = JobStore(database)
    texts = MailRenderer(LinkSigner(load_secret(tmp_path / "secret")), jobs.retention, "https://recover.example.org")
    yield jobs, MailOutbox(database), texts, clock
    database.close()


@pytest.mark.parametrize("name", ["Win: http://evil.example", "Call 0800 1234", "Dr. Zoë O'Neill-Smith"])
def test_emails_contain_no_customer_text(
    post: tuple[JobStore, MailOutbox, MailRenderer, VirtualClock], name: str
) -> None:
    """No name, path or credentials of a URL; the host is shortened, marked as code, and not in the subject."""
    jobs, outbox, texts, clock = post
    host = f"{'call-0800-now.' * 5}evil.example"
    sent = {"url": f"http://log-in:here@{host}/your-account-is-locked?now", "mail": "me@example.org", "name": name}
    jobs.submit(parse_order(sent, ()))
    (due,) = outbox.claim()
    message = texts.render_message(due, "unlost@example.org", clock.now())
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None
    assert html is not None
    displayed = f"…{host[-50:]}/…"
    assert f"`{displayed}`" in plain.get_content()
    assert f"<code>{displayed}</code>" in html.get_content()
    for text in (plain.get_content(), unescape(html.get_content()), message["Subject"]):
        assert not [each for each in (name, "locked", "log-in", host) if each in text]
    assert "evil" not in message["Subject"]


def test_emails_have_unsubscribe_links(post: tuple[JobStore, MailOutbox, MailRenderer, VirtualClock]) -> None:
    """By headers (RFC 8058) and by a link, whose URL is not wrapped."""
    jobs, outbox, texts, clock = post
    jobs.submit(ORDER)
    (due,) = outbox.claim()
    message = texts.render_message(due, "unlost@example.org", clock.now())
    raw = message.as_bytes(policy=message.policy).decode()
    (stop,) = re.findall(r"^List-Unsubscribe: <(https://recover\.example\.org/mail/stop/[\w-]+)>\r$", raw, re.MULTILINE)
    assert "\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in raw
    assert f"    {stop}\n" in message.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    assert f'href="{stop}"' in message.get_body(("html",)).get_content()  # type: ignore[union-attr]


def test_email_texts(post: tuple[JobStore, MailOutbox, MailRenderer, VirtualClock], tmp_path: Path) -> None:
    """Every email has its link in text and HTML; user input is escaped and does not change headers."""
    jobs, outbox, texts, clock = post
    evil = replace(ORDER, name="<b>Me</b>", url="http://lost.example/?a=<script>&b")
    number = jobs.submit(evil).number
    with (
        run_smtp_sink(tmp_path) as sink,
        closing(MailSender(outbox, texts, server("smtp", sink.port, sink.ca), clock, lambda _: None)) as sending,
    ):
        assert sending.send_batch()
        clock.advance(86_400)
        jobs.apply_retention()
        assert not sending.send_batch(), "unconfirmed orders get no reminders"
        jobs.confirm(number)
        jobs.claim("w", 60)
        jobs.renew_lease(number, 1, 60, JobProgress(12, 1, 0))
        jobs.change(number, lambda job, now: states.finish(job, 1, now, (), {}, "a: incomplete listing"))
        assert sending.send_batch()
        clock.advance(8 * 86_400)
        jobs.apply_retention()
        while sending.send_batch():
            pass
        jobs.retry(number)
        jobs.claim("w", 60)
        jobs.change(number, lambda job, now: states.fail(job, 2, now, "no archive"))
        assert sending.send_batch()
        assert not sending.send_batch()
    subjects = [each["Subject"] for each in sink.messages]
    assert subjects == [
        f"Confirm your recovery request no. {number}",
        f"Recovery no. {number} is finished",
        f"Reminder: download recovery no. {number}",
        f"Recovery no. {number} failed",
    ]
    for each in sink.messages:
        plain, html = each.get_body(("plain",)), each.get_body(("html",))
        assert plain is not None
        assert html is not None
        (link,) = re.findall(r"https://recover\.example\.org/jobs/[\w/-]+", plain.get_content())
        stop = each["List-Unsubscribe"].strip("<>")
        assert re.findall(r'href="([^"]*)"', html.get_content()) == [link, stop], "and nothing that a user typed"
        assert "<script>" not in html.get_content()
        assert "<b>" not in html.get_content()
        assert (each["To"], each["Auto-Submitted"]) == ("me@example.org", "auto-generated")
    assert len({each["Message-ID"] for each in sink.messages}) == 4
    complete = sink.messages[1].get_body(("plain",))
    assert complete is not None
    assert "12 files" in complete.get_content()
    assert "a: incomplete listing" in complete.get_content()


def test_temporary_failure_is_retried(
    post: tuple[JobStore, MailOutbox, MailRenderer, VirtualClock], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Temporary errors are retried, permanent ones are not; logs contain no links or passwords."""
    jobs, outbox, texts, clock = post
    jobs.submit(ORDER)
    jobs.submit(replace(ORDER, mail="nobody@example.org"))
    with (
        run_smtp_sink(tmp_path) as sink,
        caplog.at_level(logging.INFO),
        closing(MailSender(outbox, texts, server("smtp", sink.port, sink.ca), clock, lambda _: None)) as sending,
    ):
        sink.full_mailbox = "me@example.org"
        assert sending.send_batch()
        sink.full_mailbox = ""
        assert not sending.send_batch(), "one waits, one is given up"
        clock.advance(61)
        assert sending.send_batch()
        assert [each["To"] for each in sink.messages] == ["me@example.org"]
        clock.advance(86_400)
        assert not sending.send_batch()
    assert outbox.count_waiting() == 0
    assert "452" in caplog.text
    assert "given up" in caplog.text
    assert "/jobs/" not in caplog.text
    assert PASSWORD not in caplog.text


def test_connections_are_reused(post: tuple[JobStore, MailOutbox, MailRenderer, VirtualClock], tmp_path: Path) -> None:
    """A hundred emails use a few connections; a connection that the server closed is reopened."""
    jobs, outbox, texts, clock = post
    jobs.rules.set_limits(OrderLimits(per_mail=0, per_client=0, per_address=0))
    for number in range(100):
        jobs.submit(replace(ORDER, mail=f"{number}@gmail.com"))
    with (
        run_smtp_sink(tmp_path) as sink,
        closing(MailSender(outbox, texts, server("smtp", sink.port, sink.ca), clock, lambda _: None)) as sending,
    ):
        while sending.send_batch():
            pass
        assert sorted(each["To"] for each in sink.messages) == sorted(f"{n}@gmail.com" for n in range(100))
        assert len(sink.connections) <= 4
    with run_smtp_sink(tmp_path) as first:
        connections = SmtpConnectionPool(server("smtp", first.port, first.ca))
        connections.send(letter())
        for each in connections._idle:
            each.connection.sock.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]
        connections.send(letter())
        connections.close()
    assert (len(first.messages), len(first.connections)) == (2, 2)


def test_unrenderable_email_does_not_block_others(
    post: tuple[JobStore, MailOutbox, MailRenderer, VirtualClock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is dropped, and the next one is sent."""
    jobs, outbox, texts, clock = post
    jobs.submit(replace(ORDER, mail="odd@example.org"))
    jobs.submit(ORDER)
    write = MailRenderer.render_message

    def faulty(texts: MailRenderer, letter: PendingMail, sender: str, now: float) -> EmailMessage:
        if letter.job.order.mail.startswith("odd"):
            raise IndexError("of the library")
        return write(texts, letter, sender, now)

    monkeypatch.setattr(MailRenderer, "render_message", faulty)
    with (
        run_smtp_sink(tmp_path) as sink,
        closing(MailSender(outbox, texts, server("smtp", sink.port, sink.ca), clock, lambda _: None)) as sending,
    ):
        while sending.send_batch():
            pass
    assert [each["To"] for each in sink.messages] == ["me@example.org"]
    assert outbox.count_waiting() == 0


@given(
    mail=st.from_regex(_MAIL, fullmatch=True),
    name=st.text(max_size=200),
    host=st.from_regex(r"[a-z0-9äß一-三-]{1,60}(\.[a-z0-9-]{1,20}){0,3}", fullmatch=True),
)
def test_email_is_rendered_for_any_order(mail: str, name: str, host: str) -> None:
    """Every valid order gives an email with one recipient and single-line headers."""
    try:
        order = parse_order({"url": f"http://{host}/", "mail": mail, "name": name}, ())
    except UsageError:
        return
    texts = MailRenderer(LinkSigner(b"x" * 32), RetentionPolicy(), "https://recover.example.org")
    due = PendingMail(1, MailKind.CONFIRM, Job(1, order, JobState.PENDING, 0.0, 0.0), 1)
    message = texts.render_message(due, "unlost@example.org", 0.0)
    assert message["To"] == order.mail
    read = message_from_bytes(message.as_bytes(policy=policy.SMTP), policy=policy.default)
    assert sorted(read.keys()) == sorted(message.keys())
    assert read["List-Unsubscribe"] == message["List-Unsubscribe"]
    assert getaddresses(read.get_all("To", [])) == [("", order.mail)]


def test_service_sends_emails(tmp_path: Path) -> None:
    """The link in an email opens the confirmation page; no secret is logged."""
    with serve_site(sample_site()) as lost, run_smtp_sink(tmp_path) as sink:
        more = ("--smtp", f"smtp://{USER}@127.0.0.1:{sink.port}", "--mail-from", "unlost@example.org")
        secret = {"UNLOST_SMTP_PASSWORD": PASSWORD}
        registry = lost.registry(tmp_path)
        with run_service(tmp_path, registry, *more, "--smtp-ca", str(sink.ca), "--workers", "0", env=secret) as service:
            key = service.request("POST", "/api/jobs", SENT).json["key"]
            wait_until(lambda: bool(sink.messages))
            body = sink.messages[0].get_body(("plain",))
            assert body is not None
            link = re.findall(r"http://127\.0\.0\.1:\d+(/jobs/confirm/\S+)", body.get_content())[0]
            visitor = Visitor(service)
            visitor.get(link)
            assert visitor.post(link, {}).status == 303
            assert service.status(key)["state"] == "queued"
        logged = "".join(service.lines)
    assert link not in logged
    assert PASSWORD not in logged
    assert key not in logged


def test_removed_job_gets_no_email(post: tuple[JobStore, MailOutbox, MailRenderer, VirtualClock]) -> None:
    """Error messages of the mail server are deleted and not stored later."""
    jobs, outbox, *_ = post
    number = jobs.submit(ORDER).number
    (due,) = outbox.claim()
    outbox.record_failure(due, f"550 no such user {ORDER.mail}", is_final=False)
    jobs.change(number, states.remove)
    outbox.record_failure(due, f"550 no such user {ORDER.mail}", is_final=True)
    assert [(each.mail, each.message, each.due) for each in outbox.log(number)] == [("", "", None)]


def test_international_host_in_email(post: tuple[JobStore, MailOutbox, MailRenderer, VirtualClock]) -> None:
    """It is shown in Unicode in emails and in ASCII in file names."""
    jobs, outbox, texts, _ = post
    job = jobs.submit(parse_order({"url": "http://bücher.example/", "mail": "me@example.org"}, ()))
    (due,) = outbox.claim()
    body = texts.render_message(due, "unlost@example.org", 0.0).get_body(("plain",))
    assert body is not None
    assert "`xn--bcher-kva.example`" in body.get_content()
    assert _download_name(job, "zip") == "xn--bcher-kva.example.zip"
