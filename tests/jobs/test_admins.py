"""Passwords and sessions of administrators."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.virtual_clock import VirtualClock
from unlost.errors import BusyError, UsageError
from unlost.jobs import AdminStore, Database, OrderRules, file_url, hash_password, verify_password
from unlost.jobs import auth as module

PASSWORD = "a long enough password"


@pytest.fixture
def clock() -> VirtualClock:
    """Return a virtual clock."""
    return VirtualClock(1_700_000_000)


@pytest.fixture
def admins(tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[AdminStore]:
    """Create an administrator, with a fast password hash."""
    monkeypatch.setattr(module, "_N", 16)
    monkeypatch.setattr(module, "_UNKNOWN_NAME_HASH", hash_password("nobody"))
    database = Database(file_url(tmp_path / "jobs.sqlite"), clock)
    database.prepare()
    found = AdminStore(database)
    found.set_password("me", PASSWORD)
    yield found
    database.close()


def test_password_is_stored_as_scrypt_hash() -> None:
    """The hash has the minimum parameters of OWASP and a random salt."""
    stored = hash_password(PASSWORD)
    assert stored.startswith("scrypt$131072$8$1$")
    assert PASSWORD not in stored
    assert verify_password(PASSWORD, stored)
    assert not verify_password(PASSWORD + " ", stored)
    assert hash_password("x", b"1" * 16) != hash_password("x", b"2" * 16)


def test_session_lifetime(admins: AdminStore, clock: VirtualClock) -> None:
    """A session ends by logout, after two idle hours, after twelve hours, and with a new password."""
    secret = admins.log_in("me", PASSWORD, "here")
    assert secret is not None
    assert admins.find_session(secret) == "me"
    for wrong in ("", secret[:-1], secret + "x", "x" * 200):
        assert admins.find_session(wrong) is None
    admins.log_out(secret)
    assert admins.find_session(secret) is None
    idle = admins.log_in("me", PASSWORD, "here") or ""
    clock.advance(7_201)
    assert admins.find_session(idle) is None
    busy = admins.log_in("me", PASSWORD, "here") or ""
    for _ in range(11):
        clock.advance(3_600)
        assert admins.find_session(busy) == "me"
    clock.advance(3_601)
    assert admins.find_session(busy) is None
    old = admins.log_in("me", PASSWORD, "here") or ""
    admins.set_password("me", PASSWORD + "!")
    assert admins.find_session(old) is None
    assert admins.log_in("me", PASSWORD, "here") is None


def test_failed_logins_are_rate_limited_per_client(admins: AdminStore, clock: VirtualClock) -> None:
    """After eight failed attempts a client is locked out for a while, even with the right password; others are not."""
    assert admins.log_in("nobody", PASSWORD, "here") is None
    for _ in range(8):
        assert admins.log_in("me", "wrong", "here") is None
    with pytest.raises(BusyError):
        admins.log_in("me", PASSWORD, "here")
    assert admins.log_in("me", PASSWORD, "elsewhere") is not None
    clock.advance(901)
    assert admins.log_in("me", PASSWORD, "here") is not None


def test_attacks_from_many_clients_do_not_lock_out_administrators(
    admins: AdminStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts are limited per client, per name and per day; a client that logged in before is not affected."""
    assert admins.log_in("me", PASSWORD, "home") is not None
    for number in range(50):
        assert admins.log_in("me", "wrong", f"machine {number}") is None
    with pytest.raises(BusyError):
        admins.log_in("me", "wrong", "machine 49")
    assert admins.log_in("me", "wrong", "a hotel") is None
    with pytest.raises(BusyError):
        admins.log_in("me", PASSWORD, "a hotel")
    assert admins.log_in("me", PASSWORD, "a station") is not None
    assert admins.log_in("me", "wrong", "home") is None
    assert admins.log_in("me", PASSWORD, "home") is not None
    clock.advance(40 * 86_400)
    with admins._database.writing() as connection:
        OrderRules(admins._database).remove_old_counts(connection, clock.now())
    monkeypatch.setattr(module, "_MAX_ATTEMPTS_DAY", 60)
    for number in range(60):
        assert admins.log_in("me", "wrong", f"machine {number}") is None
        clock.advance(60)
    with pytest.raises(BusyError):
        admins.log_in("me", PASSWORD, "somewhere new")
    assert admins.log_in("me", PASSWORD, "home") is not None
    clock.advance(86_400)
    assert admins.log_in("me", PASSWORD, "somewhere new") is not None


def test_failed_logins_are_limited_for_all_names_of_a_client(
    admins: AdminStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts of one client count for all names together."""
    monkeypatch.setattr("unlost.jobs.auth.verify_password", lambda *_: False)
    for number in range(40):
        assert admins.log_in(f"name {number}", "wrong", "here") is None
    with pytest.raises(BusyError):
        admins.log_in("one more", "wrong", "here")
    assert admins.log_in("one more", "wrong", "elsewhere") is None


def test_invalid_names_and_passwords_are_rejected(admins: AdminStore) -> None:
    """Passwords that are too short or too long, and unprintable names, are rejected."""
    for name, password in (("me", "short"), ("me", "x" * 1_001), ("", PASSWORD), ("a\nb", PASSWORD), (" a", PASSWORD)):
        with pytest.raises(UsageError):
            admins.set_password(name, password)
    assert admins.count() == 1
    assert admins.log_in("me", "x" * 5_000, "here") is None
