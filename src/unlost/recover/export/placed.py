"""Which resource of a site is which file of its export."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExportedResource:
    """Where a resource is in an export.

    uri: its address, as it was. path: of its file, relative, with slashes and without escapes; None of a redirect.
    mime, charset: of the file, as far as they are known. to: the whole URL that a redirect leads to; of a file, the one
        that it redirects to if it is a page that does nothing else.
    """

    uri: str
    path: str | None
    mime: str | None = None
    charset: str | None = None
    redirect_target: str | None = None
