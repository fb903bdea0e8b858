"""Compares a recovered site with the original, for Python programs."""

from os import PathLike

from unlost.comparison.compare import SIMILARITY_THRESHOLD, Comparison, TextComparer, compare_sites
from unlost.comparison.site_readers import open_site


def compare(
    original: str | PathLike[str],
    recovered: str | PathLike[str],
    *,
    original_base: str | None = None,
    recovered_base: str | None = None,
    similar_at: float = SIMILARITY_THRESHOLD,
) -> Comparison:
    """Return what is identical, changed, missing and added in a site that came back, as against the original.

    original, recovered: each a WARC, a WACZ, a folder of files, or the folder of a recovery.
    original_base, recovered_base: the address of the top of a folder of files whose folders are not named after hosts.
    similar_at: from which share of common 10-word shingles on two texts are almost identical.

    docs/compare.md explains the numbers. Raises UsageError for a base that is wrong or missing, InputError for what is
    no site, OSError for what cannot be read.

    >>> import tempfile, unlost
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, texts in {"old": ("a", "b"), "new": ("a",)}.items():
    ...         Path(folder, name, "a.example").mkdir(parents=True)
    ...         for text in texts:
    ...             _ = Path(folder, name, "a.example", f"{text}.txt").write_text(text)
    ...     found = unlost.compare(f"{folder}/old", f"{folder}/new")
    ...     print(found.counts.identical, found.counts.missing, [each.uri for each in found.different])
    1 1 ['http://a.example/b.txt']
    """
    sites = open_site(original, base=original_base), open_site(recovered, base=recovered_base)
    with TextComparer(*sites) as texts:
        return compare_sites(*sites, texts.similarity, similar_at=similar_at)
