"""Detects soft 404s: pages with a good status that say that the page does not exist, or that an error occurred.

The soft-404 phrases are in `phrases/not_found.toml`, by language; docs/pages.md has the error rates. What counts is
the share of a title, heading or line that a phrase has, and how much other prose there is.
"""

import re
from urllib.parse import SplitResult

from unlost.html.text import text_resemblance
from unlost.quality.page import PageVerdict, ParsedPage, ReferencePage, VerdictKind, page_identity, quote_text
from unlost.quality.phrase_matcher import PhraseMatches, load_phrases, normalize_text, text_weight

_MIN_PROSE_ABOUT = 150  # characters of prose on a page about errors
_MIN_LISTED_ERRORS = 4  # different error messages on one page, which is then a list of them
_ABOUT_URL = re.compile(r"\b(404|not[-_]?found|errors?|faq|help|hilfe|aide|support|docs?|manual)\b", re.IGNORECASE)
_LISTING = re.compile(r"\s*index of /", re.IGNORECASE)
_SEARCH = re.compile(r"\bsearch|suche|recherche|buscar|\b(q|s|query|search|keywords?|suche|wort)=", re.IGNORECASE)

_TITLE_SHARE = 0.6  # share of a title or heading that a phrase must have
_NEARLY_SHARE = 0.4  # the same if the text has a phrase, too
_LINE_SHARE = 0.5  # share of a line
_MAX_PROSE_TITLED = 320  # characters of prose of an error page whose title or heading says so
_MAX_PROSE = 150  # the same for other error pages
_SMALL_LENGTH = 3000  # characters of text
_TINY_LENGTH = 600
_FEW_LINES = 10
_WHOLE_SHARE = 0.8  # share of a line that has no other content
_MIN_RESEMBLANCE = 0.85  # of two texts that count as equal; see `html.text.text_resemblance`
_EMPTY_LENGTH = 200
_NUMBER = re.compile(r" (404|410|403|500|503) ")
# Error messages of programming languages and databases, which are in English on sites of any language.
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


def is_about_topic(page: ParsedPage, matches: PhraseMatches) -> bool:
    """Return whether a page discusses what its phrases say, rather than saying it of itself.

    Examples are directory listings, search results, lists of error messages, and help pages.

    Args:
        page: The page.
        matches: The phrases in its lines.
    """
    target = f"{page.uri.path}?{page.uri.query}"
    if _LISTING.match(page.title):
        return True
    if _SEARCH.search(target):
        return True  # a search without results is not an error
    if len({page.lines[line] for line, share in matches.shares.items() if share >= 0.5}) >= _MIN_LISTED_ERRORS:
        return True
    is_announced = load_phrases("headings", "about").find_in(page.title_and_headings).phrases or _ABOUT_URL.search(
        target
    )
    return bool(is_announced) and page.prose_length >= _MIN_PROSE_ABOUT


def detect_soft404(page: ParsedPage) -> PageVerdict | None:
    """Return the verdict on a page that says that it does not exist; None for any other page."""
    reason = _match_reference_pages(page) or (
        None if page.is_long else _match_phrases(page) or _match_stack_trace(page) or _match_home_redirect(page)
    )
    return None if reason is None else PageVerdict(VerdictKind.SOFT_404, reason)


def find_not_found_phrases(page: ParsedPage) -> PhraseMatches:
    """Return the not-found phrases in the lines of a page."""
    return load_phrases("not_found", key="phrases").find_in(page.lines)


def _match_reference_pages(page: ParsedPage) -> str | None:
    """Compare the page with the responses at a random URL and at the root."""
    random, home = page.context.random_url, page.context.home
    if page.is_root:
        return None
    if random is not None and random.text.strip() and _is_alike(page, random):
        return "same response as for nonexistent URLs"
    earlier = [known for known in page.context.earlier if page_identity(known.uri) == page_identity(page.response.uri)]
    has_changed = earlier and all(text_resemblance(page.text, known.text, 3) < 0.5 for known in earlier)
    if home is not None and has_changed and text_weight(home.text) > _EMPTY_LENGTH and _is_alike(page, home):
        return "home page instead of the requested page"
    return None


def _is_alike(page: ParsedPage, reference: ReferencePage) -> bool:
    """Return whether two pages have the same text, except for a URL that they may repeat."""
    if text_resemblance(page.text, reference.text, 3) >= _MIN_RESEMBLANCE:
        return True
    lines = {line.strip() for line in reference.text.splitlines()}
    other_lines = [line for line in page.raw_lines if line.strip() not in lines]
    return len(other_lines) <= 2 and sum(map(text_weight, other_lines)) <= _EMPTY_LENGTH


def _match_phrases(page: ParsedPage) -> str | None:
    """Match not-found phrases in the title, in headings, or on a page with little other text."""
    matcher = load_phrases("not_found", key="phrases")
    title_matches, line_matches = matcher.find_in(page.title_and_headings), find_not_found_phrases(page)
    if (
        is_about_topic(page, line_matches)
        or not (title_matches.phrases or line_matches.phrases)
        or _redirects_within_site(page)
    ):
        return None
    hints = load_phrases("not_found", key="hints").find_in(page.lines)
    prose = page.prose_length_without(line_matches, hints)
    # Titles and headings are lines, too, and do not count twice.
    heading_lines = {*page.title_and_headings, f" {normalize_text(page.title).strip()} "}
    own_shares = {line: share for line, share in line_matches.shares.items() if page.lines[line] not in heading_lines}
    is_own_statement = any(share >= 0.3 or line in line_matches.leading_lines for line, share in own_shares.items())
    has_hints = is_own_statement or len(hints.phrases) > 1
    is_whole_page = not prose and page.text_length < _EMPTY_LENGTH
    if prose < _MAX_PROSE_TITLED and _is_said_in_heading(
        page, title_matches, is_own_statement=is_own_statement, has_hints=has_hints or is_whole_page
    ):
        line = max(
            ((share, page.title_and_headings[line]) for line, share in title_matches.shares.items()), default=(0.0, "")
        )[1]
        return (
            f"title or heading contains {quote_text(line)}"
            if line
            else f"contains {quote_text(line_matches.phrases[0])}"
        )
    is_small = page.text_length < _TINY_LENGTH and len(page.lines) <= _FEW_LINES
    is_framed = len(page.own_lines) <= 3 < len(page.raw_lines)
    is_topic = page.text_length < _SMALL_LENGTH and any(
        share >= _LINE_SHARE or (share >= 0.2 and line in line_matches.leading_lines and page.line_weights[line])
        for line, share in own_shares.items()
    )
    is_sure = len(hints.phrases) > 1 or is_whole_page or _is_unambiguous(page, line_matches)
    if prose < _MAX_PROSE and line_matches.phrases and is_sure and (is_topic or is_small or is_framed):
        line = max((share, page.lines[line]) for line, share in line_matches.shares.items())[1]
        return f"little text except {quote_text(line)}"
    return None


def _is_said_in_heading(
    page: ParsedPage, title_matches: PhraseMatches, *, is_own_statement: bool, has_hints: bool
) -> bool:
    """Return whether the title or a heading says "not found". Ambiguous phrases count only with support in the text."""
    weak = load_phrases("headings", "weak").find_in(page.title_and_headings)
    if any(
        share >= _TITLE_SHARE and share > weak.shares.get(line, 0.0) for line, share in title_matches.shares.items()
    ):
        return True
    if title_matches.max_share() >= _TITLE_SHARE:
        return has_hints
    is_numbered = any(_NUMBER.fullmatch(part) for part in page.title_and_headings)
    is_error = load_phrases("headings", "titles").find_in(page.title_and_headings).max_share() > 0.7
    if is_numbered and title_matches.max_share() >= 0.3:
        return True
    return is_own_statement and (title_matches.max_share() >= _NEARLY_SHARE or is_numbered or is_error)


def _is_unambiguous(page: ParsedPage, line_matches: PhraseMatches) -> bool:
    """Return whether the text has an unambiguous phrase, or one in a line of its own."""
    weak = load_phrases("headings", "weak").find_in(page.lines)
    return any(
        share > weak.shares.get(line, 0.0) or share >= _WHOLE_SHARE for line, share in line_matches.shares.items()
    )


def _match_stack_trace(page: ParsedPage) -> str | None:
    """Match error messages of programs on pages with little other text."""
    message = _TRACE.search(page.text[:20_000])
    if message is None or is_about_topic(page, find_not_found_phrases(page)):
        return None
    lines = [text_weight(line) for line in page.own_lines if text_weight(line) >= 60 and not _TRACE_LINE.search(line)]
    return (
        f"program error: {quote_text(message[0])}" if sum(lines) < _MAX_PROSE_TITLED and len(page.lines) <= 40 else None
    )


def _match_home_redirect(page: ParsedPage) -> str | None:
    """Match pages that are nothing but a redirect to the home page or to an error page."""
    target = page.redirect_target
    if target is None or page.is_root or page.text_length > _EMPTY_LENGTH:
        return None
    return f"only redirects to {quote_text(target.geturl())}" if _is_home_or_error(target) else None


def _redirects_within_site(page: ParsedPage) -> bool:
    """Return whether the page redirects to another page of its site, and so has moved."""
    target = page.redirect_target
    return target is not None and target.hostname == page.uri.hostname and not _is_home_or_error(target)


def _is_home_or_error(target: SplitResult) -> bool:
    return not f"{target.path}{target.query}".strip("/") or is_error_page(target)


def is_error_page(target: SplitResult) -> bool:
    """Return whether a URL is that of an error page."""
    return _ERROR_PAGE.search(f"{target.path}?{target.query}") is not None
