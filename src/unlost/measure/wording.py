"""What a comparison says, in sentences that need no explanation."""

from unlost.measure.comparison import Comparison
from unlost.measure.difference import ResourceCounts
from unlost.shown.words import format_count

LEVEL_TEXTS = {
    "s1": "Everything that differs is minded: changed, missing and added alike.",
    "s2": "Changed and missing are minded, added is not.",
    "s3": "The same, but a text that is almost identical counts as unchanged.",
    "s4": "Only what is missing is minded.",
    "s5": "The same, but what an archive is known to hold counts as recovered, though it was not fetched.",
}
"""What each level of success means."""

UNREAD_REASONS = {
    "damaged": "the document is damaged",
    "encrypted": "the document is encrypted",
    "no-ghostscript": "PostScript is read through Ghostscript, which is not installed",
    "no-text": "the copy is of a kind that has no text",
    "no-words": "there is no word in either, as in scanned pages",
    "too-big": "it is too big",
    "too-long": "reading the document took too long",
    "unreadable": "the file was changed meanwhile, or is deflated in a WACZ: take it out of the ZIP",
}
"""Why two texts could not be compared, by the reason."""


SKIP_REASONS = {
    "beside-hosts": ("file beside the folders of hosts", "files beside the folders of hosts"),
    "cut": ("copy that breaks off", "copies that break off"),
    "error": ("error", "errors"),
    "foreign-scheme": ("record of something that is no web page", "records of something that is no web page"),
    "link": ("link to another file", "links to other files"),
    "no-address": ("file or record without an address", "files or records without an address"),
    "no-body": ("answer without a body", "answers without a body"),
    "no-status": ("answer without a status", "answers without a status"),
    "not-modified": ("answer that nothing was modified", "answers that nothing was modified"),
    "redirect": ("redirect", "redirects"),
    "revisit-without-body": ("repetition of a copy that is not there", "repetitions of copies that are not there"),
    "server-file": ("file for web servers", "files for web servers"),
    "special-file": ("device or pipe", "devices or pipes"),
    "unreadable": ("file that cannot be read", "files that cannot be read"),
}
"""What is no resource of a site, by the reason: one, and several."""


def describe_skipped(reason: str, count: int) -> str:
    """Return what was left out of a site, in words; other records of archive files are called by their types.

    >>> not_counted("redirect", 3), not_counted("cut", 1), not_counted("request", 2)
    ('3 redirects', '1 copy that breaks off', '2 records of the type request')
    """
    if reason not in SKIP_REASONS:
        return f"{format_count(count, 'record')} of the type {reason}"
    return f"{count:,} {SKIP_REASONS[reason][count != 1]}"


def comparison_headline(counts: ResourceCounts) -> str:
    """Return what everybody wants to know first.

    >>> headline(Counts(identical=20, changed=48, missing=32, added=1))
    '68 of 100 resources came back: 20 unchanged, 48 changed. 32 are missing. 1 more was added.'
    >>> headline(Counts(identical=1))
    '1 of 1 resource came back, unchanged.'
    >>> headline(Counts(missing=7, added=2))
    'None of 7 resources came back. 2 more were added.'
    """
    text = f"{f'{counts.back:,}' if counts.back else 'None'} of {format_count(counts.original, 'resource')} came back"
    if not counts.original:
        text = "The original has no resources"
    elif counts.back and not counts.changed:
        text += ", all unchanged" if counts.back > 1 else ", unchanged"
    elif counts.back and not counts.identical:
        text += ", all changed" if counts.back > 1 else ", changed"
    elif counts.back:
        text += f": {counts.identical:,} unchanged, {counts.changed:,} changed"
    if counts.missing and counts.back:
        text += f". {counts.missing:,} {'is' if counts.missing == 1 else 'are'} missing"
    if counts.added:
        text += f". {counts.added:,} more {'was' if counts.added == 1 else 'were'} added"
    return text + "."


def comparison_remarks(comparison: Comparison) -> list[str]:
    """Return the sentences that follow: about texts, what is held, formats and requests, as far as there is any."""
    found = []
    percent = f"{comparison.similar_at * 100:.4g}"
    if comparison.changed_texts:
        share = f"{comparison.similar:,} of {format_count(comparison.changed_texts, 'changed text')}"
        are = "is" if comparison.similar == 1 or comparison.changed_texts == 1 else "are"
        found.append(f"{share} {are} almost identical (at least {percent} % of what they say is the same).")
    if comparison.migrated:
        found.append(f"{comparison.migrated:,} came back in another format than they had.")
    if comparison.held:
        count = comparison.held
        found.append(f"{count:,} of the missing {'is' if count == 1 else 'are'} known to be in an archive.")
    if comparison.efficiency is not None and comparison.efficiency_without_added is not None:
        found.append(
            f"{format_count(comparison.requests or 0, 'request')}: {comparison.efficiency:.2f} resources for each, "
            f"{comparison.efficiency_without_added:.2f} without added ones."
        )
    return found
