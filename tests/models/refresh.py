"""Python model of visit pairs: visits as objects, states computed one by one, without hashing."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from unlost.dates import from_http, to_datetime
from unlost.errors import DateError
from unlost.refresh import Visit

_CODINGS = ("-gzip", ";gzip", "-br", "-deflate", "-zstd")


def pairs(visits: Iterable[Visit]) -> tuple[Counter[tuple[str, bool]], Counter[str]]:
    """Return how many pairs of each cell changed and did not, by the cell's name, and the tally."""
    tally: Counter[str] = Counter()
    pages: dict[str, list[tuple[int, int, Visit]]] = defaultdict(list)
    for order, visit in enumerate(visits):
        if not visit.uri.lower().startswith(("http://", "https://")):
            tally["without_host"] += 1
        elif visit.status == 304:
            tally["not_modified"] += 1
        elif not 200 <= visit.status < 300:
            tally["failed"] += 1
        elif visit.digest is None:
            tally["without_digest"] += 1
        else:
            tally["successful"] += 1
            pages[visit.uri].append((visit.time, order, visit))
    found: Counter[tuple[str, bool]] = Counter()
    for seen in pages.values():
        seen.sort(key=lambda one: one[:2])
        last, latest = seen[0][2], seen[0][1]
        for time, order, visit in seen[1:]:
            if time == last.time:
                tally["duplicate"] += 1
                continue
            tally["out_of_order"] += order < latest
            latest = max(order, latest)
            found[cell(last, visit), last.digest != visit.digest] += visit.weight or 1
            last = visit
    return found, tally


def cell(last: Visit, this: Visit) -> str:
    """Return the name of the cell of two visits."""
    states = [_date(last, this), _tag(last, this)]
    states += [_plain(last.content_length, this.content_length), _plain(last.repr_digest, this.repr_digest)]
    return ".".join([*states, _cache(last, this)])


def _seconds(text: str | None) -> int | None:
    try:
        return None if text is None else int(to_datetime(from_http(text)).timestamp())
    except DateError:
        return None


def _date(last: Visit, this: Visit) -> str:
    before, now = last.last_modified, this.last_modified
    if before is None or now is None:
        return "missing" if before is now is None else "half"
    old, new = _seconds(before), _seconds(now)
    if (old, new) == (None, None):
        return "same" if before.strip() == now.strip() else "changed"
    if old == new:
        return "same"
    sent = _seconds(this.date)
    if new is not None and (abs(sent - new) <= 2 if sent is not None else abs(this.time // 1000 - new) <= 5):
        return "now"
    return "back" if old is not None and new is not None and new < old else "changed"


def _bare(tag: str) -> tuple[str, bool, bool]:
    text = tag.strip()
    weak = text[:2] in {"W/", "w/"}
    text = text[2:] if weak else text
    text = text.removeprefix('"').removesuffix('"')
    for coding in _CODINGS:
        if text.endswith(coding):
            return text.removesuffix(coding), weak, True
    return text, weak, False


def _tag(last: Visit, this: Visit) -> str:
    if last.etag is None or this.etag is None:
        return "missing" if last.etag is this.etag is None else "half"
    old, new = _bare(last.etag), _bare(this.etag)
    if old[0] != new[0]:
        return "changed"
    if old != new:
        return "alike"
    return "weak" if new[1] else "same"


def _plain(before: object, now: object) -> str:
    if before is None and now is None:
        return "missing"
    return "same" if before == now else "changed"


def _lifetime(visit: Visit) -> int | None:
    life = None
    for part in (visit.cache_control or "").split(","):
        name, _, value = part.strip().lower().partition("=")
        if name == "max-age":
            digits = value.strip('"')
            life = int(digits) if digits.isdigit() else None
    end = _seconds(visit.expires)
    if life is None and end is not None:
        sent = _seconds(visit.date)
        life = end - (sent if sent is not None else visit.time // 1000)
    return None if life is None else life - max(visit.age or 0, 0)


def _cache(last: Visit, this: Visit) -> str:
    passed = (this.time - last.time) // 1000
    if this.age is not None and this.age > passed:
        return "aged"
    words = [part.strip().lower() for part in (this.cache_control or "").split(",")]
    if any(word.startswith(("no-store", "no-cache")) for word in words):
        return "refused"
    life = _lifetime(last)
    return "fresh" if life is not None and life > 0 and life >= passed else "silent"
