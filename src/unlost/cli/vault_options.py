"""Options that commands of `unlost vault` share."""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from unlost.cli.asking import contact_option, delay_option
from unlost.cli.messages import say
from unlost.cli.readable import FILE, PLACE, Named
from unlost.errors import InputError, UsageError
from unlost.vault.planning import PAGE_LIMIT, Page
from unlost.vault.quantities import bytes_of
from unlost.vault.sealing import Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from unlost.vault.live import Visits

T = TypeVar("T")
PATH = Named(readable=False)
vault_option = click.option(
    "--vault", type=PATH, default=Path("site.vault"), show_default=True, metavar="DIR", help="The folder of the vault."
)
json_option = click.option("--json", is_flag=True, help="The result as JSON.")
date_option = click.option("--date", metavar="DATE", help="When this is done, if not now; SOURCE_DATE_EPOCH, too.")
passphrase_option = click.option(
    "--passphrase-file", type=FILE, metavar="FILE", help="A file whose first line is the passphrase."
)
identity_option = click.option(
    "--identity", type=FILE, multiple=True, metavar="FILE", help="A file with a secret key of age."
)
signed_by_option = click.option(
    "--signed-by", multiple=True, metavar="KEY", help="Take only blocks that this public key signed."
)

VISIT_OPTIONS = (
    click.option(
        "--crawl", type=PATH, metavar="DIR", help="Keep what is visited of the site there: the same command goes on."
    ),
    delay_option,
    contact_option,
)


def visit_options(command: "Callable[..., None]") -> "Callable[..., None]":
    """Give a command the options for visiting a living site."""
    for option in reversed(VISIT_OPTIONS):
        command = option(command)
    return command


def passphrase(file: Path | None) -> str | None:
    """Return the first line of a file; None if there is no file. Raises InputError, OSError."""
    if file is None:
        return None
    try:
        lines = file.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        lines = []
    if not lines or not lines[0]:
        raise InputError(f"{file}: expected text with a passphrase in its first line")
    return lines[0]


def keys(identity: Sequence[Path], file: Path | None) -> Keys:
    """Return what opens seals. Raises InputError, OSError."""
    return Keys(tuple(identity), passphrase(file))


def signers(given: Sequence[str]) -> frozenset[str]:
    """Return public keys. Raises UsageError for what is none."""
    for key in given:
        if len(key) != 64 or not set(key.lower()) <= set("0123456789abcdef"):
            raise UsageError(f"--signed-by {ascii(key)[:70]}: expected a public key of 64 hexadecimal digits")
    return frozenset(key.lower() for key in given)


def moment(given: str | None) -> str:
    """Return when it is, 14 digits: as was told, or now. Raises UsageError."""
    from unlost.cli.today import the_build_time  # noqa: PLC0415  start-up

    return the_build_time(given)


def site_pages(given: Mapping[str, Any]) -> list[Page]:
    """Return the pages of a folder, a list, or a living site. Raises InputError, UsageError."""
    from unlost.vault.site_pages import pages_of_folder, pages_of_list  # noqa: PLC0415  start-up

    text = given["pages"]
    if "://" in text:
        with visits(given) as (run, visiting):
            return run(visiting.pages_of_site(text))
    place = PLACE.convert(text, None, None)
    return pages_of_folder(place) if place.is_dir() else pages_of_list(place)


@contextmanager
def visits(given: Mapping[str, Any]) -> "Iterator[tuple[Callable[[Coroutine[None, None, T]], T], Visits]]":
    """Give what visits a living site, into the folder that was given or one that goes at the end, and what runs it."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415  start-up

    import uvloop  # noqa: PLC0415

    from unlost.cli.progress import progress, telling  # noqa: PLC0415
    from unlost.cli.visited import say_visited  # noqa: PLC0415
    from unlost.clock import SystemClock  # noqa: PLC0415
    from unlost.vault.live import Visits  # noqa: PLC0415

    with TemporaryDirectory() as temporary, progress("visiting", counted="pages") as bar:
        folder = given["crawl"] or Path(temporary, "crawl")
        visiting = Visits(folder, SystemClock(), given["delay"], given["contact"], telling(bar))
        yield uvloop.run, visiting
    if given["crawl"] is not None and not visiting.visited:
        say(f"{given['crawl']}: the site as it was visited before: delete the folder to visit it anew", level="note")
    say_visited(visiting.result, "give a list of the pages that matter")


def page_limit(given: Mapping[str, Any]) -> tuple[int, str]:
    """Return how many bytes a page may have, and why: as told, or the least of the archives chosen."""
    if given["page_limit"] is not None:
        return bytes_of(given["page_limit"]), "as told"
    if not given["only"] and given["archives"] is None:
        return PAGE_LIMIT, "what every repository keeps that was ever measured"
    from unlost.cli.registry_options import registry  # noqa: PLC0415  start-up

    known = registry(given["archives"])
    chosen = known.only(given["only"]) if given["only"] else known.archives
    limits = [(int(each.page_bytes.value), each.id) for each in chosen if each.page_bytes is not None]
    if not limits:
        return PAGE_LIMIT, "none of these archives tells a limit"
    size, name = min(limits)
    return size, f"the limit of {name}"
