"""Firefox's cache as an archive."""

from unlost.archives.archive import Archive
from unlost.archives.local.flat_folder import CachedResponseArchive
from unlost.formats import firefox_cache


class FirefoxCache(CachedResponseArchive):
    """What is in Firefox's cache: its folder, or a profile. A `Repository`.

    Raises UsageError if the archive's entry names no folder.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(
            archive,
            firefox_cache.firefox_data_folder,
            firefox_cache.read_firefox_responses,
            firefox_cache.open_firefox_content,
            "entries of Firefox's cache",
        )
