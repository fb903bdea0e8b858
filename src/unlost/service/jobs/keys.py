"""Private links: a job's number, and what nobody can guess behind it."""

import base64
import hmac
import os
import re
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from unlost.errors import InputError

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
