"""What a vault is packed with: as was said, or if nothing was, as it was the last time."""

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from unlost.cli.vault_options import page_limit, passphrase
from unlost.errors import UsageError
from unlost.vault.carriers import Carrier
from unlost.vault.sealing import Seal, check
from unlost.vault.state import Settings, Vault

_STAYING = {"carrier": "carrier", "segments": "segments", "sign": "signed", "extra_pages": "extra_pages",
            "notice": "notice", "raw": "raw"}  # fmt: skip
"""Options, and what the vault calls what they set."""


def settings_of(ctx: click.Context, given: Mapping[str, Any], before: Vault) -> tuple[Settings, Seal]:
    """Return what to pack with, and who may read it. given: the options, by their names.

    Raises UsageError if something would become readable that was sealed, and nobody said so.
    """
    is_known = bool(before.generations)
    seal = _seal(given, before) if is_known else Seal(tuple(given["recipient"]), passphrase(given["passphrase_file"]))
    check(seal)
    chosen = {
        name: getattr(before.settings, name) if is_known and _is_unsaid(ctx, option) else given[option]
        for option, name in _STAYING.items()
    }
    is_same_limit = is_known and all(_is_unsaid(ctx, each) for each in ("page_limit", "archives", "only"))
    limit = before.settings.limit if is_same_limit else page_limit(given)[0]
    kind = "recipients" if seal.recipients else "no" if seal.is_open else "passphrase"
    chosen["carrier"] = Carrier(chosen["carrier"])
    return Settings(limit=limit, sealed=kind, recipients=seal.recipients, **chosen), seal


def _seal(given: Mapping[str, Any], before: Vault) -> Seal:
    """Return who may read it: whoever was named, else whoever could before."""
    named = Seal(tuple(given["recipient"]), passphrase(given["passphrase_file"]))
    if given["open"]:
        if not named.is_open:
            raise UsageError("--open lets everybody read it: leave out recipients and passphrase")
        return named
    if not named.is_open or before.settings.sealed == "no":
        return named
    if before.settings.sealed == "recipients":
        return Seal(before.settings.recipients)
    raise UsageError(
        "the vault is sealed with a passphrase: give --passphrase-file, or --open to let everybody read what is packed"
    )


def _is_unsaid(ctx: click.Context, option: str) -> bool:
    return ctx.get_parameter_source(option) in {ParameterSource.DEFAULT, None}
