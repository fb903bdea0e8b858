"""People who look after jobs by pages: their passwords, of which only slow hashes are kept, and their sessions."""

import base64
import hashlib
import hmac
import secrets
from hashlib import sha256

from sqlalchemy import Connection, delete, func, insert, select, update

from unlost.errors import BusyError, UsageError
from unlost.service.jobs.database import Database
from unlost.service.jobs.rules import KNOWN_LOGIN, KNOWN_LOGIN_SECONDS, count_tallies
from unlost.service.jobs.tables import ADMINS, SESSIONS, TALLIES

SESSION_SECONDS = 12 * 3_600.0
"""After which one has to log in again, whatever one does."""
MIN_PASSWORD = 10
"""Characters: what nobody finds out by trying, given how few may be tried."""

_IDLE_SECONDS = 2 * 3_600.0
_SESSION_UPDATE_SECONDS = 60.0  # between two notes that a session is used
_TRY_SECONDS = 900.0
_MAX_TRIES = 8  # that fail, in that time: for one name from one network address
_MAX_TRIES_CLIENT = 40  # for all names from one network address: each try takes memory and time of ours
_MAX_TRIES_NAME = 50  # from wherever; after more, one try from each network address, so that nobody locks us out
_MAX_TRIES_DAY = 1_000  # for one name from wherever, in a day; after more, only from where it was right before
_DAY = 86_400.0
_MAX_NAME, _MAX_PASSWORD = 200, 1_000
# What OWASP's cheat sheet for storing passwords has as its least for scrypt: 128 MB and about 0.3 s for one try.
_N, _R, _P = 1 << 17, 8, 1
_MEMORY = 1 << 28


def hash_password(password: str, salt: bytes | None = None) -> str:
    """Return what is kept of a password: by which rules, a salt, and a hash."""
    salt = secrets.token_bytes(16) if salt is None else salt
    found = _scrypt(password, salt, _N, _R, _P)
    return f"scrypt${_N}${_R}${_P}${base64.b64encode(salt).decode()}${base64.b64encode(found).decode()}"


def verify_password(password: str, stored: str) -> bool:
    """Return whether it is the password of which something is kept; it takes as long for all that are wrong."""
    _, n, r, p, salt, expected = stored.split("$")
    found = _scrypt(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(found, base64.b64decode(expected))


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    data = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(data, salt=salt, n=n, r=r, p=p, maxmem=_MEMORY, dklen=32)


_UNKNOWN_NAME_HASH = (
    f"scrypt${_N}${_R}${_P}${base64.b64encode(bytes(16)).decode()}${base64.b64encode(bytes(32)).decode()}"
)
"""What a password is compared with where there is no such name: it takes as long, and is never right."""


class AdminStore:
    """The administrators in a database. Raises as `Database` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set_password(self, name: str, password: str) -> None:
        """Give somebody a password, and end all sessions with the old one. Raises UsageError for one that is none."""
        if not 0 < len(name) <= _MAX_NAME or not name.isprintable() or name != name.strip():
            raise UsageError(f"the name of an administrator: expected one line of at most {_MAX_NAME} characters")
        if not MIN_PASSWORD <= len(password) <= _MAX_PASSWORD:
            raise UsageError(f"the password: expected at least {MIN_PASSWORD} characters, at most {_MAX_PASSWORD}")
        kept = hash_password(password)
        with self._database.writing() as connection:
            now = self._database.now(connection)
            connection.execute(delete(SESSIONS).where(SESSIONS.c.admin == name))
            connection.execute(delete(ADMINS).where(ADMINS.c.name == name))
            connection.execute(insert(ADMINS).values(name=name, password=kept, made=now))

    def count(self) -> int:
        """Return how many there are."""
        with self._database.reading() as connection:
            return int(connection.execute(select(func.count()).select_from(ADMINS)).scalar_one())

    def log_in(self, name: str, password: str, client: str) -> str | None:
        """Return the secret of a new session; None if name or password is wrong.

        client: a hash of whence it comes. Raises BusyError after too many that were wrong.
        """
        who = _hash(f"{name.casefold()}\n{client}")
        anyone = _hash(name.casefold())
        with self._database.writing() as connection:
            self._database.lock_names(connection, f"login {who}", f"login-client {client}", f"login-name {anyone}")
            now = self._database.now(connection)
            if self._is_throttled(connection, who, client, anyone, now):
                raise BusyError("too many attempts to log in", _TRY_SECONDS)
            # It is counted before it is looked at, so that many at once are no way round.
            for kind, code in (("login", who), ("login-client", client), ("login-name", anyone)):
                connection.execute(insert(TALLIES).values(kind=kind, who=code, at=now))
            chosen = select(ADMINS.c.password).where(ADMINS.c.name == name)
            kept = connection.execute(chosen).scalar_one_or_none()
        is_right = len(password) <= _MAX_PASSWORD and verify_password(password, kept or _UNKNOWN_NAME_HASH)
        if kept is None or not is_right:
            return None
        secret = secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            now = self._database.now(connection)
            self._remove_expired_sessions(connection, now)
            connection.execute(delete(TALLIES).where(TALLIES.c.kind.in_(("login", KNOWN_LOGIN)), TALLIES.c.who == who))
            connection.execute(insert(TALLIES).values(kind=KNOWN_LOGIN, who=who, at=now))
            connection.execute(insert(SESSIONS).values(hash=_hash(secret), admin=name, begun=now, seen=now))
        return secret

    def _is_throttled(self, connection: Connection, who: str, client: str, anyone: str, now: float) -> bool:
        """Return whether nothing is tried any more. who: a name from a network address. anyone: the name alone.

        What strangers do elsewhere never keeps out somebody whose name was right from here before, and at first nobody
        else, either: from each network address there is one try.
        """
        mine = count_tallies(connection, "login", who, now - _TRY_SECONDS)
        if (
            mine >= _MAX_TRIES
            or count_tallies(connection, "login-client", client, now - _TRY_SECONDS) >= _MAX_TRIES_CLIENT
        ):
            return True
        if count_tallies(connection, KNOWN_LOGIN, who, now - KNOWN_LOGIN_SECONDS):
            return False
        is_pressed = count_tallies(connection, "login-name", anyone, now - _TRY_SECONDS) >= _MAX_TRIES_NAME
        return (is_pressed and mine > 0) or count_tallies(
            connection, "login-name", anyone, now - _DAY
        ) >= _MAX_TRIES_DAY

    def find_session(self, secret: str) -> str | None:
        """Return whose session it is; None if it has ended, or is none."""
        if not secret or len(secret) > 100:
            return None
        code = _hash(secret)
        with self._database.reading() as connection:
            now = self._database.now(connection)
            row = connection.execute(select(SESSIONS).where(SESSIONS.c.hash == code)).one_or_none()
        if row is None or row.begun + SESSION_SECONDS <= now or row.seen + _IDLE_SECONDS <= now:
            return None
        if row.seen + _SESSION_UPDATE_SECONDS <= now:
            with self._database.writing() as connection:
                connection.execute(update(SESSIONS).where(SESSIONS.c.hash == code).values(seen=now))
        return str(row.admin)

    def log_out(self, secret: str) -> None:
        """End a session."""
        with self._database.writing() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.hash == _hash(secret)))

    def _remove_expired_sessions(self, connection: Connection, now: float) -> None:
        connection.execute(delete(SESSIONS).where(SESSIONS.c.begun <= now - SESSION_SECONDS))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
