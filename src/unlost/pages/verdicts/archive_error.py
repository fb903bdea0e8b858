"""What an archive says itself."""

from unlost.pages.verdicts.seen import Seen, quoted
from unlost.pages.verdicts.verdict import Kind, Verdict
from unlost.pages.verdicts.wording import phrases

_PROSE = 320


def archive_error(seen: Seen) -> Verdict | None:
    """Return the verdict on a page that is an archive's own; None for any other, also of an archive's own site."""
    if seen.is_long or "archive" in (seen.uri.hostname or ""):
        return None
    phrase = _own_words(seen) or _named(seen)
    return None if phrase is None else Verdict(Kind.ARCHIVE_ERROR, f"an archive says {quoted(phrase)}")


def _own_words(seen: Seen) -> str | None:
    """Look for what only archives say."""
    own = phrases("archive", "own")
    tops, lines = own.within(seen.tops), own.within(seen.lines)
    if tops.best() < 0.4 and lines.best() < 0.3:
        return None
    besides = (phrases("archive", section).within(seen.lines) for section in ("gone", "names"))
    return (*tops.phrases, *lines.phrases)[0] if seen.prose_but(lines, *besides) <= _PROSE else None


def _named(seen: Seen) -> str | None:
    """Look for an archive's name, and that something is not there."""
    names, gone, absent = phrases("archive", "names"), phrases("archive", "gone"), phrases("not_found", key="phrases")
    named = names.within(seen.tops), names.within(seen.lines)
    if not named[0].phrases and not named[1].phrases:
        return None
    told = [look.within(lines) for lines in (seen.lines, seen.tops) for look in (gone, absent)]
    vague = phrases("archive", "vague").within(seen.lines)
    if seen.prose_but(told[0], told[1], named[1], vague) > _PROSE or not (told[0].phrases or told[1].phrases):
        return None
    is_speaker = named[0].best() >= 0.4 or named[1].best() >= 0.4
    is_topic = any(found.best() >= 0.3 for found in told)
    if not is_topic or not (is_speaker or len(told[0].phrases) > 1):
        return None
    return next(phrase for found in told for phrase in found.phrases)
