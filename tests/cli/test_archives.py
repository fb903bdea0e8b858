"""`unlost archives`: the shipped registry without a network, and archives on this machine."""

import json
import math
import os
import pty
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.run import UNLOST, unlost
from tests.external import pywb
from tests.external.process import free_port
from tests.warc.warcs import member, record
from unlost.http import FileLimitStore

PAGED = (
    b'<http://m/20140101000000/http://a/>; rel="memento"; datetime="Wed, 01 Jan 2014 00:00:00 GMT",\n'
    b'<http://t/2>; rel="timemap"; type="application/link-format"'
)


def user_settings(folder: Path) -> dict[str, str]:
    """Return the settings of a user with a contact and a new home."""
    folder.mkdir()
    return {"UNLOST_CONTACT": "me@example.org", "UNLOST_HOME": str(folder)}


def entry(name: str, port: int, kind: str = "memento", path: str = "t/") -> str:
    """Return an archive on this machine for a registry."""
    base = f"http://127.0.0.1:{port}/{path}"
    return (
        f'[[archive]]\nid = "{name}"\nname = "{name.title()}"\nkind = "{kind}"\nlimits = []\n'
        f'timemap = "{base}timemap/link/"\ntimegate = "{base}"\n'
    )


# ---------------------------------------------------------------- list and show


def test_list_shows_enabled_archives() -> None:
    """TSV in the order of the registry; stderr has the number of disabled archives."""
    done = unlost("archives", "list")
    lines = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert lines[0] == ["web.archive.org", "wayback", "on", "35.8%", "Internet Archive"]
    assert len(lines) == 14
    assert {line[2] for line in lines} == {"on"}
    assert done.stderr.decode() == "unlost: 7 more are off: --all lists them\n"


def test_list_all_and_only_include_disabled_archives() -> None:
    """`--all` lists every archive, `--only` also those that are disabled."""
    everything = unlost("archives", "list", "--all")
    assert (everything.stdout.count(b"\n"), everything.stderr) == (21, b"")
    done = unlost("archives", "list", "--only", "swap.stanford.edu, perma.cc")
    assert done.stdout.decode().splitlines() == [
        "perma.cc\tmemento\ton\t1.3%\tPerma Archive",
        "swap.stanford.edu\tmemento\toff\t1.5%\tStanford Web Archive",
    ]


def test_list_is_a_table_on_a_terminal() -> None:
    """With headers."""
    terminal, child_terminal = pty.openpty()
    variables = {name: os.environ[name] for name in ("PATH", "UNLOST_HOME")}
    environment = {**variables, "TERM": "dumb", "COLUMNS": "100"}
    done = subprocess.run(
        [UNLOST, "archives", "list", "--only", "perma.cc"],
        stdout=child_terminal,
        stderr=child_terminal,
        check=False,
        env=environment,
    )
    os.close(child_terminal)
    output = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert done.returncode == 0
    assert "hit rate" in output
    assert "│ perma.cc │" in output


def test_show_prints_all_fields_with_sources() -> None:
    """One line for each field; numbers have their sources."""
    lines = unlost("archives", "show", "Arquivo.pt").stdout.decode().splitlines()
    facts = {tuple(line.split("\t")[:2]): line.split("\t")[2:] for line in lines}
    assert facts["search", "https://arquivo.pt/textsearch?q={terms}"] == []
    assert "pwa-technologies/wiki/APIs" in facts["limit", "250 in 60 s for index"][0]
    assert facts["rows at most", "100000"][0].startswith("Arquivo.pt's CDX server")
    assert facts["hit rate", "3.4%"]
    assert facts["asked", "yes"] == []
    quota = unlost("archives", "show", "archive.today").stdout.decode()
    assert "\nquota\t500 a day for index, replay, search\tour own choice" in quota
    assert "\nasked\tonly if it is named\n" in unlost("archives", "show", "pastpages.org").stdout.decode()


def test_json_has_every_field() -> None:
    """`list` prints JSON Lines, `show` one object."""
    lines = [json.loads(line) for line in unlost("archives", "list", "--json").stdout.splitlines()]
    assert len(lines) == 14
    details = json.loads(unlost("archives", "show", "web.archive.org", "--json").stdout)
    assert details == lines[0]
    assert details["limits"][0]["requests"] == 30
    assert details["limits"][0]["works"] == ["index"]
    assert details["lister"]["cap"]["value"] == 150_000


def test_unknown_archive_suggests_known_ids() -> None:
    """The message has the closest id and all others; stdout is empty."""
    for arguments in (["show", "perma"], ["list", "--only", "perma"], ["test", "perma"]):
        done = unlost("archives", *arguments)
        assert (done.returncode, done.stdout) == (2, b"")
        assert (
            b"no archive `perma` in the registry: did you mean `perma.cc`? There are web.archive.org, " in done.stderr
        )
    for ids in ("", "a,,b"):
        done = unlost("archives", "list", "--only", ids)
        assert (done.returncode, done.stdout) == (2, b"")


def test_invalid_registry_is_rejected(tmp_path: Path) -> None:
    """With exit code 3 and one line."""
    file = tmp_path / "mine.toml"
    file.write_text(entry("a", 1).replace("timegate", "timgate"))
    done = unlost("archives", "list", "--archives", str(file))
    message = f"unlost: {file}: archive `a`: timgate: no such field: did you mean `timegate`?\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (3, b"", message)


def test_unknown_memgator_fields_are_reported(tmp_path: Path) -> None:
    """The list is read without them."""
    file = tmp_path / "archives.json"
    file.write_text(json.dumps([{"id": "a", "timemap": "http://a.example/", "dormant": True}]))
    done = unlost("archives", "list", "--archives", str(file))
    assert (done.returncode, done.stdout) == (0, b"a\tmemento\ton\t-\ta\n")
    assert b"archive `a`: dormant: no field of MemGator's: passed over" in done.stderr


def test_precedence_of_registry_settings(tmp_path: Path) -> None:
    """Flag, command's variable, common variable, command's table, common table."""
    for name in ("flag", "own", "all", "table", "common"):
        (tmp_path / f"{name}.toml").write_text(entry(name, 1) + entry("other", 1))
    config = tmp_path / "config.toml"

    def listed(*arguments: str, **variables: str) -> str:
        done = unlost("archives", "list", *arguments, env={"UNLOST_HOME": str(tmp_path), **variables})
        assert done.stderr == b""
        return ",".join(line.split("\t")[0] for line in done.stdout.decode().splitlines())

    config.write_text(f'[common]\narchives = "{tmp_path}/common.toml"\n')
    assert listed() == "common,other"
    config.write_text(
        f'[common]\narchives = "{tmp_path}/common.toml"\nonly = ["other"]\n'
        f'[archives.list]\narchives = "{tmp_path}/table.toml"\n'
    )
    assert listed() == "other"
    assert listed("--only", "table") == "table"
    assert listed(UNLOST_ONLY="other,table") == "table,other"
    shared = {"UNLOST_ARCHIVES": f"{tmp_path}/all.toml"}
    assert listed(UNLOST_ONLY="all", **shared) == "all"
    own = {"UNLOST_ARCHIVES_LIST_ARCHIVES": f"{tmp_path}/own.toml"}
    assert listed(UNLOST_ONLY="own", **shared, **own) == "own"
    assert listed("--archives", f"{tmp_path}/flag.toml", UNLOST_ONLY="flag", **shared, **own) == "flag"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("common = 1\n", "common: expected a table of options"),
        ('[common]\narchive = "x"\n', "common.archive: no such option: expected one of archives, only, contact"),
        ("[common]\nonly = {}\n", "common.only: expected text"),
    ],
)
def test_invalid_common_settings_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    """Like all settings."""
    (tmp_path / "config.toml").write_text(text)
    done = unlost("archives", "list", env={"UNLOST_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (3, b"")
    assert message in done.stderr.decode()


# ---------------------------------------------------------------- test


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pywb.Pywb]:
    """Serve two captures of a page by pywb, with a home page that links to the map."""
    folder = tmp_path_factory.mktemp("pywb")
    later = record().replace(b"2014-02-10", b"2015-03-11")
    (folder / "a.warc.gz").write_bytes(member(record()) + member(later))
    done = unlost("index", "build", str(folder / "a.warc.gz"), "-o", str(folder / "a.cdxj"))
    assert done.returncode == 0
    (folder / "templates").mkdir()
    (folder / "templates" / "index.html").write_text(
        '<!DOCTYPE html><html><head><link rel="mementomap" href="/static/map.ukvs"></head><body>Welcome</body></html>'
    )
    with pywb.serve_index(folder / "a.cdxj", folder, folder) as server:
        yield server


def test_working_and_failing_archives_are_reported(archive: pywb.Pywb, tmp_path: Path) -> None:
    """The exit code says that one failed, and the map of the other is discovered."""
    dead = free_port()
    registry = tmp_path / "r.toml"
    registry.write_text(entry("dead", dead) + entry("alive", archive.port) + entry("off", dead) + "enabled = false\n")
    arguments = ("archives", "test", "--archives", str(registry), "--uri", "http://example.com/0")
    done = unlost(*arguments, "--json", env=user_settings(tmp_path / "one"))
    assert done.returncode == 4
    assert done.stderr.decode() == "unlost: 1 of 2 archives did not answer\n"
    found = {line["id"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(found) == {"dead", "alive"}
    working, failing = found["alive"], found["dead"]
    assert (working["outcome"], working["answered"], working["copies"], working["more"]) == ("answered", True, 2, False)
    assert (working["first"], working["last"]) == ("20140210000001", "20150311000001")
    home = f"http://127.0.0.1:{archive.port}/"
    assert working["maps"] == [{"address": f"{home}static/map.ukvs", "found": f"page {home}"}]
    assert 0 < working["seconds"] < 60
    assert (failing["outcome"], failing["answered"], failing["copies"]) == ("refused", False, 0)
    assert failing["message"]
    text = unlost(*arguments, env=user_settings(tmp_path / "two"))
    cells = {line.split("\t")[0]: line.split("\t")[1:] for line in text.stdout.decode().splitlines()}
    assert cells["alive"][:2] == ["answered", "2 copies, 20140210000001 to 20150311000001"]
    assert cells["alive"][3] == f"map {home}static/map.ukvs"
    assert cells["dead"][0] == "refused"


def test_refused_connection_blocks_the_archive(tmp_path: Path) -> None:
    """For all later commands, until `archives reset`."""
    registry = tmp_path / "r.toml"
    registry.write_text(entry("dead", free_port()).replace("limits = []\n", ""))
    settings = user_settings(tmp_path / "home")
    outcomes = []
    for _ in range(2):
        done = unlost("archives", "test", "--archives", str(registry), env=settings)
        outcomes.append(done.stdout.decode().split("\t")[1])
        assert done.returncode == 4
    assert outcomes == ["refused", "blocked"]
    assert "If it was only not running, `unlost archives reset dead` clears the block" in done.stderr.decode()
    assert unlost("archives", "reset", "dead", "--archives", str(registry), env=settings).returncode == 0
    done = unlost("archives", "test", "--archives", str(registry), env=settings)
    assert done.stdout.decode().split("\t")[1] == "refused"


def test_blocks_are_listed_and_cleared(tmp_path: Path) -> None:
    """`list` prints the reason and the end of a block, in local time on a terminal; `reset` clears it."""
    registry = tmp_path / "r.toml"
    registry.write_text(entry("one", 1) + entry("two", 2) + entry("three", 3))
    settings = {**user_settings(tmp_path / "home"), "TZ": "Europe/Berlin"}
    store = FileLimitStore(tmp_path / "home" / "state" / "limits")
    until = time.time() + 3600
    store.update("one", lambda ledger: (replace(ledger, blocked_until=until, blocked_for=3600.0), None))
    store.update("two", lambda ledger: (replace(ledger, wait_until=until, waits=1, due={"x": until}), None))

    def states() -> list[list[str]]:
        done = unlost("archives", "list", "--archives", str(registry), env=settings)
        return [line.split("\t")[5:] for line in done.stdout.decode().splitlines()]

    iso = datetime.fromtimestamp(math.ceil(until), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert states() == [[f"blocked until {iso}"], [f"told-to-wait until {iso}"], []]
    details = json.loads(unlost("archives", "show", "one", "--json", "--archives", str(registry), env=settings).stdout)
    assert (details["state"], details["until"]) == ("blocked", iso)
    terminal, child_terminal = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "COLUMNS": "160", **settings}
    command = [str(UNLOST), "archives", "list", "--archives", str(registry)]
    subprocess.run(command, stdout=child_terminal, stderr=child_terminal, check=True, env=environment)
    os.close(child_terminal)
    assert re.search(r"blocked until \d{4}-\d\d-\d\d \d\d:\d\d CES?T", os.read(terminal, 1 << 16).decode())
    os.close(terminal)

    done = unlost("archives", "reset", "one", "--archives", str(registry), env=settings)
    assert (done.returncode, done.stderr.decode()) == (0, "unlost: one: cleared\n")
    assert states() == [[], [f"told-to-wait until {iso}"], []]
    done = unlost("archives", "reset", "--all", "--archives", str(registry), env=settings)
    assert (done.returncode, done.stderr.decode()) == (0, "unlost: two: cleared\n")
    assert states() == [[], [], []]
    assert store.read("two").due  # what was sent still counts
    assert b"nothing to clear" in unlost("archives", "reset", "--all", "--archives", str(registry), env=settings).stderr
    for arguments in ([], ["one", "--all"], ["four"]):
        assert unlost("archives", "reset", *arguments, "--archives", str(registry), env=settings).returncode == 2


def test_unwritable_rate_limit_state_is_reported(tmp_path: Path) -> None:
    """No request is sent, and the message has the directory."""
    registry = tmp_path / "r.toml"
    registry.write_text(entry("dead", free_port()).replace("limits = []\n", ""))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "state").write_text("not a folder")
    settings = {"UNLOST_HOME": str(tmp_path / "home"), "UNLOST_CONTACT": "me@example.org"}
    done = unlost("archives", "test", "--archives", str(registry), env=settings)
    assert (done.returncode, done.stdout) == (3, b"")
    assert str(tmp_path / "home" / "state") in done.stderr.decode()


def test_archives_are_selected_by_id(archive: pywb.Pywb, tmp_path: Path) -> None:
    """Other archives are not queried; an archive without the page counts as working."""
    registry = tmp_path / "r.toml"
    registry.write_text(entry("dead", free_port()) + entry("alive", archive.port))
    settings = user_settings(tmp_path / "home")
    for arguments in (["alive"], ["--only", "alive"]):
        done = unlost("archives", "test", *arguments, "--archives", str(registry), env=settings)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode().split("\t")[:3] == ["alive", "answered", "no copy"]
    both = unlost("archives", "test", "alive", "--only", "dead", "--archives", str(registry), env=settings)
    assert (both.returncode, both.stdout, both.stderr) == (2, b"", b"unlost: expected ids, or --only, found both\n")
    # What is set once for all is no contradiction.
    done = unlost("archives", "test", "alive", "--archives", str(registry), env={**settings, "UNLOST_ONLY": "dead"})
    assert (done.returncode, done.stdout.split(b"\t")[0]) == (0, b"alive")


def test_archive_without_timemaps_is_queried_by_cdx(archive: pywb.Pywb, tmp_path: Path) -> None:
    """Through its client."""
    base = f"http://127.0.0.1:{archive.port}/t/"
    registry = tmp_path / "r.toml"
    registry.write_text(
        f'[[archive]]\nid = "index"\nname = "Index"\nkind = "pywb"\nlimits = []\n'
        f'cdx = "{base}cdx"\nreplay = "{base}{{datetime}}id_/{{uri}}"\n'
    )
    arguments = ("archives", "test", "--archives", str(registry), "--uri", "http://example.com/0")
    done = unlost(*arguments, env=user_settings(tmp_path / "home"))
    assert done.returncode == 0
    assert done.stdout.decode().split("\t")[:3] == [
        "index", "answered", "2 copies, 20140210000001 to 20150311000001",
    ]  # fmt: skip


def test_missing_contact_is_reported(archive: pywb.Pywb, tmp_path: Path) -> None:
    """The hint says how to set it; a contact that does not fit into a header is rejected."""
    registry = tmp_path / "r.toml"
    registry.write_text(entry("alive", archive.port))
    home = {"UNLOST_HOME": str(tmp_path)}
    done = unlost("archives", "test", "--archives", str(registry), env=home)
    assert done.returncode == 0
    assert b"no contact is set, so archives are asked half as often" in done.stderr
    named = unlost("archives", "test", "--contact", "a@b.org", "--archives", str(registry), env=home)
    assert (named.returncode, named.stderr) == (0, b"")
    for bad in ("a\nb", "a)b", "é@b.org", "x" * 300):
        refused = unlost("archives", "test", "--contact", bad, "--archives", str(registry))
        assert (refused.returncode, refused.stdout) == (2, b"")


def test_invalid_url_is_rejected(tmp_path: Path) -> None:
    """Before any request."""
    registry = tmp_path / "r.toml"
    registry.write_text(entry("dead", free_port()).replace("limits = []\n", ""))
    done = unlost(
        "archives", "test", "--uri", "http://a b/", "--archives", str(registry), env=user_settings(tmp_path / "home")
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"unlost: --uri: ")


class _InvalidResponses(BaseHTTPRequestHandler):
    """Responds in ways that archives should not, selected by the first part of the path."""

    def do_GET(self) -> None:
        """Respond."""
        kind = self.path.split("/")[1]
        bodies = {
            "captcha": (200, "text/html", b"<html><title>Are you human?</title>"),
            "broken": (418, "text/plain", b"no"),
            "blocked": (403, "text/plain", b"org.archive.wayback.exception.RobotAccessControlException"),
            "header": (200, "application/link-format", b'<http://a/>; rel="original"'),
            "paged": (200, "application/link-format", PAGED),
        }
        status, kind_of_body, body = bodies.get(kind, (404, "text/plain", b""))
        self.send_response(status)
        self.send_header("Content-Type", kind_of_body)
        self.send_header("Content-Length", str(len(body)))
        if kind == "header":
            self.send_header("Link", '<http://127.0.0.1/a.ukvs>; rel="mementomap"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_invalid_responses_have_different_outcomes(tmp_path: Path) -> None:
    """A captcha, an error status, a blocked page, no mementos, a partial TimeMap: none affects the others."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _InvalidResponses)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        registry = tmp_path / "r.toml"
        names = ("captcha", "broken", "blocked", "header", "paged")
        registry.write_text("".join(entry(name, server.server_port, path=f"{name}/") for name in names))
        done = unlost("archives", "test", "--json", "--archives", str(registry), env=user_settings(tmp_path / "home"))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    found = {line["id"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert {name: found[name]["outcome"] for name in found} == {
        "captcha": "malformed",
        "broken": "status",
        "blocked": "excluded",
        "header": "answered",
        "paged": "answered",
    }
    assert "HTML" in found["captcha"]["message"]
    assert "418" in found["broken"]["message"]
    assert (found["blocked"]["answered"], found["blocked"]["message"]) == (True, "Blocked does not show it")
    assert [link["address"] for link in found["header"]["maps"]] == ["http://127.0.0.1/a.ukvs"]
    assert found["header"]["maps"][0]["found"].startswith("Link header of http://127.0.0.1:")
    assert (found["paged"]["copies"], found["paged"]["more"], found["header"]["copies"]) == (1, True, 0)
    assert done.returncode == 4


def test_hanging_archive_times_out(archive: pywb.Pywb, tmp_path: Path) -> None:
    """After `--patience` seconds; the others are reported meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        registry = tmp_path / "r.toml"
        registry.write_text(entry("hangs", silent.getsockname()[1]) + entry("alive", archive.port))
        done = unlost(
            "archives", "test", "--patience", "2", "--archives", str(registry), env=user_settings(tmp_path / "home")
        )
    first, second = (line.split("\t") for line in done.stdout.decode().splitlines())
    assert first[:2] == ["alive", "answered"]
    assert second[:3] == ["hangs", "timeout", "no answer within 2 s"]
    assert done.returncode == 4
