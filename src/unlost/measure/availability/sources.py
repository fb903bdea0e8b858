"""Where the resources of a site are known from without visiting it: a copy of it, or a list of URLs."""

from base64 import b32encode
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from unlost import uri as addresses
from unlost.crawl.resource import LiveResource, CrawlOutcome
from unlost.errors import InputError, UriError
from unlost.formats.problems import Problems
from unlost.measure.sites.opening import open_site

MIN_URLS_FOR_LISTING = 5
"""From so many addresses of a host on its list is asked for; fewer cost less when asked for one by one."""


def read_copied_resources(path: Path) -> tuple[Iterator[LiveResource], Problems]:
    """Return the resources of a copy of a site (WARC, WACZ, a folder of them), as being on the web, and what was bad.

    Nobody is asked whether they still are. Raises InputError, OSError.
    """
    site = open_site(path)
    if not site.resources:
        raise InputError(f"{path}: no resource of a site is in it")

    def each() -> Iterator[LiveResource]:
        for resource in site.resources.values():
            try:
                key = addresses.key(resource.uri)
            except UriError:
                continue  # a name that is none cannot be asked for
            yield LiveResource(
                resource.uri,
                key,
                CrawlOutcome.FETCHED,
                200,
                resource.mime,
                resource.size,
                f"sha1:{b32encode(resource.digest).decode()}",
                resource.datetime,
                resource.modified,
            )

    return each(), site.problems


def hosts_to_list(uris: Iterable[str]) -> list[str]:
    """Return the hosts of which archives are asked for lists: those with several of the addresses.

    >>> prefixes_of([f"http://a.example/{number}" for number in range(5)] + ["http://b.example/"])
    ['http://a.example/']
    """
    counts: Counter[str] = Counter()
    for uri in uris:
        parts = urlsplit(uri)
        counts[f"{parts.scheme}://{parts.netloc}/"] += 1
    return [host for host, count in counts.items() if count >= MIN_URLS_FOR_LISTING]


def folder_url(url: str) -> str:
    """Return the folder of an address: what is below it is the site.

    >>> prefix_of("http://a.example/b/c.html?d"), prefix_of("http://a.example")
    ('http://a.example/b/', 'http://a.example/')
    """
    parts = urlsplit(url)
    folder = parts.path.rpartition("/")[0]
    return f"{parts.scheme}://{parts.netloc}{folder}/"
