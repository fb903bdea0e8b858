"""Fetches one capture: follows redirects to it, tells captures from the archive's own pages, checks the digest.

A response is a capture if and only if it has Memento-Datetime (RFC 7089), even with status 404 or 429; without it, the
status is the archive's own.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

from unlost import dates
from unlost.archives.base import FetchedCapture, has_content
from unlost.archives.memento_urls import (
    MementoUrl,
    archive_hosts,
    is_same_page,
    join_url,
    memento_url,
    parse_memento_url,
    raw_memento_url,
    url_host,
)
from unlost.capture import Capture, matches_digest
from unlost.errors import DateError, FailedError, UnsupportedError, UriError
from unlost.http.content_encoding import ContentDecoder, decode_chunks
from unlost.http.models import BodyTooLargeError, HttpClient, HttpRequest, HttpResponse, iter_pieces, spool_body
from unlost.memento.timemap import LinkFormatTimeMap, read_timemap
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind
from unlost.uri import keys
from unlost.uri.normalize import normalize_input_url

MAX_CAPTURE_BYTES = 1 << 28
"""Largest capture. A larger one is a FailedError of kind `too-large`. Large captures are stored on disk."""
_INLINE_DIGEST_BYTES = 1 << 16  # digests of smaller bodies are computed without a thread
_READ_UNTIL_CLOSE = 50  # responses whose Content-Length is ignored after a wrong one
_MAX_REDIRECTS = 5  # from one URL to a capture; two are usual: to another host, and to the closest date
_ORIGINAL_HEADER_PREFIX = "x-archive-orig-"
# Headers that archives add to raw captures, and headers of the connection.
_ARCHIVE_HEADERS = {
    "memento-datetime", "link", "content-location", "preference-applied", "vary", "date", "connection", "keep-alive",
    "transfer-encoding", "te", "trailer", "upgrade", "content-security-policy", "cache-control", "server-timing", "via",
}  # fmt: skip
_GZIP_MAGIC = b"\x1f\x8b\x08"
_MAX_GZIP_LAYERS = 2  # misconfigured servers compress twice, not more often
# Text never begins with the magic bytes of gzip, so a body of these types that does is compressed.
_TEXT_PREFIXES = ("text/", "application/javascript", "application/x-javascript", "application/json", "application/xml")
_TEXT_ENDINGS = ("+xml", "+json")


def is_text_type(mime: str | None) -> bool:
    """Return whether a media type is text, which never begins with the magic bytes of gzip."""
    return mime is not None and (mime.startswith(_TEXT_PREFIXES) or mime.endswith(_TEXT_ENDINGS))


def is_gzip(body: BinaryIO) -> bool:
    """Return whether a body begins as gzip does. The body is left at its beginning."""
    body.seek(0)
    head = body.read(len(_GZIP_MAGIC))
    body.seek(0)
    return head == _GZIP_MAGIC


def decompress_gzip_text(
    body: BinaryIO, mime: str | None, archive: Archive, limit: int, problems: Problems
) -> BinaryIO:
    """Decompress a text that is still compressed with gzip; return any other body unchanged.

    The coding that headers declare has been decoded already; this is for archives that do not declare a coding, or
    repeat the wrong Content-Encoding of the original. A truncated body is decoded as far as possible and counted as
    `cut-gzip`; a body that is not gzip after all is unchanged.

    Raises:
        FailedError: It has more than `limit` bytes; of kind `too-large`.
    """
    for _ in range(_MAX_GZIP_LAYERS):
        if not is_gzip(body) or not is_text_type(mime):
            break
        decoder = ContentDecoder(["gzip"])
        with body:
            try:
                body = spool_body(decode_chunks(iter_pieces(body), decoder), limit)
            except BodyTooLargeError:
                message = f"more than {limit} bytes once it is uncompressed"
                raise FailedError(message, archive.id, "too-large") from None
        if decoder.damage is not None:
            message = f"expected gzip to its end: what came before was read ({decoder.damage})"
            problems.add(Problem("cut-gzip", f"{archive.id} copy", None, 0, message))
    return body


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """The response to which redirects to a capture led.

    Attributes:
        response: The last response. With `stop_at_date`, this may be the redirect to the capture.
        datetime: Date of the capture, 14 digits.
        url: URL of the capture in the archive.
        redirect: Original URL to which the capture redirects; None if it does not redirect.
        is_rewritten: Whether the archive rewrote that redirect to a URL of its own, as the Wayback Machine does and
            pywb does not.
    """

    response: HttpResponse
    datetime: str
    url: str
    redirect: str | None = None
    is_rewritten: bool = False


@dataclass(slots=True)
class ReplayClient:
    """Fetches captures of one archive.

    Attributes:
        archive: The archive's entry in the registry.
        client: Sends the requests.
        problems: Counts what could not be read.
        plain_headers: Whether original headers are also returned under their own names (pywb), not only with the prefix
            `X-Archive-Orig-`.
        until_close_left: Number of further responses whose Content-Length is ignored, because the last
            Content-Length that was checked was wrong.
    """

    archive: Archive
    client: HttpClient
    problems: Problems
    plain_headers: bool = False
    until_close_left: int = 0

    def raw_url(self, datetime: str, uri: str) -> str:
        """Return the URL of a raw capture. Raises UriError, and UnsupportedError if the registry has no such URL."""
        url = raw_memento_url(self.archive, datetime, uri)
        if url is None:
            raise UnsupportedError("the registry does not say where its copies are", self.archive.id)
        return url

    async def fetch(
        self, uri: str, url: str, listed: Capture | None = None, headers: Mapping[str, str] | None = None
    ) -> FetchedCapture | None:
        """Fetch the capture of a page at a URL of this archive, or the closest capture, to which the URL redirects.

        Args:
            uri: The requested page.
            url: The URL in the archive.
            listed: What a listing says about the capture.
            headers: Header fields of the requests.

        Returns:
            The capture; None if there is none.

        Raises:
            FailedError: The request failed; of kind `foreign` for a capture of another page.
        """
        # Without a digest, it is unknown which length is right.
        is_until_close = self.until_close_left > 0 and listed is not None and listed.digest is not None
        if is_until_close:
            self.until_close_left -= 1
        try:
            target = await self.resolve(uri, url, headers, is_until_close=is_until_close)
        except FailedError:
            self.until_close_left = 0  # the failure may be caused by ignoring Content-Length
            raise
        return None if target is None else await self.build_capture(uri, target, listed)

    async def resolve(
        self,
        uri: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        stop_at_date: bool = False,
        is_until_close: bool = False,
    ) -> ReplayTarget | None:
        """Follow redirects from a URL of the archive to a capture of a page.

        Redirects to other dates of the page and to other URLs of the archive are followed; a redirect to another page
        is the capture itself.

        Args:
            uri: The requested page.
            url: The URL in the archive.
            headers: Header fields of the requests.
            stop_at_date: Stop when the date of the capture is known.
            is_until_close: Read bodies until the archive closes the connection, even beyond Content-Length.

        Returns:
            The capture; None if there is none.
        """
        seen: set[str] = set()
        while len(seen) <= _MAX_REDIRECTS and url not in seen:
            seen.add(url)
            request = HttpRequest(
                url,
                RequestKind.REPLAY,
                headers or {},
                max_bytes=MAX_CAPTURE_BYTES,
                max_redirects=0,
                until_close=is_until_close,
            )
            response = await self.client.send(self.archive, request)
            moment = self._memento_datetime(response)
            location = response.header("location") if 300 <= response.status < 400 else None
            if location is None:
                if moment is not None:
                    return ReplayTarget(response, moment, _response_url(response))
                with response.body:
                    if not has_content(self.archive, response):
                        return None
                raise self._failed_error("expected a stored copy, found a page without Memento-Datetime", "malformed")
            target = join_url(response.url, location)
            memento = self._memento_at(target, response)
            captured_at = _redirect_datetime(uri, moment, memento, is_elsewhere=target != url)
            if captured_at is not None:
                # A target outside the archive is the original one, which may be relative.
                redirect = memento.uri if memento else join_url(uri, location)
                return ReplayTarget(response, captured_at, _response_url(response), redirect, memento is not None)
            response.body.close()
            if stop_at_date and memento is not None and len(memento.datetime) == 14:
                return ReplayTarget(response, memento.datetime, target)
            if url_host(target) is None:
                break
            url = target
        raise self._failed_error("redirects in a circle, or more than there should be", "redirects")

    async def build_capture(self, uri: str, target: ReplayTarget, listed: Capture | None = None) -> FetchedCapture:
        """Return the capture in the response to which redirects led. Raises FailedError of kind `foreign`."""
        response = target.response
        original = _original_url(response) or uri
        if not is_same_page(original, uri):
            response.body.close()
            raise self._failed_error("a copy of another page than was asked for", "foreign")
        headers = self._original_headers(response)
        mime = _mime(next((value for name, value in headers if name.lower() == "content-type"), None))
        if listed is None or listed.datetime != target.datetime:
            listed = Capture(original, keys.key(original), target.datetime, archive=self.archive.id)
        capture = replace(
            listed,
            status=_captured_status(target, listed),
            mime=mime or listed.mime,
            redirect=target.redirect,
            archive=self.archive.id,
            urim=memento_url(self.archive, target.datetime, original) or target.url,
            migrated=self.archive.is_migrated(mime or listed.mime),
        )
        is_coded = any(name.lower() == "content-encoding" for name, _ in (*response.headers, *headers))
        if not is_coded and capture.digest and await _matches_digest(response, capture.digest) is False:
            complete = await self._reread_until_close(response, capture.digest)
            if complete is None:
                message = f"{capture.urim or capture.uri}: another body than the index says: cut short, most likely"
                self.problems.add(Problem("other-digest", f"{self.archive.id} copy", None, 0, message[:400]))
            response = complete or response
        body = response.body
        if is_gzip(body):
            body = await asyncio.to_thread(
                decompress_gzip_text, body, capture.mime, self.archive, MAX_CAPTURE_BYTES, self.problems
            )
        return FetchedCapture(capture, headers, body, source=response.url)

    async def _reread_until_close(self, response: HttpResponse, digest: str) -> HttpResponse | None:
        """Request a response again and ignore its Content-Length; None unless its body then has the listed digest.

        Some archives, pywb among them, repeat the captured Content-Length, which may be that of the encoded body. Other
        captures are usually affected as well, so Content-Length is then ignored for `_READ_UNTIL_CLOSE` responses.
        """
        if response.header("content-length") != str(response.size):
            self.until_close_left = 0
            return None
        request = HttpRequest(
            response.url, RequestKind.REPLAY, max_bytes=MAX_CAPTURE_BYTES, max_redirects=0, until_close=True
        )
        try:
            complete = await self.client.send(self.archive, request)
        except FailedError:
            return None
        if complete.size > response.size and await _matches_digest(complete, digest):
            self.until_close_left = _READ_UNTIL_CLOSE
            response.body.close()
            return complete
        complete.body.close()
        return None

    def _memento_datetime(self, response: HttpResponse) -> str | None:
        """Return the Memento-Datetime; None if the response is not a capture."""
        text = response.header("memento-datetime")
        if text is None:
            return None
        try:
            return dates.from_http(text)
        except DateError as error:
            self.problems.add(Problem("bad-date", f"{self.archive.id} copy", None, 0, str(error)))
        # With an invalid date it is a capture nevertheless, and most URLs contain the date.
        memento = parse_memento_url(_response_url(response))
        if memento is None or len(memento.datetime) != 14:
            response.body.close()
            raise self._failed_error("a copy without a date that can be read", "malformed")
        return memento.datetime

    def _memento_at(self, target: str, response: HttpResponse) -> MementoUrl | None:
        """Parse the target of a redirect if it is a memento in this archive; None for any other URL."""
        host = url_host(target)
        if host is None or host not in {*archive_hosts(self.archive), url_host(response.url)}:
            return None
        timegate, _, base = (self.archive.timegate or "").partition("://")
        original = target.partition("://")[2].removeprefix(base)
        if timegate and original.startswith(("http://", "https://")):
            # pywb redirects from a capture to its TimeGate if the request has no date.
            return MementoUrl("", original)
        return parse_memento_url(target)

    def _original_headers(self, response: HttpResponse) -> tuple[tuple[str, str], ...]:
        """Return the original headers: those with the prefix, and those that the archive does not send itself."""
        names = {name.lower() for name, _ in response.headers}
        return tuple(
            (name[len(_ORIGINAL_HEADER_PREFIX) :], value) if is_prefixed else (name, value)
            for name, value in response.headers
            if (is_prefixed := name.lower().startswith(_ORIGINAL_HEADER_PREFIX))
            or (_ORIGINAL_HEADER_PREFIX + name.lower() not in names and self._is_original_header(name.lower()))
        )

    def _is_original_header(self, name: str) -> bool:
        if not self.plain_headers:
            return name == "content-type"
        # The Location of a redirect is in the capture, as the original URL.
        return name not in _ARCHIVE_HEADERS and not name.startswith("x-archive-")

    def _failed_error(self, message: str, kind: str) -> FailedError:
        return FailedError(message, self.archive.id, kind)


async def _matches_digest(response: HttpResponse, digest: str) -> bool | None:
    """Return whether a body has a digest; None if the digest is of an unknown kind. Large bodies use a thread."""
    if response.size <= _INLINE_DIGEST_BYTES:
        return matches_digest(response.body, digest)
    return await asyncio.to_thread(matches_digest, response.body, digest)


def _redirect_datetime(uri: str, moment: str | None, memento: MementoUrl | None, *, is_elsewhere: bool) -> str | None:
    """Return when a redirect was captured; None if it is the archive's own, on the way to a capture of the page.

    The target decides. An archive's own redirects lead to another date of the same page, or from a TimeGate to the page
    itself. Archives that rewrite captured redirects send them to a memento of their target with the date of the
    capture, which identifies them even without Memento-Datetime.

    Args:
        uri: The requested page.
        moment: The Memento-Datetime of the redirect.
        memento: The target, if it is a memento.
        is_elsewhere: The target is not the requested URL itself.
    """
    if moment is not None:
        is_own = memento is not None and is_elsewhere and _is_archive_redirect(uri, moment, memento)
        return None if is_own else moment
    if memento is None or len(memento.datetime) != 14 or is_same_page(memento.uri, uri):
        return None
    return memento.datetime


def _is_archive_redirect(uri: str, moment: str, memento: MementoUrl) -> bool:
    """Return whether a redirect leads to another date of the page, or to the page as requested."""
    if memento.datetime and memento.datetime != moment:
        return is_same_page(memento.uri, uri)
    return memento.uri.rstrip("/") == normalize_input_url(uri).rstrip("/")


def _response_url(response: HttpResponse) -> str:
    """Return the URL of a response, from Content-Location if it has one."""
    return join_url(response.url, response.header("content-location") or "")


def parse_link_headers(response: HttpResponse) -> LinkFormatTimeMap:
    """Parse the Link headers of a response."""
    links = ", ".join(value for name, value in response.headers if name.lower() == "link")
    return read_timemap(links.encode("utf-8", "surrogateescape"), Problems())


def _original_url(response: HttpResponse) -> str | None:
    """Return the URI-R in the Link header of a capture; None if there is none or it is invalid."""
    original = parse_link_headers(response).original
    try:
        return original if original and keys.key(original) else None
    except UriError:
        return None


def _captured_status(target: ReplayTarget, listed: Capture) -> int | None:
    """Return the captured status; None if it is unknown.

    An archive that rewrites redirects may send 302 for all of them, as the Wayback Machine does. Then only the listing
    has the captured status.
    """
    if target.response.status == 302 and target.is_rewritten:
        return listed.status if listed.status is not None and 300 <= listed.status < 400 else None
    return target.response.status


def _mime(content_type: str | None) -> str | None:
    mime = (content_type or "").partition(";")[0].strip().lower()
    return mime or None
