"""Lists what lies below a prefix, also the page that index servers leave out."""

from collections.abc import AsyncIterator, Callable

from unlost.archives.prefix import PrefixQuery
from unlost.errors import ListCutError
from unlost.formats.capture import Capture


async def list_with_folder_page(
    prefix: PrefixQuery, list_query: Callable[[PrefixQuery], AsyncIterator[Capture]]
) -> AsyncIterator[Capture]:
    """Yield what an index server gives for a prefix, each capture once. Raises ListCutError at the end.

    A server's keys have no slash at the end of a folder, and what begins with one leaves the page of the folder out: it
    is asked for by itself.
    """
    cut = None
    for part in (prefix.folder, prefix) if prefix.folder else (prefix,):
        try:
            async for capture in list_query(part):
                if part is prefix.folder or not (prefix.folder and prefix.folder.covers(capture.key)):
                    yield capture
        except ListCutError as error:
            cut = cut or error
    if cut is not None:
        raise cut
