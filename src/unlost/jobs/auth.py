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
_KEY = re.compile(r"([1-9][0-9]{0,17})-([A-Za-z0-9_-]{43})", re.ASCII)  # job number, HMAC-SHA256 in base64url
_TOKEN_CACHE_SECONDS = 5.0  # a revoked token may be accepted by other processes for this long
SESSION_SECONDS = 12 * 3_600.0
"""Lifetime of a session, even if it is in use."""
MIN_PASSWORD = 10
"""Minimum length of a password in characters. Together with the limits of attempts, this prevents guessing."""
_IDLE_SECONDS = 2 * 3_600.0  # without use, after which a session ends
_SESSION_UPDATE_SECONDS = 60.0  # interval at which the last use of a session is stored
_ATTEMPT_WINDOW_SECONDS = 900.0
_MAX_ATTEMPTS = 8  # failed attempts within _ATTEMPT_WINDOW_SECONDS for one name from one client
_MAX_ATTEMPTS_CLIENT = 40  # for all names from one client: each attempt takes 128 MB and 0.3 s
_MAX_ATTEMPTS_NAME = 50  # for one name from all clients; then one attempt per client, so no administrator is locked out
_MAX_ATTEMPTS_DAY = 1_000  # for one name from all clients in a day; then only clients that logged in before may try
_DAY = 86_400.0
_MAX_NAME, _MAX_PASSWORD = 200, 1_000
# The minimum that OWASP's Password Storage Cheat Sheet gives for scrypt: 128 MB and about 0.3 s an attempt. Argon2
# would need another dependency.
_N, _R, _P = 1 << 17, 8, 1
_MAX_SCRYPT_MEMORY = 1 << 28  # bytes; OpenSSL's default of 32 MB is less than scrypt needs with these parameters
_UNKNOWN_NAME_HASH = (
    f"scrypt${_N}${_R}${_P}${base64.b64encode(bytes(16)).decode()}${base64.b64encode(bytes(32)).decode()}"
)
"""Compared with the password if the name is unknown, so that the response takes as long."""


class LinkSigner:
    """Creates and verifies private links.

    Links are not stored: each is derived from the secret and a job number by HMAC-SHA256. The database and its backups
    therefore contain no usable link, and reminders can repeat the link of the first email. The price is that a single
    link cannot be revoked.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def owner_key(self, number: int) -> str:
        """Return the key that lets the owner view, cancel and download a job."""
        return self._sign("owner", number)

    def confirmation_code(self, number: int) -> str:
        """Return the code that confirms an order. It is sent to the owner's email address only."""
        return self._sign("confirm", number)

    def verify_owner_key(self, key: str) -> int | None:
        """Return the number of the job that an owner's key grants access to, or None if the key is invalid."""
        return self._verify("owner", key)

    def verify_confirmation(self, code: str) -> int | None:
        """Return the number of the job that a code confirms, or None if the code is invalid."""
        return self._verify("confirm", code)

    def preview_key(self, number: int) -> str:
        """Return the key of a job's preview.

        It grants access to the preview only, since scripts on the recovered pages can read it.
        """
        return self._sign("preview", number)

    def verify_preview_key(self, key: str) -> int | None:
        """Return the number of the job whose preview a key opens, or None if the key is invalid."""
        return self._verify("preview", key)

    def unsubscribe_code(self, customer: str) -> str:
        """Return the code that unsubscribes an email address, given as its hash."""
        return f"{customer}-{self.digest('unsubscribe', customer)}"

    def verify_unsubscribe_code(self, code: str) -> str | None:
        """Return the hash of the email address that a code unsubscribes, or None if the code is invalid."""
        customer = code.partition("-")[0]
        is_valid = hmac.compare_digest(self.unsubscribe_code(customer).encode(), code.encode("utf-8", "surrogatepass"))
        return customer if is_valid else None

    def digest(self, purpose: str, text: str) -> str:
        """Return the HMAC-SHA256 of a text, in base64url. Each use needs a `purpose` of its own."""
        signature = hmac.digest(self._secret, f"{purpose} of {text}".encode("utf-8", "surrogatepass"), sha256)
        return base64.urlsafe_b64encode(signature).decode().rstrip("=")

    def _sign(self, purpose: str, number: int) -> str:
        signature = hmac.digest(self._secret, f"{purpose} {number}".encode(), sha256)
        return f"{number}-{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"

    def _verify(self, purpose: str, key: str) -> int | None:
        match = _KEY.fullmatch(key)
        if match is None:
            return None
        number = int(match[1])
        return number if hmac.compare_digest(self._sign(purpose, number), key) else None


def load_secret(file: Path) -> bytes:
    """Read the secret from a file, or create the file with a random one, readable by its owner only.

    Raises:
        InputError: The file does not contain a secret.
        OSError: The file cannot be read or created.
    """
    with suppress(FileExistsError):
        # Written to a temporary file, then linked: readers never see a partial file, and of two processes that start
        # together only one creates the secret.
        temporary = file.with_name(f"{file.name}.{secrets.token_hex(4)}.part")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w") as stream:
                stream.write(secrets.token_hex(_SECRET_BYTES) + "\n")
            os.link(temporary, file)
        finally:
            temporary.unlink()
    try:
        secret = bytes.fromhex(file.read_text().strip())
    except ValueError:
        secret = b""
    if len(secret) < _SECRET_BYTES:
        raise InputError(
            f"{file}: expected {_SECRET_BYTES} bytes in hex: put it back, or remove it, which ends all old links"
        )
    return secret


class AdminTokens:
    """API tokens of administrators, stored as hashes.

    A token has 256 random bits, so a plain SHA-256 is enough. A slow password hash would only slow down each request.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: dict[str, tuple[float, str]] = {}

    def cached_name(self, token: str) -> str | None:
        """Return the cached name of a token's owner, or None if it is not cached: then call `find_name`."""
        until, name = self._cache.get(_hash(token), (0.0, ""))
        return name if time.monotonic() < until else None

    def create(self, name: str) -> str:
        """Create a token for a name and return it. Only its hash is stored."""
        token = f"unlost_{secrets.token_urlsafe(32)}"
        with self._database.writing() as connection:
            now = self._database.now(connection)
            connection.execute(insert(TOKENS).values(hash=_hash(token), name=name, made=now))
        return token

    def find_name(self, token: str) -> str | None:
        """Return the name of a token's owner, or None if the token is invalid."""
        hashed = _hash(token)
        with self._database.reading() as connection:
            name = connection.execute(select(TOKENS.c.name).where(TOKENS.c.hash == hashed)).scalar_one_or_none()
        if name is None:
            self._cache.pop(hashed, None)  # only valid tokens are cached, so the cache stays small
        else:
            self._cache[hashed] = (time.monotonic() + _TOKEN_CACHE_SECONDS, name)
        return name

    def list_names(self) -> list[str]:
        """Return the names of all tokens' owners, oldest token first."""
        with self._database.reading() as connection:
            return list(connection.execute(select(TOKENS.c.name).order_by(TOKENS.c.made)).scalars())

    def count(self) -> int:
        """Return the number of tokens."""
        with self._database.reading() as connection:
            return int(connection.execute(select(func.count()).select_from(TOKENS)).scalar_one())

    def revoke(self, name: str) -> int:
        """Delete all tokens of a name and return their number."""
        with self._database.writing() as connection:
            return connection.execute(TOKENS.delete().where(TOKENS.c.name == name)).rowcount


def hash_password(password: str, salt: bytes | None = None) -> str:
    """Return the hash of a password, with the parameters of scrypt and the salt."""
    salt = secrets.token_bytes(16) if salt is None else salt
    digest = _scrypt(password, salt, _N, _R, _P)
    return f"scrypt${_N}${_R}${_P}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


def verify_password(password: str, stored: str) -> bool:
    """Return whether a password matches a stored hash, in constant time."""
    _, n, r, p, salt, expected = stored.split("$")
    digest = _scrypt(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(digest, base64.b64decode(expected))


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    data = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(data, salt=salt, n=n, r=r, p=p, maxmem=_MAX_SCRYPT_MEMORY, dklen=32)


class AdminStore:
    """Administrators and their sessions. Methods raise as `Database` does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set_password(self, name: str, password: str) -> None:
        """Set the password of an administrator and end all of their sessions. Creates the administrator if needed.

        Raises:
            UsageError: The name or the password is invalid.
        """
        if not 0 < len(name) <= _MAX_NAME or not name.isprintable() or name != name.strip():
            raise UsageError(f"the name of an administrator: expected one line of at most {_MAX_NAME} characters")
        if not MIN_PASSWORD <= len(password) <= _MAX_PASSWORD:
            raise UsageError(f"the password: expected at least {MIN_PASSWORD} characters, at most {_MAX_PASSWORD}")
        password_hash = hash_password(password)
        with self._database.writing() as connection:
            now = self._database.now(connection)
            connection.execute(delete(SESSIONS).where(SESSIONS.c.admin == name))
            connection.execute(delete(ADMINS).where(ADMINS.c.name == name))
            connection.execute(insert(ADMINS).values(name=name, password=password_hash, made=now))

    def count(self) -> int:
        """Return the number of administrators."""
        with self._database.reading() as connection:
            return int(connection.execute(select(func.count()).select_from(ADMINS)).scalar_one())

    def log_in(self, name: str, password: str, client: str) -> str | None:
        """Create a session.

        Args:
            name: Name of the administrator.
            password: Their password.
            client: Hash of the client's network.

        Returns:
            The secret of the session, or None if the name or the password is wrong.

        Raises:
            BusyError: Too many failed attempts.
        """
        login_key = _hash(f"{name.casefold()}\n{client}")
        name_key = _hash(name.casefold())
        with self._database.writing() as connection:
            self._database.lock_names(
                connection, f"login {login_key}", f"login-client {client}", f"login-name {name_key}"
            )
            now = self._database.now(connection)
            if self._is_throttled(connection, login_key, client, name_key, now):
                raise BusyError("too many attempts to log in", _ATTEMPT_WINDOW_SECONDS)
            # Attempts are counted before the password is verified, so that parallel attempts do not evade the limit.
            for kind, code in (("login", login_key), ("login-client", client), ("login-name", name_key)):
                connection.execute(insert(TALLIES).values(kind=kind, who=code, at=now))
            query = select(ADMINS.c.password).where(ADMINS.c.name == name)
            password_hash = connection.execute(query).scalar_one_or_none()
        is_correct = len(password) <= _MAX_PASSWORD and verify_password(password, password_hash or _UNKNOWN_NAME_HASH)
        if password_hash is None or not is_correct:
            return None
        secret = secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            now = self._database.now(connection)
            self._remove_expired_sessions(connection, now)
            connection.execute(
                delete(TALLIES).where(TALLIES.c.kind.in_(("login", KNOWN_LOGIN)), TALLIES.c.who == login_key)
            )
            connection.execute(insert(TALLIES).values(kind=KNOWN_LOGIN, who=login_key, at=now))
            connection.execute(insert(SESSIONS).values(hash=_hash(secret), admin=name, begun=now, seen=now))
        return secret

    def _is_throttled(self, connection: Connection, login_key: str, client: str, name_key: str, now: float) -> bool:
        """Return whether the attempt is refused.

        Failed attempts of other clients never lock out a client that logged in with this name before. Other clients get
        one attempt each, until the daily limit.

        Args:
            connection: An open transaction.
            login_key: Hash of name and client.
            client: Hash of the client's network.
            name_key: Hash of the name.
            now: Seconds since 1970.
        """
        own_attempts = count_tallies(connection, "login", login_key, now - _ATTEMPT_WINDOW_SECONDS)
        if (
            own_attempts >= _MAX_ATTEMPTS
            or count_tallies(connection, "login-client", client, now - _ATTEMPT_WINDOW_SECONDS) >= _MAX_ATTEMPTS_CLIENT
        ):
            return True
        if count_tallies(connection, KNOWN_LOGIN, login_key, now - KNOWN_LOGIN_SECONDS):
            return False
        is_under_attack = (
            count_tallies(connection, "login-name", name_key, now - _ATTEMPT_WINDOW_SECONDS) >= _MAX_ATTEMPTS_NAME
        )
        return (is_under_attack and own_attempts > 0) or count_tallies(
            connection, "login-name", name_key, now - _DAY
        ) >= _MAX_ATTEMPTS_DAY

    def find_session(self, secret: str) -> str | None:
        """Return the name of a session's administrator, or None if the session is unknown or has expired."""
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
