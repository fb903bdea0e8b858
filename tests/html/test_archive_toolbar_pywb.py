"""The toolbar of a real pywb is removed."""

import http.client
from pathlib import Path

from tests.cli.run import unlost
from tests.external import pywb
from tests.recovery.sample_captures import capture, make_fetched_capture, open_store
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


def test_page_replayed_by_pywb_is_restored(tmp_path: Path) -> None:
    """Pages with absolute links are restored byte for byte, others with the same links."""
    folder = tmp_path / "warc"
    warcs, _ = open_store(folder)
    for number, body in ((1, PAGE), (2, RELATIVE)):
        warcs.store(
            make_fetched_capture(body, (("Content-Type", "text/html; charset=utf-8"),), of=capture(number)), None
        )
    warcs.close()
    index = tmp_path / "index.cdxj"
    assert unlost("index", "build", *map(str, sorted(folder.iterdir())), "-o", str(index)).returncode == 0
    with pywb.serve_index(index, folder, tmp_path) as server:
        for number, body in ((1, PAGE), (2, RELATIVE)):
            url = f"http://lost.example/{number}"
            path = f"/t/20140210000001mp_/{url}"
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("GET", path)
            replayed = connection.getresponse().read()
            connection.close()
            assert b"WB Insert" in replayed
            cleaned = remove_archive_toolbar(replayed, f"http://127.0.0.1:{server.port}{path}")
            assert cleaned.banners == 1
            assert extract_links(cleaned.body, "text/html", url) == extract_links(body, "text/html", url)
            assert extract_links(replayed, "text/html", url) != extract_links(body, "text/html", url)
            if body is PAGE:
                assert cleaned.body == body
