"""Options that commands of `unlost vault` share."""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from unlost.cli.asking import contact_option, delay_option
from unlost.cli.messages import say
from unlost.cli.readable import READABLE_FILE, FILE_OR_FOLDER, AnyPath
from unlost.errors import InputError, UsageError
from unlost.vault.planning import PAGE_LIMIT, CarrierPage
from unlost.vault.quantities import parse_byte_size
from unlost.vault.sealing import DecryptionKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from unlost.vault.live import SiteCrawl

_T = TypeVar("_T")
PATH = AnyPath(readable=False)
vault_option = click.option(
    "--vault", type=PATH, default=Path("site.vault"), show_default=True, metavar="DIR", help="The folder of the vault."
)
json_option = click.option("--json", is_flag=True, help="The result as JSON.")
date_option = click.option("--date", metavar="DATE", help="When this is done, if not now; SOURCE_DATE_EPOCH, too.")
passphrase_option = click.option(
    "--passphrase-file", type=READABLE_FILE, metavar="FILE", help="A file whose first line is the passphrase."
)
identity_option = click.option(
    "--identity", type=READABLE_FILE, multiple=True, metavar="FILE", help="A file with a secret key of age."
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


def read_passphrase(file: Path | None) -> str | None:
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


def read_keys(identity: Sequence[Path], file: Path | None) -> DecryptionKeys:
    """Return what opens seals. Raises InputError, OSError."""
    return DecryptionKeys(tuple(identity), read_passphrase(file))


def parse_signers(given: Sequence[str]) -> frozenset[str]:
    """Return public keys. Raises UsageError for what is none."""
    for key in given:
        if len(key) != 64 or not set(key.lower()) <= set("0123456789abcdef"):
            raise UsageError(f"--signed-by {ascii(key)[:70]}: expected a public key of 64 hexadecimal digits")
    return frozenset(key.lower() for key in given)


def resolve_pack_time(given: str | None) -> str:
    """Return when it is, 14 digits: as was told, or now. Raises UsageError."""
    from unlost.cli.today import resolve_build_time  # noqa: PLC0415  start-up

    return resolve_build_time(given)


def find_site_pages(given: Mapping[str, Any]) -> list[CarrierPage]:
    """Return the pages of a folder, a list, or a living site. Raises InputError, UsageError."""
    from unlost.vault.site_pages import read_site_folder, read_page_list  # noqa: PLC0415  start-up

    text = given["pages"]
    if "://" in text:
        with open_visits(given) as (run, visiting):
            return run(visiting.list_pages(text))
    place = FILE_OR_FOLDER.convert(text, None, None)
    return read_site_folder(place) if place.is_dir() else read_page_list(place)


@contextmanager
def open_visits(given: Mapping[str, Any]) -> "Iterator[tuple[Callable[[Coroutine[None, None, _T]], _T], SiteCrawl]]":
    """Give what visits a living site, into the folder that was given or one that goes at the end, and what runs it."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415  start-up

    import uvloop  # noqa: PLC0415

    from unlost.cli.progress import progress, crawl_progress  # noqa: PLC0415
    from unlost.cli.visited import say_crawl_gaps  # noqa: PLC0415
    from unlost.clock import SystemClock  # noqa: PLC0415
    from unlost.vault.live import SiteCrawl  # noqa: PLC0415

    with TemporaryDirectory() as temporary, progress("visiting", counted="pages") as bar:
        folder = given["crawl"] or Path(temporary, "crawl")
        visiting = SiteCrawl(folder, SystemClock(), given["delay"], given["contact"], crawl_progress(bar))
        yield uvloop.run, visiting
    if given["crawl"] is not None and not visiting.visited_count:
        say(f"{given['crawl']}: the site as it was visited before: delete the folder to visit it anew", level="note")
    say_crawl_gaps(visiting.result, "give a list of the pages that matter")


def resolve_page_limit(given: Mapping[str, Any]) -> tuple[int, str]:
    """Return how many bytes a page may have, and why: as told, or the least of the archives chosen."""
    if given["page_limit"] is not None:
        return parse_byte_size(given["page_limit"]), "as told"
    if not given["only"] and given["archives"] is None:
        return PAGE_LIMIT, "what every repository keeps that was ever measured"
    from unlost.cli.registry_options import read_registry  # noqa: PLC0415  start-up

    known = read_registry(given["archives"])
    chosen = known.only(given["only"]) if given["only"] else known.archives
    limits = [(int(each.page_bytes.value), each.id) for each in chosen if each.page_bytes is not None]
    if not limits:
        return PAGE_LIMIT, "none of these archives tells a limit"
    size, name = min(limits)
    return size, f"the limit of {name}"
