"""Preview of a recovered site: untrusted content, served without any capabilities.

Each response has a Content-Security-Policy under which the page has no origin, runs no scripts, submits no forms, opens
no windows, cannot navigate away and loads only files of the same preview. The key in its URL grants access to the
preview only, since pages can read their own URL.
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

from unlost.aggregate.request import parse_headers
from unlost.aggregate.urls import ServiceUrls
from unlost.export.paths import relative_url
from unlost.jobs.service import JobService
from unlost.report.html_templates import sandbox_headers
from unlost.webui.render import PageRenderer
from unlost.webui.templating import strings_for_request

_PIECE = 1 << 16
_MAX_INDEXES = 4  # packages whose directories are cached
_INDEX = "index.html"


class ZipPackageReader:
    """Reads entries of zip packages. The directories of the most recently used packages are cached."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[Path, dict[str, zipfile.ZipInfo]] = OrderedDict()
        self._lock = Lock()

    def find_entry(self, file: Path, name: str) -> tuple[str, zipfile.ZipInfo] | None:
        """Return the name and entry for a path, or None.

        A path is a file or a folder with an index page.
        """
        names = self._names(file)
        for each in (name, f"{name.rstrip('/')}/{_INDEX}".lstrip("/")):
            if each in names and not each.endswith("/"):
                return each, names[each]
        return None

    def _names(self, file: Path) -> dict[str, zipfile.ZipInfo]:
        with self._lock:
            if file in self._indexes:
                self._indexes.move_to_end(file)
                return self._indexes[file]
        with zipfile.ZipFile(file) as package:
            names = {each.filename: each for each in package.infolist()}
        with self._lock:
            self._indexes[file] = names
            while len(self._indexes) > _MAX_INDEXES:
                self._indexes.popitem(last=False)
        return names


def read_entry(file: Path, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the content of an entry in chunks."""
    with zipfile.ZipFile(file) as package, package.open(entry) as body:
        while chunk := body.read(_PIECE):
            yield chunk


class PreviewPages:
    """The pages below `/preview`."""

    def __init__(self, service: JobService, renderer: PageRenderer, urls: ServiceUrls | None) -> None:
        self._service = service
        self._renderer = renderer
        self._urls = urls
        self._packages = ZipPackageReader()
        self.routes = [Route("/preview/{key}/{path:path}", self._serve, methods=["GET"])]

    async def _serve(self, request: Request) -> Response:
        key, path = request.path_params["key"], request.path_params["path"]
        job = await self._service.find_job(self._service.signer.verify_preview_key(key))
        package = None
        if job is not None and job.is_offered:
            package = next((each for each in job.packages if each.form == "zip"), None)
        if job is None or package is None:
            return self._not_found(request)
        # The key is valid, so it has only characters that are safe in a header.
        base = f"{parse_headers(request.scope, self._urls).urls.base}/preview/{key}/"
        if not path and package.start:
            return RedirectResponse(f"/preview/{key}/{relative_url(package.start)}", 307, self._headers(base))
        file = self._service.folders.folder_of(job.number) / package.file
        found = await self._service.run_query(self._packages.find_entry, file, path)
        if found is None:
            return self._not_found(request)
        name, entry = found
        if name != path and path and not path.endswith("/"):
            # Relative links in the index page need the URL of the folder.
            return RedirectResponse(f"/preview/{key}/{relative_url(name)}", 307, self._headers(base))
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        headers = {**self._headers(base), "content-type": media_type, "content-length": str(entry.file_size)}
        return StreamingResponse(iterate_in_threadpool(read_entry(file, entry)), headers=headers)

    def _headers(self, source: str) -> dict[str, str]:
        return {**sandbox_headers(source), "cache-control": "private, max-age=60", "x-robots-tag": "noindex"}

    def _not_found(self, request: Request) -> Response:
        text = strings_for_request(request)("preview.gone")
        headers = {**self._headers("'none'"), "cache-control": "no-store"}
        return Response(text, 404, {**headers, "content-type": "text/plain; charset=utf-8"})
