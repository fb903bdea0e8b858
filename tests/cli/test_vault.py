"""`unlost vault`."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyrage
import pytest

from tests.archives.archive_files import page, write
from tests.cli.run import unlost
from tests.external import postgresql
from tests.vault.fixtures import server_files, snapshot_folder, static_site
from unlost.vault import iter_html_files, open_vault


# warcio leaves temporary files to be collected.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_vault_of_a_static_site_is_recovered(tmp_path: Path) -> None:
    """Planned, packed with passphrase and signature, injected, verified, crawled into a WARC, lost, recovered."""
    server, site, vault = server_files(tmp_path), static_site(tmp_path), str(tmp_path / "v")
    (tmp_path / "phrase").write_text("a long secret\n")
    planned = unlost("vault", "plan", str(server), "--pages", str(site), "--segments", "directory", "--json")
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert plan["with_room"] == 41
    assert {each["name"] for each in plan["segments"]} == {"srv", "srv/lib", "srv/empty"}
    phrase = ("--passphrase-file", str(tmp_path / "phrase"))
    done = unlost("vault", "pack", str(server), "--pages", str(site), "--vault", vault, "--sign", *phrase, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["changed"] == ["all"]
    key = json.loads(done.stdout)["key"]
    assert unlost("vault", "inject", str(site), "--vault", vault).returncode == 0
    assert unlost("vault", "verify", str(site), "--vault", vault).returncode == 0
    crawled = [file for number, file in enumerate(iter_html_files(site)) if number % 3]
    records = (
        page(f"http://example.com/{file.relative_to(site)}", "2026-01-02T00:00:00Z", file.read_bytes())
        for file in crawled
    )
    warc = write(tmp_path / "crawl.warc.gz", *records)
    back = unlost("vault", "recover", str(warc), "-o", str(tmp_path / "back"), *phrase, "--signed-by", key, "--json")
    assert back.returncode == 0, back.stderr
    assert json.loads(back.stdout)["short"] == []
    assert snapshot_folder(tmp_path / "back" / "srv") == snapshot_folder(server)
    status = json.loads(unlost("vault", "status", "--vault", vault, "--held-in", str(warc), "--json").stdout)
    assert status["places"]["archives"]["generations"][0]["whole"]
    other = unlost("vault", "recover", str(warc), "-o", str(tmp_path / "no"), *phrase, "--signed-by", "0" * 64)
    assert other.returncode == 3
    assert unlost("vault", "remove", str(site)).returncode == 0
    assert b"FILE_RECOVERY" not in b"".join(file.read_bytes() for file in iter_html_files(site))


def test_recovery_from_too_few_pages_fails(tmp_path: Path) -> None:
    """The exit code is 1; the message has the number of missing blocks, and pages that had them."""
    server, site, vault = server_files(tmp_path), static_site(tmp_path), str(tmp_path / "v")
    assert unlost("vault", "pack", str(server), "--pages", str(site), "--vault", vault).returncode == 0
    assert unlost("vault", "inject", str(site), "--vault", vault).returncode == 0
    (tmp_path / "few").mkdir()
    for file in [site / "index.html", *list(iter_html_files(site))[:5]]:
        shutil.copy(file, tmp_path / "few")
    done = unlost("vault", "recover", str(tmp_path / "few"), "-o", str(tmp_path / "no"))
    assert done.returncode == 1
    assert b"more are needed, of any of" in done.stderr
    assert b"/sub/p" in done.stderr
    assert unlost("vault", "verify", str(tmp_path / "few"), "--vault", vault).returncode == 1


def test_plan_matches_table_23(tmp_path: Path) -> None:
    """An incompressible megabyte needs 21, 11 and 7 blocks of 50, 100 and 150 KB."""
    (tmp_path / "one").write_bytes(os.urandom((1 << 20) - 1500))
    (tmp_path / "pages.txt").write_text("".join(f"/{number}\t100\n" for number in range(30)))
    needed = []
    for size in ("50KB", "100KB", "150KB"):
        done = unlost(
            "vault", "plan", str(tmp_path / "one"), "--pages", str(tmp_path / "pages.txt"), "--block", size,
            "--page-limit", "1MB", "--json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        needed.append(json.loads(done.stdout)["segments"][0]["needed"])
    assert needed == [21, 11, 7]


def test_page_limit_comes_from_the_selected_archives(tmp_path: Path) -> None:
    """The smallest of them; `--page-limit` overrides it."""
    entries = [
        f'[[archive]]\nid = "{name}"\nname = "{name}"\nkind = "memento"\ntimemap = "http://127.0.0.1:9/{name}/"\n'
        f'page_bytes = {{ value = {size}, source = "a test" }}\n'
        for name, size in (("long", 400_000), ("short", 9_000))
    ]
    (tmp_path / "archives.toml").write_text("\n".join(entries))
    server, site = server_files(tmp_path), static_site(tmp_path)
    words = (
        "vault",
        "plan",
        str(server),
        "--pages",
        str(site),
        "--json",
        "--archives",
        str(tmp_path / "archives.toml"),
    )
    limits = {}
    for more in ((), ("--only", "long"), ("--page-limit", "20KB")):
        done = unlost(*words, *more)
        assert done.returncode == 0, done.stderr
        plan = json.loads(done.stdout)
        limits[more[:1]] = plan["page_limit"]
        grown = plan["segments"][0]["block"] * 4 / 3
        assert grown < plan["page_limit"], "base64 counts"
    assert limits == {(): 9_000, ("--only",): 400_000, ("--page-limit",): 20 << 10}


def test_settings_persist_across_packs(tmp_path: Path) -> None:
    """Encryption, signature and carrier stay; only `--open` decrypts."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    recipient = str(pyrage.x25519.Identity.generate().to_public())
    words = ("vault", "pack", str(server), "--pages", str(site), "--vault", str(tmp_path / "v"))
    others = ("--sign", "--carrier", "script", "--segments", "directory", "--extra-pages", "3", "--page-limit", "90KB")
    assert unlost(*words, "--recipient", recipient, *others).returncode == 0
    before = open_vault(tmp_path / "v").settings
    (server / "app.py").write_text("print('other')\n")
    assert unlost(*words).returncode == 0
    assert open_vault(tmp_path / "v").settings == before
    assert {each.wrap for each in open_vault(tmp_path / "v").newest.files} == {"tar.gz.age"}
    assert unlost(*words, "--open", "--no-sign", "--at-once").returncode == 0
    after = open_vault(tmp_path / "v")
    assert (after.settings.sealed, after.settings.recipients, after.settings.signed) == ("no", (), False)
    assert {each.wrap for each in after.newest.files} == {"tar.gz"}
    assert unlost(*words, "--open", "--recipient", recipient).returncode == 2


def test_passphrase_is_required_again(tmp_path: Path) -> None:
    """It is not stored in the vault."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    (tmp_path / "phrase").write_text("a long secret\n")
    words = ("vault", "pack", str(server), "--pages", str(site), "--vault", str(tmp_path / "v"))
    assert unlost(*words, "--passphrase-file", str(tmp_path / "phrase")).returncode == 0
    refused = unlost(*words)
    assert refused.returncode == 2
    assert b"--passphrase-file" in refused.stderr


def test_sqlite_dump_is_recovered(tmp_path: Path) -> None:
    """It makes the same database; the same dump is no change."""
    database = sqlite3.connect(tmp_path / "site.db")
    with database:
        database.execute("CREATE TABLE a (b TEXT)")
        database.executemany("INSERT INTO a VALUES (?)", [(f"käfer {number}",) for number in range(100)])
    dump = list(database.iterdump())
    database.close()
    program = "import sqlite3, sys; print('\\n'.join(sqlite3.connect(sys.argv[1]).iterdump()))"
    site, vault = static_site(tmp_path, 10), str(tmp_path / "v")
    command = f'db.sql={sys.executable} -W ignore -c "{program}" {tmp_path / "site.db"}'
    words = ("vault", "pack", "--pages", str(site), "--vault", vault, "--dump", command)
    first = unlost(*words)
    assert first.returncode == 0, first.stderr
    assert b"nothing changed" in unlost(*words).stderr
    unlost("vault", "inject", str(site), "--vault", vault)
    assert unlost("vault", "recover", str(site), "-o", str(tmp_path / "back")).returncode == 0
    again = sqlite3.connect(":memory:")
    again.executescript((tmp_path / "back" / "dump" / "db.sql").read_text())
    assert list(again.iterdump()) == dump
    again.close()
    failing = unlost(*words[:-1], f"db.sql={sys.executable} -c 'raise SystemExit(5)'")
    assert failing.returncode == 3
    assert b"failed with 5" in failing.stderr


def test_postgresql_dump_is_recovered(tmp_path: Path) -> None:
    """By the recipe of the documentation; the same data is the same version."""
    site, vault = static_site(tmp_path, 10), str(tmp_path / "v")
    with postgresql.run_cluster() as server:
        first, second = server.create_database(), server.create_database()

        def sql(database: str, *words: str) -> bytes:
            command = [postgresql.program("psql"), "-X", "-v", "ON_ERROR_STOP=1", "-d", database, *words]
            return subprocess.run(command, check=True, capture_output=True).stdout

        sql(first, "-c", "CREATE TABLE item (id serial PRIMARY KEY, title text NOT NULL, made timestamptz)")
        rows = "SELECT 'käfer ' || n, to_timestamp(n) FROM generate_series(1, 300) n"
        sql(first, "-c", f"INSERT INTO item (title, made) {rows}")
        command = f"db.sql={postgresql.program('pg_dump')} --no-owner --restrict-key=0 {first}"
        words = ("vault", "pack", "--pages", str(site), "--vault", vault, "--dump", command)
        done = unlost(*words)
        assert done.returncode == 0, done.stderr
        assert b"nothing changed" in unlost(*words).stderr
        assert unlost("vault", "inject", str(site), "--vault", vault).returncode == 0
        assert unlost("vault", "recover", str(site), "-o", str(tmp_path / "back")).returncode == 0
        sql(second, "-f", str(tmp_path / "back" / "dump" / "db.sql"))
        everything = ("-A", "-t", "-c", "SELECT * FROM item ORDER BY id")
        assert sql(second, *everything) == sql(first, *everything)
        assert sql(second, *everything).count(b"\n") == 300
        sql(first, "-c", "UPDATE item SET title = 'other' WHERE id = 7")
        assert b"1 of 1 segments coded anew" in unlost(*words).stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["plan"], 2),
        (["plan", "{server}", "--pages", "{site}", "--segments", "some"], 2),
        (["plan", "{server}", "--pages", "{site}", "--block", "lots"], 2),
        (["plan", "{server}", "--pages", "{site}", "--optimistic", "--pessimistic"], 2),
        (["plan", "{server}", "--pages", "{server}"], 3),
        (["pack", "{server}", "--pages", "{site}", "--recipient", "nobody"], 2),
        (["plan", "{server}", "--pages", "{site}", "--dump", "x"], 2),
        (["recover", "{server}/app.py", "-o", "{site}"], 3),
        (["verify", "{site}", "--vault", "{site}"], 3),
        (["advance", "--vault", "{site}"], 3),
    ],
)
def test_invalid_arguments_are_rejected(tmp_path: Path, words: list[str], code: int) -> None:
    """With an exit code and without traceback."""
    names = {"server": str(server_files(tmp_path)), "site": str(static_site(tmp_path))}
    done = unlost("vault", *(word.format(**names) for word in words))
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr


def test_optimistic_set_has_no_images(tmp_path: Path) -> None:
    """Files that pages embed are not packed."""
    server, site = server_files(tmp_path), static_site(tmp_path)
    counts = {}
    for choice in ("--optimistic", "--pessimistic"):
        vault = str(tmp_path / choice)
        done = unlost("vault", "pack", str(server), "--pages", str(site), "--vault", vault, choice, "--json")
        counts[choice] = json.loads(done.stdout)["files"]
    assert counts["--optimistic"] == counts["--pessimistic"] - 1
