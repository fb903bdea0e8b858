"""Queries of pywb's index, and responses of any kind by a scripted server."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.archives.helpers import collect_captures, collect_until_error, make_http_client
from tests.external.scripted_server import ScriptedResponse, ScriptedServer, scripted_server
from unlost.archives import PywbClient
from unlost.errors import ExcludedError, FailedError, UnsupportedError
from unlost.http import ArchiveHttpClient
from unlost.registry import Archive, ArchiveKind, PrefixListing, SourcedNumber

SITE = "http://example.com"


def with_script(
    responses: dict[str, ScriptedResponse],
    scenario: Callable[[ScriptedServer, Archive, ArchiveHttpClient], Awaitable[None]],
) -> None:
    """Run a scenario against a scripted index."""

    async def run() -> None:
        async with scripted_server(responses) as server, make_http_client() as http_client:
            lister = PrefixListing(
                ("exact", "prefix", "host"), SourcedNumber(50, "a test"), SourcedNumber(100_000, "a test")
            )
            await scenario(
                server, Archive("p", "P", ArchiveKind.PYWB, cdx=f"{server.base}/cdx", lister=lister), http_client
            )

    asyncio.run(run())


QUERY = (
    "/cdx?url=http%3A%2F%2Fexample.com%2F&matchType=exact&output=json"
    "&fields=urlkey%2Ctimestamp%2Curl%2Cmime%2Cstatus%2Cdigest%2Clength%2Credirect%2Cis_fuzzy&limit=50"
)
ROW = {
    "urlkey": "com,example)/",
    "timestamp": "20140210000001",
    "url": f"{SITE}/",
    "mime": "text/html",
    "status": "200",
}


def test_index_query_has_documented_parameters() -> None:
    """`fields` instead of `fl`, dates of 14 digits, no paging; unsupported match types are not requested."""

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = PywbClient(archive, http_client)
        assert len(await collect_captures(client.captures(f"{SITE}/"))) == 1
        assert server.requests == [QUERY]
        await collect_until_error(client.list_prefix(f"{SITE}/a", "2014", "201502"))
        requested = parse_qs(urlsplit(server.requests[1]).query)
        assert set(requested) == {"url", "matchType", "output", "fields", "limit", "from", "to"}
        assert (requested["from"], requested["to"]) == (["20140101000000"], ["20150228235959"])
        for prefix, matches in (("*.example.com", ("exact", "prefix")), (SITE, ("exact",)), (f"{SITE}/a", ("exact",))):
            lister = PrefixListing(matches, SourcedNumber(50, "a test"))
            _, error = await collect_until_error(
                PywbClient(replace(archive, lister=lister), http_client).list_prefix(prefix)
            )
            assert isinstance(error, UnsupportedError)
        with pytest.raises(UnsupportedError):
            await client.get(SITE)
        assert len(server.requests) == 2
        # Without prefix listing, captures of a page can be queried, without a limit.
        await collect_until_error(PywbClient(replace(archive, lister=None), http_client).captures(f"{SITE}/"))
        assert server.requests[2] == QUERY.removesuffix("&limit=50")

    with_script({QUERY: ScriptedResponse(200, {}, json.dumps(ROW))}, scenario)


def test_invalid_lines_are_skipped_alone() -> None:
    """Wrong types, dates and URLs affect only their line; repeated lines and other pages are skipped."""
    lines = [
        json.dumps(row)
        for row in (
            ROW, [1], "x", None, ROW | {"timestamp": 10**400}, ROW | {"timestamp": None}, ROW | {"url": ["x"]},
            ROW | {"url": "http://example.com/\ud800"}, ROW | {"status": {"a": 1}}, ROW | {"url": "http://other.example/"},
            ROW | {"url": "mailto:a@example.com"}, ROW | {"length": "x"}, ROW | {"is_fuzzy": True}, ROW,
            ROW | {"status": "301", "redirect": "/x", "length": 5},
        )
    ]  # fmt: skip
    body = "\n\n".join([*lines, "{" * 100_000, '{"a":' * 100_000]).encode() + b'\n{"url": "\xff"}\n'

    async def scenario(_: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = PywbClient(archive, http_client)
        results = await collect_captures(client.captures(f"{SITE}/"))
        assert [(capture.status, capture.redirect, capture.length) for capture in results] == [
            (200, None, None),
            (301, "/x", 5),
        ]
        assert client.problems.total == 15
        assert client.problems.counts["fuzzy"] == client.problems.counts["foreign-scheme"] == 1

    with_script({QUERY: ScriptedResponse(200, {}, body)}, scenario)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (ScriptedResponse(404), None),
        (ScriptedResponse(200), None),
        (ScriptedResponse(200, {}, b"\n\n"), None),
        (ScriptedResponse(400, {}, b'{"message": "no"}'), "status"),
        (ScriptedResponse(200, {}, b'{"message": "no"}'), "malformed"),
        (ScriptedResponse(200, {}, b"<html>no</html>"), "malformed"),
        (ScriptedResponse(200, {}, b"\xff" * 5_000_000), "malformed"),
        (ScriptedResponse(200, {}, b"{}\n" * 1_000_000), "malformed"),
        (ScriptedResponse(200, {}, b'{"a":' * 1_000_000), "malformed"),
        (ScriptedResponse(403, {}, b"RobotAccessControlException"), "excluded"),
        (ScriptedResponse(451), "excluded"),
    ],
)
def test_other_text_fails(response: ScriptedResponse, expected: str | None) -> None:
    """Not found is empty, garbage is a failure, an exclusion is a rule."""

    async def scenario(_: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        results, error = await collect_until_error(PywbClient(archive, http_client).captures(f"{SITE}/"))
        assert results == []
        if expected is None:
            assert error is None
        elif expected == "excluded":
            assert isinstance(error, ExcludedError)
        else:
            assert isinstance(error, FailedError)
            assert error.kind == expected

    with_script({QUERY: response}, scenario)
