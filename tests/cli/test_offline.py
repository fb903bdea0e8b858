"""Commands without a network: one message, exit code 4, and no remaining files."""

import json
import re
import socket
from pathlib import Path

import pytest

from tests.cli.test_archives import entry
from tests.external.process import free_port
from tests.warc.warcs import member, record
from unlost.check import VisitDatabase, VisitHistory
from unlost.cli import open_limit_store, run
from unlost.http import RateLimitState, pool, url
from unlost.watch import LossStore

OFFLINE = "unlost: You seem to be offline: none of 14 archives could be reached (name resolution failed)\n"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let name resolution fail, and work in an empty folder."""

    async def failing(_: object) -> list[pool.AddressInfo]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(pool, "_getaddrinfo", failing)
    monkeypatch.setenv("UNLOST_CONTACT", "me@example.org")
    monkeypatch.delenv("UNLOST_ARCHIVES", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["recover", "lost.example"],
        ["recover", "lost.example", "--dry-run"],
        ["recover", "lost.example", "--policy", "naive"],
        ["recover", "lost.example", "--policy", "exhaustive", "-o", "folder"],
        ["timemap", "http://lost.example/"],
        ["timegate", "http://lost.example/", "2014"],
        ["archives", "test"],
        ["check", "http://lost.example/"],
    ],
    ids=" ".join,
)
def test_offline_prints_one_message(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """No warning for each archive, no folder, no block, and nothing on stdout."""
    monkeypatch.delenv("UNLOST_CONTACT")
    assert run(arguments) == 4
    output = capfd.readouterr()
    assert output.out == ""
    # An estimate queries only archives that list sites; a connectivity probe, those with TLS.
    assert re.sub(r"of \d+ arch", "of 14 arch", output.err) == OFFLINE
    assert not list(tmp_path.iterdir())
    assert open_limit_store().read("web.archive.org").blocked_until == 0


def test_offline_requests_do_not_count_towards_the_quota(capfd: pytest.CaptureFixture[str]) -> None:
    """Of this command or the next."""
    assert run(["archives", "test", "archive.today"]) == 4
    counted = open_limit_store().read("archive.today").counted
    assert [count for _, count in counted.values()] == [0]
    assert "captcha" not in capfd.readouterr().err


def test_offline_recovery_keeps_its_folder(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Results of an earlier run are not modified."""
    warc = tmp_path / "site.warc.gz"
    page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<title>Here</title><p>Some words of a page."
    warc.write_bytes(member(record(page, uri="http://lost.example/")))
    registry = tmp_path / "r.toml"
    registry.write_text('[[archive]]\nid = "mine"\nname = "Mine"\nkind = "files"\nfolder = "site.warc.gz"\n')
    assert run(["recover", "lost.example", "--archives", "r.toml"]) == 0
    before = sorted(each.name for each in (tmp_path / "lost.example.recovery").iterdir())
    capfd.readouterr()
    assert run(["recover", "lost.example"]) == 4
    assert capfd.readouterr().err == OFFLINE
    assert sorted(each.name for each in (tmp_path / "lost.example.recovery").iterdir()) == before


def test_local_sources_are_used_offline(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The archives on the network are one warning."""
    page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<title>Here</title><p>Some words of a page."
    (tmp_path / "site.warc.gz").write_bytes(member(record(page, uri="http://lost.example/")))
    mine = '[[archive]]\nid = "mine"\nname = "Mine"\nkind = "files"\nfolder = "site.warc.gz"\n'
    (tmp_path / "r.toml").write_text(f'extends = "default"\n{mine}')
    assert run(["recover", "lost.example", "--archives", "r.toml", "--json"]) == 4
    output = capfd.readouterr()
    assert json.loads(output.out.splitlines()[-1])["recovered"] == 1
    assert output.err.count("You seem to be offline: none of 14 archives could be reached") == 1
    assert "archive.org" not in output.err


def test_refused_local_connection_is_not_offline(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It is reported as a refused connection."""
    (tmp_path / "r.toml").write_text(entry("one", free_port()) + entry("two", free_port()))
    assert run(["archives", "test", "--archives", "r.toml"]) == 4
    output = capfd.readouterr()
    assert output.out.count("\trefused\t") == 2
    assert "offline" not in output.err


def test_firewall_that_refuses_all_hosts_is_offline(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No archive is blocked for later commands."""

    async def here(place: url.HostPort) -> list[pool.AddressInfo]:
        return [pool.literal_address_info(url.HostPort("127.0.0.1", place.port))]

    monkeypatch.setattr(pool, "_getaddrinfo", here)
    port = free_port()
    lines = [entry(name, port).replace("127.0.0.1", f"{name}.example") for name in ("one", "two")]
    (tmp_path / "r.toml").write_text("".join(lines).replace("limits = []\n", ""))
    for _ in range(2):
        assert run(["recover", "lost.example", "--archives", "r.toml"]) == 4
        reason = "none of 2 archives could be reached (connection refused)"
        assert capfd.readouterr().err == f"unlost: You seem to be offline: {reason}\n"
    assert open_limit_store().read("one").blocked_until == open_limit_store().read("two").blocked_until == 0
    assert open_limit_store().read("three") == RateLimitState()
    assert not (tmp_path / "lost.example.recovery").exists()


def test_offline_watch_counts_no_loss(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """No visit is stored, and no hook runs."""
    arguments = ["watch", "http://site.example/", "--once", "--delay", "0", "--on-loss", f"touch {tmp_path / 'lost'}"]
    for _ in range(3):
        assert run(arguments) == 4
        output = capfd.readouterr()
        assert output.out == ""
        assert re.sub(r"of \d+ arch", "of 14 arch", output.err) == OFFLINE.replace(
            "\n", ". No visit was counted: it is not known whether the site is there\n"
        )
    assert not (tmp_path / "lost").exists()
    with VisitDatabase(tmp_path / "site.example.watch.sqlite", is_read_only=True) as file:
        ((number, _),) = file.sites()
        history = VisitHistory(file, number)
        assert (history.finished_visits(), history.unfinished_visit()) == ([], None)
        assert LossStore(file, number).all_losses() == []


@pytest.mark.parametrize("name", ["nosuch.txt", "./nosuch", "folder/nosuch", "sites.csv"])
def test_missing_list_of_sites_is_reported(name: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file name is not taken for a host."""
    assert run(["watch", name, "--once"]) == 3
    reason = "cannot be read: No such file or directory: give the URL of a site, or a file with URLs, one a line"
    assert capfd.readouterr().err == f"unlost: {name.removeprefix('./')}: {reason}\n"
    assert not list(tmp_path.iterdir())
