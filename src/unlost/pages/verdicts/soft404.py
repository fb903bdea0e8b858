"""Pages that say, with a good status, that there is no such page."""

import re
from urllib.parse import SplitResult

from unlost.pages.shingles import resemblance
from unlost.pages.verdicts.about import is_about
from unlost.pages.verdicts.answer import Known, place_of
from unlost.pages.verdicts.seen import Seen, quoted
from unlost.pages.verdicts.verdict import Kind, Verdict
from unlost.pages.verdicts.wording import Found, normal, phrases, weight

_TITLE_SHARE = 0.6  # of a part of the title or of a heading: then it is what that is about
_NEARLY_SHARE = 0.4  # and the text says so, too
_LINE_SHARE = 0.5
_PROSE_TITLED = 320  # letters of own prose, besides excuses, that an error page with such a title may have
_PROSE = 150  # and one without
_SMALL = 3000  # letters of all its text
_TINY = 600
_FEW = 10  # lines
_WHOLE = 0.8  # of a line: it says nothing else
_ALIKE = 0.85
_EMPTY = 200
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


def soft_404(seen: Seen) -> Verdict | None:
    """Return the verdict on a page that stands for one which is not there; None for any other."""
    reason = _as_elsewhere(seen) or (None if seen.is_long else _in_words(seen) or _trace(seen) or _sends_home(seen))
    return None if reason is None else Verdict(Kind.SOFT_404, reason)


def not_there(seen: Seen) -> Found:
    """Return where the page says that something is not there."""
    return phrases("not_found", key="phrases").within(seen.lines)


def _as_elsewhere(seen: Seen) -> str | None:
    """Look for what the site says wherever nothing is."""
    random, home = seen.context.random, seen.context.home
    if seen.is_root:
        return None
    if random is not None and random.text.strip() and _is_alike(seen, random):
        return "the site answers the same for addresses that never were"
    before = [known for known in seen.context.earlier if place_of(known.uri) == place_of(seen.page.uri)]
    is_other = before and all(resemblance(seen.text, known.text, 3) < 0.5 for known in before)
    if home is not None and is_other and weight(home.text) > _EMPTY and _is_alike(seen, home):
        return "it is the home page, where another page was"
    return None


def _is_alike(seen: Seen, known: Known) -> bool:
    """Return whether two pages say the same, but for the address that they may repeat."""
    if resemblance(seen.text, known.text, 3) >= _ALIKE:
        return True
    lines = {line.strip() for line in known.text.splitlines()}
    other = [line for line in seen.raw_lines if line.strip() not in lines]
    return len(other) <= 2 and sum(map(weight, other)) <= _EMPTY


def _in_words(seen: Seen) -> str | None:
    """Look for words that say so, in the title, headings, or a page that says little else."""
    look = phrases("not_found", key="phrases")
    tops, body = look.within(seen.tops), not_there(seen)
    if is_about(seen, body) or not (tops.phrases or body.phrases) or _leads_on(seen):
        return None
    hints = phrases("not_found", key="hints").within(seen.lines)
    prose = seen.prose_but(body, hints)
    # Titles and headings are lines, too: what else is said?
    heads = {*seen.tops, f" {normal(seen.title).strip()} "}
    said = {line: share for line, share in body.shares.items() if seen.lines[line] not in heads}
    is_said = any(share >= 0.3 or line in body.first for line, share in said.items())
    is_hinted = is_said or len(hints.phrases) > 1
    is_all = not prose and seen.size < _EMPTY
    if prose < _PROSE_TITLED and _is_headed(seen, tops, is_said=is_said, is_hinted=is_hinted or is_all):
        line = max(((share, seen.tops[line]) for line, share in tops.shares.items()), default=(0.0, ""))[1]
        return f"its title or heading says {quoted(line)}" if line else f"it says {quoted(body.phrases[0])}"
    is_small = seen.size < _TINY and len(seen.lines) <= _FEW
    is_framed = len(seen.own) <= 3 < len(seen.raw_lines)
    is_topic = seen.size < _SMALL and any(
        share >= _LINE_SHARE or (share >= 0.2 and line in body.first and seen.weights[line])
        for line, share in said.items()
    )
    is_sure = len(hints.phrases) > 1 or is_all or _is_clear(seen, body)
    if prose < _PROSE and body.phrases and is_sure and (is_topic or is_small or is_framed):
        line = max((share, seen.lines[line]) for line, share in body.shares.items())[1]
        return f"it says little but {quoted(line)}"
    return None


def _is_headed(seen: Seen, tops: Found, *, is_said: bool, is_hinted: bool) -> bool:
    """Return whether it is what the title or a heading says; what may mean anything needs the text to say so, too."""
    weak = phrases("headings", "weak").within(seen.tops)
    if any(share >= _TITLE_SHARE and share > weak.shares.get(line, 0.0) for line, share in tops.shares.items()):
        return True
    if tops.best() >= _TITLE_SHARE:
        return is_hinted
    is_numbered = any(_NUMBER.fullmatch(part) for part in seen.tops)
    is_error = phrases("headings", "titles").within(seen.tops).best() > 0.7
    if is_numbered and tops.best() >= 0.3:
        return True
    return is_said and (tops.best() >= _NEARLY_SHARE or is_numbered or is_error)


def _is_clear(seen: Seen, body: Found) -> bool:
    """Return whether the text says so in words that nobody says of symbols or cats, or in a line of its own."""
    weak = phrases("headings", "weak").within(seen.lines)
    return any(share > weak.shares.get(line, 0.0) or share >= _WHOLE for line, share in body.shares.items())


def _trace(seen: Seen) -> str | None:
    """Look for what programs say that broke down, where it stands in the place of a page."""
    found = _TRACE.search(seen.text[:20_000])
    if found is None or is_about(seen, not_there(seen)):
        return None
    lines = [weight(line) for line in seen.own if weight(line) >= 60 and not _TRACE_LINE.search(line)]
    return f"a program broke down: {quoted(found[0])}" if sum(lines) < _PROSE_TITLED and len(seen.lines) <= 40 else None


def _sends_home(seen: Seen) -> str | None:
    """Look for pages that are nothing but a way to the home page."""
    target = seen.leads_to
    if target is None or seen.is_root or seen.size > _EMPTY:
        return None
    return f"it only leads to {quoted(target.geturl())}" if _is_home_or_error(target) else None


def _leads_on(seen: Seen) -> bool:
    """Return whether it leads to another page of its site by itself: what was here has moved, and is not gone."""
    target = seen.leads_to
    return target is not None and target.hostname == seen.uri.hostname and not _is_home_or_error(target)


def _is_home_or_error(target: SplitResult) -> bool:
    return not f"{target.path}{target.query}".strip("/") or is_error_page(target)


def is_error_page(target: SplitResult) -> bool:
    """Return whether a URL is that of an error page."""
    return _ERROR_PAGE.search(f"{target.path}?{target.query}") is not None
