"""The text of pages of real crawls, against Python's own parser."""

import pytest

from tests.html.crawled import WARCS, bodies
from tests.models import shingles, text
from unlost.html import extract_text, text_resemblance

# warcio leaves its temporary files to the garbage collector.
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

COMPARED = 20  # pages of each file: the models are slow

WITHOUT_TEXT = ("image/gif", "image/jpeg", "image/png", "application/x-shockwave-flash", "font/woff")


@pytest.mark.parametrize("name", ["archive-org-2008.warc.gz", "iana-2021.warc.gz", "magazine.warc.gz"])
def test_real_pages(name: str) -> None:
    """Almost all words are those of Python's own parser, which mends markup otherwise; images have none."""
    shares: list[float] = []
    for address, mime, body in bodies(WARCS / name):
        read = extract_text(body, mime, address)
        if mime.startswith("text/html"):
            assert read is not None
            assert not read.cut
            if len(shares) == COMPARED:
                continue
            model = text.page(body.decode("utf-8", "replace"))
            share = text_resemblance(read.text, model, 3)
            assert share == shingles.resemblance(read.text, model, 3)
            shares.append(share)
        elif mime.startswith(WITHOUT_TEXT):
            assert read is None
    assert len(shares) > 5
    assert min(shares) > 0.9
    assert sum(shares) / len(shares) > 0.98
