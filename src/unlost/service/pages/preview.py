"""What came back, to look at: pages of strangers, of which nothing is believed and nothing can act.

Each answer has a policy under which the page has no origin, runs no script, sends no form, opens no window, refreshes
to nowhere and loads nothing but files of the same preview. Its address has a key that opens the preview alone: pages
know their own address.
"""

import mimetypes
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from unlost.aggregate.places import Places
from unlost.recover.export.local_address import address_of
from unlost.service.asked import terms_of
from unlost.service.jobs_desk import Desk
from unlost.service.pages.catalogue import strings_for
from unlost.service.pages.looks import Looks
from unlost.shown.strangers import headers_for

_PIECE = 1 << 16
_MOST_OPEN = 4  # packages whose lists of contents are kept in memory
_INDEX = "index.html"


class Packages:
    """Zip files that are read from: the lists of contents of the last few are kept."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, dict[str, zipfile.ZipInfo]] = OrderedDict()
        self._lock = Lock()

    def entry(self, file: Path, name: str) -> tuple[str, zipfile.ZipInfo] | None:
        """Return the name and the entry that a path leads to: itself, or the index of a folder; None if none does."""
        names = self._names(file)
        for each in (name, f"{name.rstrip('/')}/{_INDEX}".lstrip("/")):
            if each in names and not each.endswith("/"):
                return each, names[each]
        return None

    def _names(self, file: Path) -> dict[str, zipfile.ZipInfo]:
        with self._lock:
            if file in self._open:
                self._open.move_to_end(file)
                return self._open[file]
        with zipfile.ZipFile(file) as opened:
            names = {each.filename: each for each in opened.infolist()}
        with self._lock:
            self._open[file] = names
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return names


def pieces(file: Path, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield what an entry has, some at a time."""
    with zipfile.ZipFile(file) as opened, opened.open(entry) as body:
        while piece := body.read(_PIECE):
            yield piece


class Preview:
    """The pages below `/preview`."""

    def __init__(self, desk: Desk, looks: Looks, places: Places | None) -> None:
        self._desk = desk
        self._looks = looks
        self._places = places
        self._packages = Packages()
        self.routes = [Route("/preview/{key}/{path:path}", self._answer, methods=["GET"])]

    async def _answer(self, request: Request) -> Response:
        key, path = request.path_params["key"], request.path_params["path"]
        job = await self._desk.found(self._desk.keys.previewed(key))
        package = None
        if job is not None and job.is_offered:
            package = next((each for each in job.packages if each.form == "zip"), None)
        if job is None or package is None:
            return self._gone(request)
        place = (
            f"{terms_of(request.scope, self._places).places.base}/preview/{key}/"  # a key that is one: plain letters
        )
        if not path and package.start:
            return RedirectResponse(f"/preview/{key}/{address_of(package.start)}", 307, self._headers(place))
        file = self._desk.folders.of(job.number) / package.file
        found = await self._desk.do(self._packages.entry, file, path)
        if found is None:
            return self._gone(request)
        name, entry = found
        if name != path and path and not path.endswith("/"):
            return RedirectResponse(
                f"/preview/{key}/{address_of(name)}", 307, self._headers(place)
            )  # so that links fit
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        headers = {**self._headers(place), "content-type": kind, "content-length": str(entry.file_size)}
        return StreamingResponse(iterate_in_threadpool(pieces(file, entry)), headers=headers)

    def _headers(self, place: str) -> dict[str, str]:
        return {**headers_for(place), "cache-control": "private, max-age=60", "x-robots-tag": "noindex"}

    def _gone(self, request: Request) -> Response:
        text = strings_for(request)("preview.gone")
        headers = {**self._headers("'none'"), "cache-control": "no-store"}
        return Response(text, 404, {**headers, "content-type": "text/plain; charset=utf-8"})
