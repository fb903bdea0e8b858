"""HAR files as an archive."""

from unlost.archives.archive import Archive
from unlost.archives.local.flat_folder import CachedResponseArchive
from unlost.formats import har


class HarFiles(CachedResponseArchive):
    """The responses in a HAR file, or in all of a folder, packed (`.har.gz`) or not: a `Repository`.

    Raises UsageError if the archive's entry names no place.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__(
            archive, lambda place: place, har.read_har_responses, har.open_har_content, "responses in HAR files"
        )
