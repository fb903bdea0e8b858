"""The pages of a living site, one by one: one's own, whose vault is planned or looked after."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from urllib.parse import urldefrag, urljoin, urlsplit

from unlost._core import VERSION
from unlost.errors import InputError, UsageError
from unlost.pages.link import Use
from unlost.pages.links import find_links
from unlost.vault.page_text import without_blocks
from unlost.vault.planning import Page
from unlost.vault.site_pages import key_of

MAX_PAGES = 30_000
_SECONDS = 30.0
_MAX_BODY = 64 << 20


def fetch(address: str) -> tuple[str, bytes] | None:
    """Return the media type and the body of a page; None if there is none. Raises UsageError for no web address."""
    if urlsplit(address).scheme not in {"http", "https"}:
        raise UsageError(f"{ascii(address)[:80]}: expected an address that begins with http:// or https://")
    headers = {"User-Agent": f"unlost/{VERSION}", "Accept-Encoding": "identity"}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=_SECONDS) as answer:  # noqa: S310
            return answer.headers.get_content_type(), answer.read(_MAX_BODY)
    except urllib.error.HTTPError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{ascii(address)[:80]}: no answer: {getattr(error, 'reason', error)}") from None


def pages_of_site(start: str, most: int = MAX_PAGES, on_page: Callable[[int], object] | None = None) -> list[Page]:
    """Return the pages that links lead to from a start, at most so many, on its host. Raises InputError if none."""
    found: list[Page] = []
    host = urlsplit(start).netloc
    hops = {urldefrag(start).url: 0}
    waiting = [urldefrag(start).url]
    for address in waiting:
        answer = fetch(address)
        if answer is None or answer[0] not in {"text/html", "application/xhtml+xml"}:
            continue
        body = without_blocks(answer[1])
        found.append(Page(key_of(address), len(body), hops[address]))
        if on_page is not None:
            on_page(len(found))
        if len(found) >= most:
            break
        for link in _links(body, address, host):
            if link not in hops:
                hops[link] = hops[address] + 1
                waiting.append(link)
    if not found:
        raise InputError(f"{ascii(start)[:80]}: no page of HTML is there")
    return found


def _links(body: bytes, address: str, host: str) -> Iterator[str]:
    for link in find_links(body, "text/html", address).links:
        target = urldefrag(urljoin(address, link.uri)).url
        if link.use is Use.PAGE and urlsplit(target).netloc == host:
            yield target
