"""What an archive says itself."""

from unlost.pages.verdicts.seen import ParsedPage, quote_text
from unlost.pages.verdicts.verdict import VerdictKind, PageVerdict
from unlost.pages.verdicts.wording import load_phrases

_MAX_ARCHIVE_ERROR_PROSE = 320


def detect_archive_error(seen: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page that is an archive's own; None for any other, also of an archive's own site."""
    if seen.is_long or "archive" in (seen.uri.hostname or ""):
        return None
    phrase = _match_archive_phrases(seen) or _match_archive_name(seen)
    return None if phrase is None else PageVerdict(VerdictKind.ARCHIVE_ERROR, f"an archive says {quote_text(phrase)}")


def _match_archive_phrases(seen: ParsedPage) -> str | None:
    """Look for what only archives say."""
    own = load_phrases("archive", "own")
    tops, lines = own.find_in(seen.title_and_headings), own.find_in(seen.lines)
    if tops.max_share() < 0.4 and lines.max_share() < 0.3:
        return None
    besides = (load_phrases("archive", section).find_in(seen.lines) for section in ("gone", "names"))
    return (
        (*tops.phrases, *lines.phrases)[0]
        if seen.prose_length_without(lines, *besides) <= _MAX_ARCHIVE_ERROR_PROSE
        else None
    )


def _match_archive_name(seen: ParsedPage) -> str | None:
    """Look for an archive's name, and that something is not there."""
    names, gone, absent = (
        load_phrases("archive", "names"),
        load_phrases("archive", "gone"),
        load_phrases("not_found", key="phrases"),
    )
    named = names.find_in(seen.title_and_headings), names.find_in(seen.lines)
    if not named[0].phrases and not named[1].phrases:
        return None
    told = [look.find_in(lines) for lines in (seen.lines, seen.title_and_headings) for look in (gone, absent)]
    vague = load_phrases("archive", "vague").find_in(seen.lines)
    if seen.prose_length_without(told[0], told[1], named[1], vague) > _MAX_ARCHIVE_ERROR_PROSE or not (
        told[0].phrases or told[1].phrases
    ):
        return None
    is_speaker = named[0].max_share() >= 0.4 or named[1].max_share() >= 0.4
    is_topic = any(found.max_share() >= 0.3 for found in told)
    if not is_topic or not (is_speaker or len(told[0].phrases) > 1):
        return None
    return next(phrase for found in told for phrase in found.phrases)
