"""The verdict on a page."""

from unlost.pages.verdicts.answer import Answer, Context
from unlost.pages.verdicts.archive_error import archive_error
from unlost.pages.verdicts.hijacked import hijacked, is_spam
from unlost.pages.verdicts.parked import parked
from unlost.pages.verdicts.seen import Seen
from unlost.pages.verdicts.soft404 import soft_404
from unlost.pages.verdicts.verdict import Verdict
from unlost.pages.verdicts.walls import consent_wall, login_wall

# The surest first: what an archive says may sound like any of the others.
_RULES = (archive_error, parked, consent_wall, login_wall, soft_404, hijacked)
_NOTHING = Context()


def verdict_of(page: Answer, context: Context = _NOTHING) -> Verdict | None:
    """Return why a page is not to be taken for what its address stands for; None if it is good, or nobody can tell.

    page: HTML; of anything else nothing is said. context: what is known of its site; the more, the better.
    Nothing is raised for what is in it; what is looked at has bounds. Takes about a millisecond for 50 kB.
    """
    seen = Seen(page, context)
    return next((found for rule in _RULES if (found := rule(seen)) is not None), None)


def is_suspect(page: Answer) -> bool:
    """Return whether a page has what hijacked sites have, so that it is worth to look at what was there before."""
    return is_spam(Seen(page, _NOTHING))
