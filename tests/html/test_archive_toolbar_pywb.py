"""What the real pywb puts into pages is taken out again."""

import http.client
from pathlib import Path

from tests.cli.run import unlost
from tests.neighbours import pywb
from tests.recover.sample_captures import capture, fetched, open_store
from unlost.html import extract_links, remove_archive_toolbar

PAGE = (
    b'<!DOCTYPE html>\n<html><head>\n<meta charset="utf-8"><title>The mill</title>\n'
    b'<link rel="stylesheet" href="http://lost.example/mill.css">\n'
    b"<style>p { background: url(http://lost.example/paper.gif) }</style></head>\n"
    b'<body class="x"><p style="color: red">gr\xc3\xbc\xc3\x9fe <a href="http://lost.example/wheel?a=1&amp;b=2">wheel</a>\n'
    b'<img src="http://lost.example/mill.jpg" alt=""> <a href="https://other.example/">others</a></body></html>\n'
)
RELATIVE = (
    b'<html><head><title>A</title></head><body><a href="/wheel">w</a><a href="pond/">p</a>'
    b'<img src="//b.example/c.gif"></body></html>'
)


def test_pages_that_pywb_shows(tmp_path: Path) -> None:
    """Byte for byte the page that was captured, if its links were absolute; else the same links."""
    folder = tmp_path / "warc"
    warcs, _ = open_store(folder)
    for number, body in ((1, PAGE), (2, RELATIVE)):
        warcs.store(fetched(body, (("Content-Type", "text/html; charset=utf-8"),), of=capture(number)), None)
    warcs.close()
    index = tmp_path / "index.cdxj"
    assert unlost("index", "build", *map(str, sorted(folder.iterdir())), "-o", str(index)).returncode == 0
    with pywb.serving(index, folder, tmp_path) as server:
        for number, body in ((1, PAGE), (2, RELATIVE)):
            address = f"http://lost.example/{number}"
            path = f"/t/20140210000001mp_/{address}"
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("GET", path)
            shown = connection.getresponse().read()
            connection.close()
            assert b"WB Insert" in shown
            found = remove_archive_toolbar(shown, f"http://127.0.0.1:{server.port}{path}")
            assert found.banners == 1
            assert extract_links(found.body, "text/html", address) == extract_links(body, "text/html", address)
            assert extract_links(shown, "text/html", address) != extract_links(body, "text/html", address)
            if body is PAGE:
                assert found.body == body
