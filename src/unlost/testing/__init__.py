"""For other people's tests: a web archive on the loopback interface that holds what a test says, and fails on demand.

>>> import urllib.request
>>> from unlost.testing import FakeArchive
>>> with FakeArchive({"http://lost.example/": [("2014-02-10", "<p>hello")]}) as archive:
...     with urllib.request.urlopen(archive.raw_address("2014", "http://lost.example/")) as answer:
...         print(answer.headers["Memento-Datetime"], answer.read())
Mon, 10 Feb 2014 00:00:00 GMT b'<p>hello'
>>> archive.count("replay")
2

It was asked twice, since it leads from a year to the copy of that year, as archives do. docs/testing.md has more.
"""

from unlost.testing.fake_archive import FakeArchive, Fault, write_registry
from unlost.testing.responses import Asked, Copy, Held, Request

__all__ = ["Asked", "Copy", "FakeArchive", "Fault", "Held", "Request", "write_registry"]
