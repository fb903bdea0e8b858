"""Encryption with age, for recipients or with a passphrase. The stock `age` tool can decrypt the result."""

from dataclasses import dataclass
from pathlib import Path

from unlost.errors import InputError, UsageError


@dataclass(frozen=True, slots=True)
class EncryptionOptions:
    """How to encrypt.

    Attributes:
        recipients: Public keys, `age1…` or `ssh-ed25519 …`. Cannot be combined with a passphrase.
        passphrase: None for encryption to recipients, or for none.
    """

    recipients: tuple[str, ...] = ()
    passphrase: str | None = None

    @property
    def is_unencrypted(self) -> bool:
        """Whether nothing is encrypted."""
        return not self.recipients and self.passphrase is None


@dataclass(frozen=True, slots=True)
class DecryptionKeys:
    """Keys for decryption.

    Attributes:
        identities: Files with `AGE-SECRET-KEY-…` lines, or OpenSSH private keys.
        passphrase: None if there is none.
    """

    identities: tuple[Path, ...] = ()
    passphrase: str | None = None


def encrypt(content: bytes, options: EncryptionOptions) -> bytes:
    """Return an age file with the content. It differs on each call. Raises UsageError for an invalid recipient."""
    import pyrage  # noqa: PLC0415  start-up: most vaults are not encrypted

    if options.passphrase is not None:
        return bytes(pyrage.passphrase.encrypt(content, options.passphrase))
    return bytes(pyrage.encrypt(content, [_parse_recipient(text) for text in options.recipients]))


def check_encryption(options: EncryptionOptions) -> None:
    """Raise UsageError for invalid recipients, or recipients combined with a passphrase."""
    if options.recipients and options.passphrase is not None:
        raise UsageError("age takes recipients or a passphrase, not both: leave one out")
    for text in options.recipients:
        _parse_recipient(text)


def _parse_recipient(text: str) -> object:
    import pyrage  # noqa: PLC0415

    kind = pyrage.ssh.Recipient if text.startswith("ssh-") else pyrage.x25519.Recipient
    try:
        return kind.from_str(text.strip())
    except pyrage.RecipientError:
        message = "expected a recipient of age (age1… or ssh-ed25519 …)"
        raise UsageError(f"{message}, found {text[:20]!a}") from None


def decrypt(content: bytes, keys: DecryptionKeys) -> bytes:
    """Decrypt an age file. Raises InputError if the keys do not fit."""
    import pyrage  # noqa: PLC0415

    try:
        if content.startswith(b"age-encryption.org/v1\n-> scrypt "):
            if keys.passphrase is None:
                raise InputError("sealed with a passphrase: give --passphrase-file")
            return bytes(pyrage.passphrase.decrypt(content, keys.passphrase))
        identities = [each for file in keys.identities for each in _read_identities(file)]
        if not identities:
            raise InputError("sealed for recipients of age: give --identity with the file of a secret key")
        return bytes(pyrage.decrypt(content, identities))
    except pyrage.DecryptError as error:
        raise InputError(f"the keys given do not open what was packed: {error}") from None


def _read_identities(file: Path) -> list[object]:
    import pyrage  # noqa: PLC0415

    content = file.read_bytes()
    try:
        if content.lstrip().startswith(b"-----BEGIN"):
            return [pyrage.ssh.Identity.from_buffer(content)]
        lines = content.decode("ascii", "replace").splitlines()
        return [pyrage.x25519.Identity.from_str(line.strip()) for line in lines if line.startswith("AGE-SECRET-KEY-")]
    except pyrage.IdentityError:
        raise InputError(f"{file}: expected secret keys of age (AGE-SECRET-KEY-…) or an OpenSSH key") from None
