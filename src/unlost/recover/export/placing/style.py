"""How files of an export are named."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PathStyle:
    """What names have to be good for.

    browsable: whether browsers open them from a disk: endings tell the type, and no name looks like a query. If not,
        they are what the addresses are, in a folder for each host.
    windows: whether Windows takes them.
    """

    browsable: bool = True
    windows: bool = False

    @property
    def query_mark(self) -> str:
        """What stands between path and query."""
        if self.windows:
            return "@"
        return "-" if self.browsable else "?"

    @property
    def max_path(self) -> int:
        """Bytes of a whole path: Windows takes 259 letters, macOS 1,023 bytes, both with where the export is put."""
        return 180 if self.windows else 900
