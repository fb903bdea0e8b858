"""Text of real pages, compared with Python's parser."""

import pytest

from tests.html.real_pages import WARCS, bodies
from tests.models import shingles, text
from unlost.html import extract_text, text_resemblance

# warcio relies on the garbage collector to close its temporary files.
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MAX_COMPARED = 20  # pages per file, since the models are slow

WITHOUT_TEXT = ("image/gif", "image/jpeg", "image/png", "application/x-shockwave-flash", "font/woff")


@pytest.mark.parametrize("name", ["archive-org-2008.warc.gz", "iana-2021.warc.gz", "magazine.warc.gz"])
def test_text_of_real_pages_agrees_with_python_parser(name: str) -> None:
    """Almost all words agree, although Python's parser handles malformed markup differently; images have no text."""
    shares: list[float] = []
    for url, mime, body in bodies(WARCS / name):
        read = extract_text(body, mime, url)
        if mime.startswith("text/html"):
            assert read is not None
            assert not read.cut
            if len(shares) == MAX_COMPARED:
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
