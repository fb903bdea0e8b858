"""The cache of rendered bodies has bounded memory."""

from unlost.aggregate import AggregateResult, ArchiveReport, RoutingOptions
from unlost.memento import Mementos
from unlost.web import Header, ResponseCache

CAPACITY = 1 << 20
FOUND = AggregateResult("http://example.com/", Mementos(), (), (), 1.0, 2.0)


def kept_of(count: int, body: bytes, headers: list[Header], wish: RoutingOptions = RoutingOptions()) -> int:  # noqa: B008
    """Return how many of the responses, for different base URLs, remain cached."""
    stored = ResponseCache(CAPACITY)
    for number in range(count):
        stored.get_or_render(FOUND, wish, "link", f"http://{number}", lambda: (body, headers))
    rendered_anew = 0

    def render() -> tuple[bytes, list[Header]]:
        nonlocal rendered_anew
        rendered_anew += 1
        return body, headers

    # From last to first: a new rendering evicts only the oldest entry.
    for number in reversed(range(count)):
        stored.get_or_render(FOUND, wish, "link", f"http://{number}", render)
        if rendered_anew:
            return count - 1 - number
    return count


def test_size_includes_bodies_headers_and_options() -> None:
    """Requests with many different hosts do not exceed the capacity."""
    assert kept_of(100, b"", []) == 100
    for body, headers, options in (
        (b"x" * 20_000, [], RoutingOptions()),
        (b"", [(b"link", b"x" * 20_000)], RoutingOptions()),
        (b"", [], RoutingOptions(frozenset(f"{number:040}.example" for number in range(160)))),
    ):
        assert 20 < kept_of(500, body, headers, options) <= CAPACITY // 20_000
    assert kept_of(2, b"", [(b"link", b"x" * (CAPACITY >> 4))]) == 0


def test_durations_do_not_change_the_etag() -> None:
    """JSON has the same tag unless mementos, outcomes, format or URLs differ."""

    def tag(milliseconds: float, form: str = "json", base: str = "http://a", outcome: str = "hit") -> bytes:
        reports = (ArchiveReport("a", "routed", outcome, 0, milliseconds),)  # type: ignore[arg-type]
        found = AggregateResult("http://example.com/", Mementos(), reports, (), milliseconds, 2.0)
        body = f"{milliseconds} {base} {outcome}".encode()
        return ResponseCache(CAPACITY).get_or_render(found, RoutingOptions(), form, base, lambda: (body, [])).etag

    assert tag(1.0) == tag(2.0)
    assert tag(1.0).startswith(b'W/"')
    assert len({tag(1.0), tag(1.0, "summary json"), tag(1.0, base="http://b"), tag(1.0, outcome="miss")}) == 4
    assert tag(1.0, "link") != tag(2.0, "link")
