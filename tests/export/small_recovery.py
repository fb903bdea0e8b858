"""A small recovery from an in-memory archive."""

from pathlib import Path

from tests.recovery.recovery_runner import SITE, RecoveryRunner, page
from tests.recovery.stub_archive import Held, Stub

DATE = "20140101000000"
PARKED = b"<title>lost.example</title><p>This domain is for sale</p><a href='/spam'>Related searches</a>"
SAME = b"<html><title>Twice  &amp; the\nsame</title><p>One text at two addresses"
GIF = b"GIF89a" + bytes(range(256)) * 20
LATIN = "<title>Grüße</title><p>Grüße".encode("latin-1")


def make_site() -> list[Held]:
    """Return a site: pages, an image, two captures with equal bytes, a parked page with an older good capture."""
    links = ("one", "same/1", "same/2", "a.gif", "latin", "sold", "missing")
    return [
        page(
            "",
            *links,
            body=b"<title>Front</title>" + b"".join(b"<a href='/%s'>x</a>" % each.encode() for each in links),
        ),
        page("one"),
        page("one", date="20120101000000", body=b"<title>older</title>"),
        Held(SITE + "same/1", DATE, SAME),
        Held(SITE + "same/2", "20140101000001", SAME),
        Held(SITE + "a.gif", DATE, GIF, "image/gif"),
        Held(SITE + "latin", DATE, LATIN, "text/html; charset=iso-8859-1"),
        Held(SITE + "sold", "20150101000000", PARKED),
        Held(SITE + "sold", "20130101000000", b"<title>Not sold</title><p>The shop is open"),
    ]


def recover_small_site(folder: Path, *, max_bytes: int = 1 << 30) -> Path:
    """Recover the site into a folder and return it. max_bytes: limit of each WARC."""
    folder.mkdir()
    run = RecoveryRunner(folder, Stub("a", make_site()), max_bytes=max_bytes)
    assert run().is_done
    return folder
