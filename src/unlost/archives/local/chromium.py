"""Chromium's cache as an archive."""

from unlost.archives.archive import Archive
from unlost.archives.local.flat_folder import CachedResponseArchive
from unlost.formats import chromium_cache


class ChromiumCache(CachedResponseArchive):
    """What is in Chromium's cache, in whichever form: its folder, a profile, or a folder of profiles. A `Repository`.

    Raises UsageError if the archive's entry names no folder.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(
            archive,
            chromium_cache.chromium_data_folder,
            chromium_cache.read_chromium_responses,
            chromium_cache.open_chromium_content,
            "entries of Chromium's cache",
        )
