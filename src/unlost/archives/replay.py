"""Fetches one capture: follows redirects to it, tells captures from the archive's own pages, checks its digest."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

from unlost import dates
from unlost import uri as addresses
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
from unlost.http.body import BodyTooLargeError, iter_pieces, spool_body
from unlost.http.content_encoding import ContentDecoder, decode_chunks
from unlost.http.models import HttpClient, HttpRequest, HttpResponse
from unlost.memento.timemap import LinkFormatTimeMap, read_timemap
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive, RequestKind
from unlost.uri.normalize import normalize_input_url

_GZIP_MAGIC = b"\x1f\x8b\x08"
_MAX_GZIP_LAYERS = 2  # servers that compress what is compressed do it once more, not more often
# Types of text: what begins with gzip's bytes is none, so it must be coded.
_TEXT_PREFIXES = ("text/", "application/javascript", "application/x-javascript", "application/json", "application/xml")
_TEXT_ENDINGS = ("+xml", "+json")


def is_text_type(mime: str | None) -> bool:
    """Return whether a media type is one of text, which never begins with bytes of gzip."""
    return mime is not None and (mime.startswith(_TEXT_PREFIXES) or mime.endswith(_TEXT_ENDINGS))


def is_gzip(body: BinaryIO) -> bool:
    """Return whether a body, which is left at its beginning, begins as gzip does."""
    body.seek(0)
    head = body.read(len(_GZIP_MAGIC))
    body.seek(0)
    return head == _GZIP_MAGIC


def decompress_text(body: BinaryIO, mime: str | None, archive: Archive, limit: int, problems: Problems) -> BinaryIO:
    """Return the body of a text without gzip coding, at its beginning; the same one if it has none, or is no text.

    What headers say has been undone by whoever brought it: this is for what they do not say. What breaks off is given
    as far as it goes, and counted in `problems` as `cut-gzip`; what is no gzip after all is given as it is.

    Raises FailedError of kind `too-large` if it has more than `limit` bytes.
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


MAX_CAPTURE_BYTES = 1 << 28
"""A larger copy is not fetched: the answer is FailedError of kind `too-large`. It is kept on disk, not in memory."""
_INLINE_DIGEST_BYTES = 1 << 16  # bytes of a body that is read in less time than it takes to have another thread do it
_READ_UNTIL_CLOSE = 50  # responses, after one whose length was wrong, until a length is believed again
_MAX_REDIRECTS = 5  # redirects from one address to a copy; two are usual: to the host, to the closest date
_ORIGINAL_HEADER_PREFIX = "x-archive-orig-"
# What archives add to the headers of a copy that they give raw, and what is about the connection.
_ARCHIVE_HEADERS = {
    "memento-datetime", "link", "content-location", "preference-applied", "vary", "date", "connection", "keep-alive",
    "transfer-encoding", "te", "trailer", "upgrade", "content-security-policy", "cache-control", "server-timing", "via",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """Where the way to a copy ended.

    reply: the last answer; if it is enough to know the date, this may be the redirect to the copy.
    datetime: of the copy, 14 digits.
    address: of the copy, in the archive.
    target: where the copy redirects to, an original address; None if it is none.
    is_rewritten: whether the archive wrote its own address into that redirect.
    """

    response: HttpResponse
    datetime: str
    url: str
    redirect: str | None = None
    is_rewritten: bool = False


@dataclass(slots=True)
class ReplayClient:
    """The stored copies of one archive.

    plain_headers: whether original headers come back under their own names, too (pywb), or only with a prefix.
    read_to_end: for how many more responses Content-Length is ignored, since the last one that was checked was wrong.
    """

    archive: Archive
    client: HttpClient
    problems: Problems
    plain_headers: bool = False
    until_close_left: int = 0

    def raw_url(self, datetime: str, uri: str) -> str:
        """Return where a copy is as it was captured. Raises UriError, UnsupportedError if nobody knows."""
        address = raw_memento_url(self.archive, datetime, uri)
        if address is None:
            raise UnsupportedError("the registry does not say where its copies are", self.archive.id)
        return address

    async def fetch(
        self, uri: str, address: str, listed: Capture | None = None, headers: Mapping[str, str] | None = None
    ) -> FetchedCapture | None:
        """Return the copy of a page at an address of this archive, or the closest that it leads to; None if none.

        listed: what is known of the copy.
        Raises FailedError of kind `foreign` if it is a copy of another page.
        """
        # Only a digest tells which length is right.
        is_to_end = self.until_close_left > 0 and listed is not None and listed.digest is not None
        if is_to_end:
            self.until_close_left -= 1
        try:
            arrival = await self.resolve(uri, address, headers, is_to_end=is_to_end)
        except FailedError:
            self.until_close_left = 0  # it may be the way of reading that failed
            raise
        return None if arrival is None else await self.build_capture(uri, arrival, listed)

    async def resolve(
        self,
        uri: str,
        address: str,
        headers: Mapping[str, str] | None = None,
        *,
        stop_at_date: bool = False,
        is_to_end: bool = False,
    ) -> ReplayTarget | None:
        """Follow an archive from an address to a copy of a page; None if it says that it has none.

        Redirects to other dates of the page, and to other places of the archive, are followed; one to another page is
        the copy. stop_at_date: whether it is enough to know the date of the copy. is_to_end: whether bodies are read
        until the archive closes the connection, also if that is more than their length says.
        """
        seen: set[str] = set()
        while len(seen) <= _MAX_REDIRECTS and address not in seen:
            seen.add(address)
            question = HttpRequest(
                address,
                RequestKind.REPLAY,
                headers or {},
                max_bytes=MAX_CAPTURE_BYTES,
                max_redirects=0,
                until_close=is_to_end,
            )
            reply = await self.client.send(self.archive, question)
            moment = self._memento_datetime(reply)
            link = reply.header("location") if 300 <= reply.status < 400 else None
            if link is None:
                if moment is not None:
                    return ReplayTarget(reply, moment, _response_url(reply))
                with reply.body:
                    if not has_content(self.archive, reply):
                        return None
                raise self._failed("expected a stored copy, found a page without Memento-Datetime", "malformed")
            target = join_url(reply.url, link)
            copy = self._memento_at(target, reply)
            when = _redirect_datetime(uri, moment, copy, leads_away=target != address)
            if when is not None:
                # What is not an address of the archive is that of the original server, perhaps a relative one.
                return ReplayTarget(
                    reply, when, _response_url(reply), copy.uri if copy else join_url(uri, link), copy is not None
                )
            reply.body.close()
            if stop_at_date and copy is not None and len(copy.datetime) == 14:
                return ReplayTarget(reply, copy.datetime, target)
            if url_host(target) is None:
                break
            address = target
        raise self._failed("redirects in a circle, or more than there should be", "redirects")

    async def build_capture(self, uri: str, target: ReplayTarget, listed: Capture | None = None) -> FetchedCapture:
        """Return the copy that was arrived at."""
        reply = target.response
        original = _original_url(reply) or uri
        if not is_same_page(original, uri):
            reply.body.close()
            raise self._failed("a copy of another page than was asked for", "foreign")
        headers = self._original_headers(reply)
        mime = _mime(next((value for name, value in headers if name.lower() == "content-type"), None))
        if listed is None or listed.datetime != target.datetime:
            listed = Capture(original, addresses.key(original), target.datetime, archive=self.archive.id)
        capture = replace(
            listed,
            status=_captured_status(target, listed),
            mime=mime or listed.mime,
            redirect=target.redirect,
            archive=self.archive.id,
            urim=memento_url(self.archive, target.datetime, original) or target.url,
            migrated=self.archive.is_migrated(mime or listed.mime),
        )
        is_coded = any(name.lower() == "content-encoding" for name, _ in (*reply.headers, *headers))
        if not is_coded and capture.digest and await _matches_digest(reply, capture.digest) is False:
            whole = await self._reread_until_close(reply, capture.digest)
            if whole is None:
                message = f"{capture.urim or capture.uri}: another body than the index says: cut short, most likely"
                self.problems.add(Problem("other-digest", f"{self.archive.id} copy", None, 0, message[:400]))
            reply = whole or reply
        body = reply.body
        if is_gzip(body):
            body = await asyncio.to_thread(
                decompress_text, body, capture.mime, self.archive, MAX_CAPTURE_BYTES, self.problems
            )
        return FetchedCapture(capture, headers, body, source=reply.url)

    async def _reread_until_close(self, response: HttpResponse, digest: str) -> HttpResponse | None:
        """Return the same response with all that follows the length it declares, if that is what the index says.

        Some archives, pywb among them, pass on a captured length that is not the body's: that of its coding, for one.
        As there are usually more of them, Content-Length is ignored for a while.
        """
        if response.header("content-length") != str(response.size):
            self.until_close_left = 0
            return None
        question = HttpRequest(
            response.url, RequestKind.REPLAY, max_bytes=MAX_CAPTURE_BYTES, max_redirects=0, until_close=True
        )
        try:
            again = await self.client.send(self.archive, question)
        except FailedError:
            return None
        if again.size > response.size and await _matches_digest(again, digest):
            self.until_close_left = _READ_UNTIL_CLOSE
            response.body.close()
            return again
        again.body.close()
        return None

    def _memento_datetime(self, response: HttpResponse) -> str | None:
        """Return the Memento-Datetime, without which nothing is a copy."""
        text = response.header("memento-datetime")
        if text is None:
            return None
        try:
            return dates.from_http(text)
        except DateError as error:
            self.problems.add(Problem("bad-date", f"{self.archive.id} copy", None, 0, str(error)))
        # It is a copy all the same, and most addresses say of which date.
        copy = parse_memento_url(_response_url(response))
        if copy is None or len(copy.datetime) != 14:
            response.body.close()
            raise self._failed("a copy without a date that can be read", "malformed")
        return copy.datetime

    def _memento_at(self, target: str, response: HttpResponse) -> MementoUrl | None:
        """Return what a redirect's target says if it is a copy in this archive, and not one that a page led to."""
        host = url_host(target)
        if host is None or host not in {*archive_hosts(self.archive), url_host(response.url)}:
            return None
        gate, _, place = (self.archive.timegate or "").partition("://")
        original = target.partition("://")[2].removeprefix(place)
        if gate and original.startswith(("http://", "https://")):
            return MementoUrl(
                "", original
            )  # pywb leads from a copy to its TimeGate, if it was asked for no date itself
        return parse_memento_url(target)

    def _original_headers(self, response: HttpResponse) -> tuple[tuple[str, str], ...]:
        """Return the original headers: those with the archives' prefix, and those that can be no others'."""
        told = {name.lower() for name, _ in response.headers}
        return tuple(
            (name[len(_ORIGINAL_HEADER_PREFIX) :], value) if is_prefixed else (name, value)
            for name, value in response.headers
            if (is_prefixed := name.lower().startswith(_ORIGINAL_HEADER_PREFIX))
            or (_ORIGINAL_HEADER_PREFIX + name.lower() not in told and self._is_original_header(name.lower()))
        )

    def _is_original_header(self, name: str) -> bool:
        if not self.plain_headers:
            return name == "content-type"
        # The place of a redirect is told by the capture, as an original address.
        return name not in _ARCHIVE_HEADERS and not name.startswith("x-archive-")

    def _failed(self, message: str, kind: str) -> FailedError:
        return FailedError(message, self.archive.id, kind)


async def _matches_digest(response: HttpResponse, digest: str) -> bool | None:
    """Return whether a body has a digest, as `has_digest` does; unless it is small, others run meanwhile."""
    if response.size <= _INLINE_DIGEST_BYTES:
        return matches_digest(response.body, digest)
    return await asyncio.to_thread(matches_digest, response.body, digest)


def _redirect_datetime(uri: str, moment: str | None, copy: MementoUrl | None, *, leads_away: bool) -> str | None:
    """Return when a redirect was captured; None if it is the archive's own, on the way to a copy of the page.

    The archive's own ones lead to another date of the same page, or from a TimeGate to the very page. Those that were
    captured lead, in archives that rewrite them, to what they led to at their own date; that also tells them where
    Memento-Datetime is missing.

    leads_away: whether it leads elsewhere than to where it stands itself.
    """
    if moment is not None:
        is_own = copy is not None and leads_away and _is_archive_redirect(uri, moment, copy)
        return None if is_own else moment
    if copy is None or len(copy.datetime) != 14 or is_same_page(copy.uri, uri):
        return None
    return copy.datetime


def _is_archive_redirect(uri: str, moment: str, copy: MementoUrl) -> bool:
    """Return whether a copy is of another date of a page, or of the page as it was asked for."""
    if copy.datetime and copy.datetime != moment:
        return is_same_page(copy.uri, uri)
    return copy.uri.rstrip("/") == normalize_input_url(uri).rstrip("/")


def _response_url(response: HttpResponse) -> str:
    """Return where an answer says that it is."""
    return join_url(response.url, response.header("content-location") or "")


def parse_link_headers(response: HttpResponse) -> LinkFormatTimeMap:
    """Return what the Link headers of an answer say."""
    links = ", ".join(value for name, value in response.headers if name.lower() == "link")
    return read_timemap(links.encode("utf-8", "surrogateescape"), Problems())


def _original_url(response: HttpResponse) -> str | None:
    """Return the page that a copy says it is of, if that is an address."""
    original = parse_link_headers(response).original
    try:
        return original if original and addresses.key(original) else None
    except UriError:
        return None


def _captured_status(target: ReplayTarget, listed: Capture) -> int | None:
    """Return the status that was captured.

    Where an archive wrote its own address into a redirect, it may have written 302 for any: then the index knows.
    """
    if target.response.status == 302 and target.is_rewritten:
        return listed.status if listed.status is not None and 300 <= listed.status < 400 else None
    return target.response.status


def _mime(content_type: str | None) -> str | None:
    mime = (content_type or "").partition(";")[0].strip().lower()
    return mime or None
