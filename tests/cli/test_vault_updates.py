"""Updates of a vault: `unlost vault status` and `unlost vault advance`."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.archives.archive_files import page, write
from tests.cli.run import unlost
from tests.external import file_servers
from tests.external.pywb import serve_warcs
from tests.vault.fixtures import server_files, snapshot_folder, static_site
from tests.vault.simulated_archives import registry_entry
from tests.warc.wacz_files import wacz
from unlost.vault import iter_html_files

# warcio leaves temporary files to be collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def run_json(*words: str, code: int = 0, env: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a vault command that must exit with this code; return its JSON output."""
    done = unlost("vault", *words, "--json", env=env)
    assert done.returncode == code, done.stderr.decode()
    return dict(json.loads(done.stdout))


def write_crawl(site: Path, warc: Path, date: str, base: str, share: int = 1) -> Path:
    """Write captures of a site: of every page, or of every `share`-th."""
    files = [file for number, file in enumerate(iter_html_files(site)) if number % share == 0]
    return write(warc, *(page(f"{base}/{file.relative_to(site)}", date, file.read_bytes()) for file in files))


def test_old_version_stays_until_the_new_one_is_archived(tmp_path: Path) -> None:
    """`advance` fails while archives have too few new blocks; `status` says so before."""
    server, site, base = server_files(tmp_path), static_site(tmp_path), "http://example.com"
    vault = ("--vault", str(tmp_path / "v"))
    run_json("pack", str(server), "--pages", str(site), *vault)
    nothing = unlost("vault", "advance", *vault)
    assert (nothing.returncode, b"no update is under way" in nothing.stderr) == (0, True)
    assert unlost("vault", "inject", str(site), *vault).returncode == 0
    first = write_crawl(site, tmp_path / "first.warc.gz", "2026-01-02T00:00:00Z", base)
    (server / "app.py").write_text("print('new')\n" * 100)
    assert run_json("pack", str(server), "--pages", str(site), *vault)["staged"]
    assert unlost("vault", "inject", str(site), *vault).returncode == 0
    few = write_crawl(site, tmp_path / "few.warc.gz", "2026-01-09T00:00:00Z", base, share=4)
    archived = ("--held-in", str(first), "--held-in", str(few))
    status = run_json("status", *vault, *archived)
    old, new = status["places"]["archives"]["generations"]
    assert (status["updating"], status["next_stage_is_safe"], old["whole"], new["whole"]) == (True, False, True, False)
    early = unlost("vault", "advance", *vault, *archived)
    assert early.returncode == 1
    assert b"too early" in early.stderr
    assert run_json("status", *vault)["updating"]
    enough = ("--held-in", str(write_crawl(site, tmp_path / "all.warc.gz", "2026-01-16T00:00:00Z", base)))
    assert run_json("status", *vault, *enough)["next_stage_is_safe"]
    assert unlost("vault", "advance", *vault, *enough).returncode == 0
    assert not run_json("status", *vault)["updating"]
    sizes = [file.stat().st_size for file in iter_html_files(site)]
    assert unlost("vault", "inject", str(site), *vault).returncode == 0
    assert sum(file.stat().st_size for file in iter_html_files(site)) < sum(sizes), "the old blocks are gone"
    run_json("verify", str(site), *vault)


def test_status_reads_the_live_site_and_archives(tmp_path: Path) -> None:
    """Pages are visited on the site, in a folder of the host, and archives queried for their last captures."""
    server, site, vault = server_files(tmp_path), static_site(tmp_path), ("--vault", str(tmp_path / "v"))
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "ready.html").touch()
    site = site.rename(tmp_path / "root" / "blog")
    run_json("pack", str(server), "--pages", str(site), *vault)
    assert unlost("vault", "inject", str(site), *vault).returncode == 0
    (tmp_path / "home").mkdir()
    env = {"UNLOST_HOME": str(tmp_path / "home"), "UNLOST_CONTACT": "me@example.org"}
    with file_servers.serve_folder("lighttpd", tmp_path / "root", tmp_path) as port:
        base = f"http://127.0.0.1:{port}/blog"
        live = run_json("status", *vault, "--site", f"{base}/", "--delay", "0", env=env)["places"]["live"]
        assert (live["pages"], live["generations"][0]["whole"]) == (41, True)
        visited = ("--pages", f"{base}/index.html", "--delay", "0", "--crawl", str(tmp_path / "crawl"))
        planned = run_json("plan", str(server), *visited, env=env)
        assert planned["pages"] == 6, "the root and what it links to"
        again = unlost("vault", "plan", str(server), *visited, env=env)
        assert (again.returncode, b"as it was visited before" in again.stderr) == (0, True)
        assert (tmp_path / "crawl" / "state.sqlite").is_file()
    warcs = [
        write_crawl(site, tmp_path / "one.warc.gz", "2026-01-02T00:00:00Z", base, share=2),
        write_crawl(site, tmp_path / "two.warc.gz", "2026-01-03T00:00:00Z", base, share=9),
    ]
    with serve_warcs(warcs, tmp_path) as archives:
        names = ("first", "second")
        (tmp_path / "archives.toml").write_text("\n".join(map(registry_entry, names, archives)))
        options = ("--site", f"{base}/", "--ask-archives", "--archives", str(tmp_path / "archives.toml"))
        both = run_json("status", *vault, *options, "--delay", "0", env=env, code=1)["places"]
        assert both["live"]["pages"] == 0, "the site is gone"
        (segment,) = both["archives"]["generations"][0]["segments"]
        assert segment["by"] == {"first": 21, "second": 5}
        assert segment["held"] == len({*range(0, 41, 2), *range(0, 41, 9)})
        assert both["archives"]["generations"][0]["whole"]


def test_files_are_recovered_from_a_wacz(tmp_path: Path) -> None:
    """As from WARCs."""
    server, site, vault = server_files(tmp_path), static_site(tmp_path), ("--vault", str(tmp_path / "v"))
    run_json("pack", str(server), "--pages", str(site), *vault)
    assert unlost("vault", "inject", str(site), *vault).returncode == 0
    warc = write_crawl(site, tmp_path / "c.warc.gz", "2026-01-02T00:00:00Z", "http://example.com", share=2)
    packed = wacz(tmp_path / "c.wacz", {"archive/c.warc.gz": warc.read_bytes()})
    assert run_json("recover", str(packed), "-o", str(tmp_path / "back"))["short"] == []
    assert snapshot_folder(tmp_path / "back" / "srv") == snapshot_folder(server)
