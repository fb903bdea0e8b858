"""Authentication: signed private links for owners, API tokens, and passwords and sessions of administrators."""

import base64
import hashlib
import hmac
import os
import re
import secrets
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection, delete, func, insert, select, update

from unlost.errors import BusyError, InputError, UsageError
from unlost.jobs.database import Database
from unlost.jobs.limits import KNOWN_LOGIN, KNOWN_LOGIN_SECONDS, count_tallies
from unlost.jobs.tables import ADMINS, SESSIONS, TALLIES, TOKENS

_SECRET_BYTES = 32
_KEY = re.compile(r"([1-9][0-9]{0,17})-([A-Za-z0-9_-]{43})", re.ASCII)


class LinkSigner:
    """Makes and reads private links. They are not kept anywhere: a secret and a job's number make them again.

    So neither the database nor a backup of it opens any job, and reminders can have the link that the first mail had.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def owner_key(self, number: int) -> str:
        """Return the key by which a job's owner looks at it, cancels it and picks it up."""
        return self._sign("owner", number)

    def confirmation_code(self, number: int) -> str:
        """Return the code that only who reads the owner's mail has."""
        return self._sign("confirm", number)

    def verify_owner_key(self, key: str) -> int | None:
        """Return the number of the job that an owner's key opens; None if it is none."""
        return self._verify("owner", key)

    def verify_confirmation(self, code: str) -> int | None:
        """Return the number of the job that a code confirms; None if it is none."""
        return self._verify("confirm", code)

    def preview_key(self, number: int) -> str:
        """Return the key by which what came back is looked at, and nothing else: pages of strangers know it."""
        return self._sign("preview", number)

    def verify_preview_key(self, key: str) -> int | None:
        """Return the number of the job whose preview a key opens; None if it is none."""
        return self._verify("preview", key)

    def unsubscribe_code(self, customer: str) -> str:
        """Return the code by which a mail address is unsubscribed. customer: its hash."""
        return f"{customer}-{self.digest('unsubscribe', customer)}"

    def verify_unsubscribe_code(self, code: str) -> str | None:
        """Return the hash of the mail address that a code unsubscribes; None if it is invalid."""
        customer = code.partition("-")[0]
        is_valid = hmac.compare_digest(self.unsubscribe_code(customer).encode(), code.encode("utf-8", "surrogatepass"))
        return customer if is_valid else None

    def digest(self, purpose: str, text: str) -> str:
        """Return 256 bits that only who has the secret can make of a text. purpose: of no other use."""
        found = hmac.digest(self._secret, f"{purpose} of {text}".encode("utf-8", "surrogatepass"), sha256)
        return base64.urlsafe_b64encode(found).decode().rstrip("=")

    def _sign(self, purpose: str, number: int) -> str:
        found = hmac.digest(self._secret, f"{purpose} {number}".encode(), sha256)
        return f"{number}-{base64.urlsafe_b64encode(found).decode().rstrip('=')}"

    def _verify(self, purpose: str, key: str) -> int | None:
        found = _KEY.fullmatch(key)
        if found is None:
            return None
        number = int(found[1])
        return number if hmac.compare_digest(self._sign(purpose, number), key) else None


def load_secret(file: Path) -> bytes:
    """Return the secret in a file; if there is none, make one, for its user alone. Raises InputError, OSError."""
    with suppress(FileExistsError):
        # Written aside, then linked: nobody ever reads half of it, and of two who begin at once one is first.
        aside = file.with_name(f"{file.name}.{secrets.token_hex(4)}.part")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w") as opened:
                opened.write(secrets.token_hex(_SECRET_BYTES) + "\n")
            os.link(aside, file)
        finally:
            aside.unlink()
    try:
        secret = bytes.fromhex(file.read_text().strip())
    except ValueError:
        secret = b""
    if len(secret) < _SECRET_BYTES:
        raise InputError(
            f"{file}: expected {_SECRET_BYTES} bytes in hex: put it back, or remove it, which ends all old links"
        )
    return secret


_TOKEN_CACHE_SECONDS = 5.0  # for which a token that was revoked elsewhere may still be taken


class AdminTokens:
    """The tokens in a database.

    They are 256 bits at random: there is nothing to try out, so one hash is enough, and a slow one for passwords that
    people think of would only slow every request.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: dict[str, tuple[float, str]] = {}

    def cached_name(self, token: str) -> str | None:
        """Return whose token it was some seconds ago; None if nobody looked: then `name_of` says."""
        until, name = self._cache.get(_hash_token(token), (0.0, ""))
        return name if time.monotonic() < until else None

    def create(self, name: str) -> str:
        """Make a token for somebody, and return it: it cannot be had again."""
        token = f"unlost_{secrets.token_urlsafe(32)}"
        with self._database.writing() as connection:
            now = self._database.now(connection)
            connection.execute(insert(TOKENS).values(hash=_hash_token(token), name=name, made=now))
        return token

    def find_name(self, token: str) -> str | None:
        """Return whose token it is; None if it is none."""
        hashed = _hash_token(token)
        with self._database.reading() as connection:
            name = connection.execute(select(TOKENS.c.name).where(TOKENS.c.hash == hashed)).scalar_one_or_none()
        if name is None:
            self._cache.pop(hashed, None)  # only tokens that are some are remembered: there are few of them
        else:
            self._cache[hashed] = (time.monotonic() + _TOKEN_CACHE_SECONDS, name)
        return name

    def list_names(self) -> list[str]:
        """Return whose tokens there are."""
        with self._database.reading() as connection:
            return list(connection.execute(select(TOKENS.c.name).order_by(TOKENS.c.made)).scalars())

    def count(self) -> int:
        """Return how many there are."""
        with self._database.reading() as connection:
            return int(connection.execute(select(func.count()).select_from(TOKENS)).scalar_one())

    def revoke(self, name: str) -> int:
        """Make all tokens of somebody worthless; return how many there were."""
        with self._database.writing() as connection:
            return connection.execute(TOKENS.delete().where(TOKENS.c.name == name)).rowcount


def _hash_token(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


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
