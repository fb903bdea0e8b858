"""What a vault is packed with: as was said, or if nothing was, as it was the last time."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from unlost.cli.vault_options import resolve_page_limit, read_passphrase
from unlost.errors import UsageError
from unlost.vault.carriers import Carrier
from unlost.vault.sealing import EncryptionOptions, check_encryption
from unlost.vault.state import VaultSettings, Vault

_INHERITED_OPTIONS = {"carrier": "carrier", "segments": "segments", "sign": "signed", "extra_pages": "extra_pages",
            "notice": "notice", "raw": "raw"}  # fmt: skip
"""Options, and what the vault calls what they set."""


def resolve_settings(
    ctx: click.Context, given: Mapping[str, Any], before: Vault
) -> tuple[VaultSettings, EncryptionOptions]:
    """Return what to pack with, and who may read it. given: the options, by their names.

    Raises UsageError if something would become readable that was sealed, and nobody said so.
    """
    is_known = bool(before.generations)
    seal = (
        _seal(given, before)
        if is_known
        else EncryptionOptions(tuple(given["recipient"]), read_passphrase(given["passphrase_file"]))
    )
    check_encryption(seal)
    chosen = {
        name: getattr(before.settings, name) if is_known and _is_default(ctx, option) else given[option]
        for option, name in _INHERITED_OPTIONS.items()
    }
    is_same_limit = is_known and all(_is_default(ctx, each) for each in ("page_limit", "archives", "only"))
    limit = before.settings.limit if is_same_limit else resolve_page_limit(given)[0]
    kind = "recipients" if seal.recipients else "no" if seal.is_unencrypted else "passphrase"
    chosen["carrier"] = Carrier(chosen["carrier"])
    return VaultSettings(limit=limit, sealed=kind, recipients=seal.recipients, **chosen), seal


def _seal(given: Mapping[str, Any], before: Vault) -> EncryptionOptions:
    """Return who may read it: whoever was named, else whoever could before."""
    named = EncryptionOptions(tuple(given["recipient"]), read_passphrase(given["passphrase_file"]))
    if given["open"]:
        if not named.is_unencrypted:
            raise UsageError("--open lets everybody read it: leave out recipients and passphrase")
        return named
    if not named.is_unencrypted or before.settings.sealed == "no":
        return named
    if before.settings.sealed == "recipients":
        return EncryptionOptions(before.settings.recipients)
    raise UsageError(
        "the vault is sealed with a passphrase: give --passphrase-file, or --open to let everybody read what is packed"
    )


def _is_default(ctx: click.Context, option: str) -> bool:
    return ctx.get_parameter_source(option) in {ParameterSource.DEFAULT, None}
