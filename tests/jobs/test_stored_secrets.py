"""A stolen database or access to the folder gives an attacker no usable secrets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.jobs.service_process import ORDER
from tests.virtual_clock import VirtualClock
from unlost.cli import open_database
from unlost.jobs import (
    AdminStore,
    AdminTokens,
    Database,
    JobStore,
    LinkSigner,
    file_url,
    hash_password,
    load_secret,
    parse_order,
    states,
)
from unlost.jobs import auth as admins_module

PASSWORD = "a long enough password"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Create an empty database."""
    found = Database(file_url(tmp_path / "jobs.sqlite"), VirtualClock(1_700_000_000))
    found.prepare()
    yield found
    found.close()


def read_database_bytes(folder: Path) -> bytes:
    """Return all bytes of the database and its log."""
    return b"".join(file.read_bytes() for file in sorted(folder.glob("jobs.sqlite*")))


def test_database_contains_no_usable_secrets(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No private link, token, session secret or password is stored."""
    monkeypatch.setattr(admins_module, "_N", 16)
    monkeypatch.setattr(admins_module, "_UNKNOWN_NAME_HASH", hash_password("nobody"))
    keys = LinkSigner(load_secret(tmp_path / "secret"))
    number = JobStore(database).submit(parse_order(ORDER, ())).number
    token = AdminTokens(database).create("me")
    admins = AdminStore(database)
    admins.set_password("me", PASSWORD)
    session = admins.log_in("me", PASSWORD, "here")
    assert session is not None
    found = read_database_bytes(tmp_path)
    assert b"me@example.org" in found, "a letter has to be written to it"
    links = (keys.owner_key(number), keys.confirmation_code(number), keys.preview_key(number))
    for secret in (*links, token, session, PASSWORD, (tmp_path / "secret").read_text().strip()):
        assert secret.encode() not in found
    for link in links:  # a number, a hyphen, and the signature, which may have hyphens, too
        signature = link.partition("-")[2]
        assert len(signature) >= 16
        assert signature.encode() not in found


def test_removed_customers_leave_no_data(database: Database, tmp_path: Path) -> None:
    """Name and email address of removed jobs are overwritten in the file."""
    jobs = JobStore(database)
    number = jobs.submit(parse_order({**ORDER, "mail": "somebody@thief.example", "name": "Some Body"}, ())).number
    assert b"somebody@thief.example" in read_database_bytes(tmp_path)
    jobs.change(number, states.expire)
    database.checkpoint(truncates=True)
    assert b"somebody@thief.example" not in read_database_bytes(tmp_path)
    assert b"Some Body" not in read_database_bytes(tmp_path)


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    """Only the owner can read the folder of jobs and the secret."""
    folder = tmp_path / "jobs"
    open_database(folder, None).close()
    load_secret(folder / "secret")
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "secret").stat().st_mode & 0o077 == 0


def test_database_password_is_never_shown(tmp_path: Path) -> None:
    """Neither error messages nor the repr contain the password."""
    url = "postgresql://me:s3cr3t-word@127.0.0.1:1/jobs"
    assert "s3cr3t" not in repr(Database(url))
    done = unlost("jobs", "token", "me", "--jobs", str(tmp_path / "jobs"), env={"UNLOST_DATABASE": url})
    assert done.returncode == 4, done.stderr
    assert b"127.0.0.1" in done.stderr
    assert b"s3cr3t" not in done.stderr + done.stdout
