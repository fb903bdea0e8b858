"""Python model of look-ups in an archive's map and filters. Independent of `unlost._core`."""

from collections.abc import Collection

from tests.models import lookup


def lookup_in_archive(rows: dict[str, list[str]] | None, pages: Collection[str] | None, key: str) -> str:
    """Return the combined result for a canonical key in a map and in filters of pages, if there are any."""
    is_had = pages is not None and key.partition("?")[0] in pages
    if rows is None:
        return "in filters" if is_had else "not in filters"
    is_held, matched, _ = lookup.lookup(rows, key)
    if matched is None:
        return "uncovered"
    if not is_held:
        return "excluded"
    if is_had:
        return "in both"
    by = "wildcard" if matched.endswith("*") else "listed"
    return by if pages is None else f"{by} only"
