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
    """Return what is identical, changed, missing and added in a recovered site, compared with the original.

    docs/compare.md explains the numbers.

    Args:
        original: A WARC, a WACZ, a folder of files, or the folder of a recovery.
        recovered: Like `original`.
        original_base: URL of the top folder, for a folder of files whose subfolders are not named after hosts.
        recovered_base: Like `original_base`.
        similar_at: Share of common 10-word shingles from which two texts count as almost identical.

    Raises:
        UsageError: A base is wrong or missing.
        InputError: An input is not a site.
        OSError: An input cannot be read.

    >>> import tempfile, unlost
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, texts in {"old": ("a", "b"), "new": ("a",)}.items():
    ...         Path(folder, name, "a.example").mkdir(parents=True)
    ...         for text in texts:
    ...             _ = Path(folder, name, "a.example", f"{text}.txt").write_text(text)
    ...     result = unlost.compare(f"{folder}/old", f"{folder}/new")
    ...     print(result.counts.identical, result.counts.missing, [each.uri for each in result.different])
    1 1 ['http://a.example/b.txt']
    """
    sites = open_site(original, base=original_base), open_site(recovered, base=recovered_base)
    with TextComparer(*sites) as texts:
        return compare_sites(*sites, texts.similarity, similar_at=similar_at)
