"""How a command asks archives: in whose name, and through which courier."""

from functools import partial

import click

from unlost.archives.asking.courier import Courier
from unlost.archives.manners.limit_store import FileLimitStore
from unlost.cli import config
from unlost.cli.common import CommonOption
from unlost.cli.messages import say
from unlost.clock import SystemClock

_MAX_CONTACT = 200  # characters: a mail address, or that of a page


def _checked(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Refuse what would not stay inside the brackets of a header."""
    if value is None or not value.strip():
        return None
    contact = value.strip()
    if not contact.isascii() or not contact.isprintable() or set("()<>") & set(contact) or len(contact) > _MAX_CONTACT:
        raise click.BadParameter("expected a mail address or the address of a page, without brackets")
    return contact


contact_option = click.option(
    "--contact",
    cls=CommonOption,
    callback=_checked,
    metavar="TEXT",
    help="Your mail address or page, which archives are told; without one they are asked half as often. "
    "For all commands: UNLOST_CONTACT.",
)


def open_courier(contact: str | None, patience: float) -> Courier:
    """Return a courier that asks in somebody's name, and keeps limits together with all other commands.

    patience: how many seconds a question may be kept waiting for limits.
    """
    store = FileLimitStore(config.state() / "limits", tell=partial(say, level="warning"))
    return Courier(store, SystemClock(), contact, patience=patience, tell=partial(say, level="note"))
