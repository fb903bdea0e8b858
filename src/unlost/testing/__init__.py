"""A fake web archive for tests, served on the loopback interface.

It serves the captures that a test defines, and fails on demand. `fake_archive` contains the HTTP server, its faults and
the registry writer. The server uses threads and `http.server`, so it needs no further dependency and runs next to any
event loop. Must import nothing but `registry`, `uri`, `dates` and `errors`.

>>> import urllib.request
>>> from unlost.testing import FakeArchive
>>> with FakeArchive({"http://lost.example/": [("2014-02-10", "<p>hello")]}) as archive:
...     with urllib.request.urlopen(archive.raw_address("2014", "http://lost.example/")) as answer:
...         print(answer.headers["Memento-Datetime"], answer.read())
Mon, 10 Feb 2014 00:00:00 GMT b'<p>hello'
>>> archive.count("replay")
2

The archive receives two requests, because it redirects a year to the capture of that year, as public archives do. See
docs/testing.md for more.
"""

from unlost.testing.fake_archive import Asked, Copy, FakeArchive, Fault, Held, Request, write_registry

__all__ = ["Asked", "Copy", "FakeArchive", "Fault", "Held", "Request", "write_registry"]
