"""Lists that were rendered, kept beside what they were rendered from: most questions are asked again soon."""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from unlost.aggregate.found import AggregateResult
from unlost.aggregate.wish import RoutingOptions
from unlost.service.answers import Header, compute_etag


class CachedBody(NamedTuple):
    """A body, its entity tag, the headers that are always the same with it, and when what it was made of was made."""

    body: bytes
    etag: bytes
    headers: tuple[Header, ...]
    made: float


class ResponseCache:
    """Bodies, the least recently wanted forgotten first.

    capacity: bytes that all of them may have together, with headers. What has more than a sixteenth of that is never
        kept.
    """

    def __init__(self, capacity: int = 1 << 24) -> None:
        self._capacity = capacity
        self._bodies: OrderedDict[tuple[str, str, str, RoutingOptions], CachedBody] = OrderedDict()
        self._size = 0

    def get_or_render(
        self,
        found: AggregateResult,
        wish: RoutingOptions,
        form: str,
        base: str,
        render: Callable[[], tuple[bytes, list[Header]]],
    ) -> CachedBody:
        """Return the body for what was found: the one that is kept, if it was made from the same."""
        key = (found.uri, form, base, wish)
        kept = self._bodies.get(key)
        if kept is not None:
            if kept.made == found.created_at:
                self._bodies.move_to_end(key)
                return kept
            self._evict(key)
        body, headers = render()
        fresh = CachedBody(body, _etag(body, key, found), tuple(headers), found.created_at)
        weight = _weight(key, fresh)
        if weight <= self._capacity >> 4:
            self._bodies[key] = fresh
            self._size += weight
            while self._size > self._capacity:
                self._evict(next(iter(self._bodies)))
        return fresh

    def _evict(self, key: tuple[str, str, str, RoutingOptions]) -> None:
        self._size -= _weight(key, self._bodies.pop(key))


def _etag(body: bytes, key: tuple[str, str, str, RoutingOptions], found: AggregateResult) -> bytes:
    """Return the tag of a body. JSON tells how long archives took: a weak one, since that is no other list."""
    _, form, base, _ = key
    return (
        b"W/" + compute_etag(f"{found.digest} {form} {base}".encode()) if form.endswith("json") else compute_etag(body)
    )


def _weight(key: tuple[str, str, str, RoutingOptions], rendered: CachedBody) -> int:
    """Return about how many bytes it takes. Links in headers may be longer than the body, and so may a wish."""
    uri, _, base, wish = key
    texts = len(rendered.body) + len(uri) + len(base) + sum(len(value) for _, value in rendered.headers)
    return texts + sum(len(each) + 100 for each in wish.archives or ()) + 1_000  # what the objects themselves take
