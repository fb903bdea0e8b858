"""How a command asks archives: in whose name, and through which courier."""

import click

from unlost.archives.courier import Courier
from unlost.cli.common import CommonOption
from unlost.cli.messages import say

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
    help="Your mail address or page, which archives are told; without one they are asked half as fast. "
    "For all commands: UNLOST_CONTACT.",
)


def open_courier(contact: str | None) -> Courier:
    """Return a courier that asks in somebody's name; say it if there is none."""
    if contact is None:
        say("no contact is set, so archives are asked half as fast: --contact or UNLOST_CONTACT sets one", level="note")
    return Courier()
