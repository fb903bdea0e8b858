"""Detects soft 404s: pages with a good status that say that there is no such page."""

import re
from urllib.parse import SplitResult

from unlost.html.text import text_resemblance
from unlost.quality.page import PageVerdict, ParsedPage, ReferencePage, VerdictKind, page_identity, quote_text
from unlost.quality.phrase_matcher import PhraseMatches, load_phrases, normalize_text, text_weight

_MIN_PROSE_ABOUT = 150  # letters
_MIN_LISTED_ERRORS = 4  # errors that are told on one page: then it is a list of them
_ABOUT_URL = re.compile(r"\b(404|not[-_]?found|errors?|faq|help|hilfe|aide|support|docs?|manual)\b", re.IGNORECASE)
_LISTING = re.compile(r"\s*index of /", re.IGNORECASE)
_SEARCH = re.compile(r"\bsearch|suche|recherche|buscar|\b(q|s|query|search|keywords?|suche|wort)=", re.IGNORECASE)


def is_about_topic(seen: ParsedPage, found: PhraseMatches) -> bool:
    """Return whether a page is about what it says in its lines, or what its address asks for, rather than that itself.

    found: where it says so, among its lines.
    """
    address = f"{seen.uri.path}?{seen.uri.query}"
    if _LISTING.match(seen.title):
        return True
    if _SEARCH.search(address):
        return True  # a search that found nothing has found nothing
    if len({seen.lines[line] for line, share in found.shares.items() if share >= 0.5}) >= _MIN_LISTED_ERRORS:
        return True
    is_told = load_phrases("headings", "about").find_in(seen.title_and_headings).phrases or _ABOUT_URL.search(address)
    return bool(is_told) and seen.prose_length >= _MIN_PROSE_ABOUT


_TITLE_SHARE = 0.6  # of a part of the title or of a heading: then it is what that is about
_NEARLY_SHARE = 0.4  # and the text says so, too
_LINE_SHARE = 0.5
_PROSE_TITLED = 320  # letters of own prose, besides excuses, that an error page with such a title may have
_PROSE = 150  # and one without
_SMALL_LENGTH = 3000  # letters of all its text
_TINY_LENGTH = 600
_FEW_LINES = 10  # lines
_WHOLE_SHARE = 0.8  # of a line: it says nothing else
_MIN_RESEMBLANCE = 0.85
_EMPTY_LENGTH = 200
_NUMBER = re.compile(r" (404|410|403|500|503) ")
# What languages and databases say when they fail, in whatever language the site is.
_TRACE = re.compile(
    r"(include|require)(_once)?\s?(\(\))?.{0,120}(failed to open|no such file)|fatal error: .{1,200}on line \d|"
    r"parse error: |java(x)?\.[\w.]{1,120}(exception|error)|traceback \(most recent|error '80[0-9a-f]{6}'|"
    r"odbc .{0,40}driver|jet database engine|ole db provider|ora-\d{5}|stack trace|error executing|"
    r"error occurred while processing request|you have an error in your sql|mysql_\w{1,40}\(\)|sqlstate\[|"
    r"(compilation aborted|can't locate \S{1,100}) .{0,300}at \S{1,200} line \d|"
    r"unhandled exception|coldfusion|vbscript (runtime|compilation)",
    re.IGNORECASE,
)
_TRACE_LINE = re.compile(
    r"exception|error|warning|failed|stack|\bat [\w.$]+\(|\bline \d|\.(php|asp|jsp|cfm|java|p[lm]|cgi|py)\b|sql",
    re.IGNORECASE,
)
_ERROR_PAGE = re.compile(r"\b(404|not[-_]?found|error)", re.IGNORECASE)


def detect_soft404(seen: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page that stands for one which is not there; None for any other."""
    reason = _match_reference_pages(seen) or (
        None if seen.is_long else _match_phrases(seen) or _match_stack_trace(seen) or _match_home_redirect(seen)
    )
    return None if reason is None else PageVerdict(VerdictKind.SOFT_404, reason)


def find_not_found_phrases(seen: ParsedPage) -> PhraseMatches:
    """Return where the page says that something is not there."""
    return load_phrases("not_found", key="phrases").find_in(seen.lines)


def _match_reference_pages(seen: ParsedPage) -> str | None:
    """Look for what the site says wherever nothing is."""
    random, home = seen.context.random_url, seen.context.home
    if seen.is_root:
        return None
    if random is not None and random.text.strip() and _is_alike(seen, random):
        return "the site answers the same for addresses that never were"
    before = [known for known in seen.context.earlier if page_identity(known.uri) == page_identity(seen.page.uri)]
    is_other = before and all(text_resemblance(seen.text, known.text, 3) < 0.5 for known in before)
    if home is not None and is_other and text_weight(home.text) > _EMPTY_LENGTH and _is_alike(seen, home):
        return "it is the home page, where another page was"
    return None


def _is_alike(seen: ParsedPage, known: ReferencePage) -> bool:
    """Return whether two pages say the same, but for the address that they may repeat."""
    if text_resemblance(seen.text, known.text, 3) >= _MIN_RESEMBLANCE:
        return True
    lines = {line.strip() for line in known.text.splitlines()}
    other = [line for line in seen.raw_lines if line.strip() not in lines]
    return len(other) <= 2 and sum(map(text_weight, other)) <= _EMPTY_LENGTH


def _match_phrases(seen: ParsedPage) -> str | None:
    """Look for words that say so, in the title, headings, or a page that says little else."""
    look = load_phrases("not_found", key="phrases")
    tops, body = look.find_in(seen.title_and_headings), find_not_found_phrases(seen)
    if is_about_topic(seen, body) or not (tops.phrases or body.phrases) or _redirects_within_site(seen):
        return None
    hints = load_phrases("not_found", key="hints").find_in(seen.lines)
    prose = seen.prose_length_without(body, hints)
    # Titles and headings are lines, too: what else is said?
    heads = {*seen.title_and_headings, f" {normalize_text(seen.title).strip()} "}
    said = {line: share for line, share in body.shares.items() if seen.lines[line] not in heads}
    is_said = any(share >= 0.3 or line in body.leading_lines for line, share in said.items())
    is_hinted = is_said or len(hints.phrases) > 1
    is_all = not prose and seen.text_length < _EMPTY_LENGTH
    if prose < _PROSE_TITLED and _is_headed(seen, tops, is_said=is_said, is_hinted=is_hinted or is_all):
        line = max(((share, seen.title_and_headings[line]) for line, share in tops.shares.items()), default=(0.0, ""))[
            1
        ]
        return f"its title or heading says {quote_text(line)}" if line else f"it says {quote_text(body.phrases[0])}"
    is_small = seen.text_length < _TINY_LENGTH and len(seen.lines) <= _FEW_LINES
    is_framed = len(seen.own_lines) <= 3 < len(seen.raw_lines)
    is_topic = seen.text_length < _SMALL_LENGTH and any(
        share >= _LINE_SHARE or (share >= 0.2 and line in body.leading_lines and seen.line_weights[line])
        for line, share in said.items()
    )
    is_sure = len(hints.phrases) > 1 or is_all or _is_clear(seen, body)
    if prose < _PROSE and body.phrases and is_sure and (is_topic or is_small or is_framed):
        line = max((share, seen.lines[line]) for line, share in body.shares.items())[1]
        return f"it says little but {quote_text(line)}"
    return None


def _is_headed(seen: ParsedPage, tops: PhraseMatches, *, is_said: bool, is_hinted: bool) -> bool:
    """Return whether it is what the title or a heading says; what may mean anything needs the text to say so, too."""
    weak = load_phrases("headings", "weak").find_in(seen.title_and_headings)
    if any(share >= _TITLE_SHARE and share > weak.shares.get(line, 0.0) for line, share in tops.shares.items()):
        return True
    if tops.max_share() >= _TITLE_SHARE:
        return is_hinted
    is_numbered = any(_NUMBER.fullmatch(part) for part in seen.title_and_headings)
    is_error = load_phrases("headings", "titles").find_in(seen.title_and_headings).max_share() > 0.7
    if is_numbered and tops.max_share() >= 0.3:
        return True
    return is_said and (tops.max_share() >= _NEARLY_SHARE or is_numbered or is_error)


def _is_clear(seen: ParsedPage, body: PhraseMatches) -> bool:
    """Return whether the text says so in words that nobody says of symbols or cats, or in a line of its own."""
    weak = load_phrases("headings", "weak").find_in(seen.lines)
    return any(share > weak.shares.get(line, 0.0) or share >= _WHOLE_SHARE for line, share in body.shares.items())


def _match_stack_trace(seen: ParsedPage) -> str | None:
    """Look for what programs say that broke down, where it stands in the place of a page."""
    found = _TRACE.search(seen.text[:20_000])
    if found is None or is_about_topic(seen, find_not_found_phrases(seen)):
        return None
    lines = [text_weight(line) for line in seen.own_lines if text_weight(line) >= 60 and not _TRACE_LINE.search(line)]
    return (
        f"a program broke down: {quote_text(found[0])}"
        if sum(lines) < _PROSE_TITLED and len(seen.lines) <= 40
        else None
    )


def _match_home_redirect(seen: ParsedPage) -> str | None:
    """Look for pages that are nothing but a way to the home page."""
    target = seen.redirect_target
    if target is None or seen.is_root or seen.text_length > _EMPTY_LENGTH:
        return None
    return f"it only leads to {quote_text(target.geturl())}" if _is_home_or_error(target) else None


def _redirects_within_site(seen: ParsedPage) -> bool:
    """Return whether it leads to another page of its site by itself: what was here has moved, and is not gone."""
    target = seen.redirect_target
    return target is not None and target.hostname == seen.uri.hostname and not _is_home_or_error(target)


def _is_home_or_error(target: SplitResult) -> bool:
    return not f"{target.path}{target.query}".strip("/") or is_error_page(target)


def is_error_page(target: SplitResult) -> bool:
    """Return whether a URL is that of an error page."""
    return _ERROR_PAGE.search(f"{target.path}?{target.query}") is not None
