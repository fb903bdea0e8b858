"""An answer as bytes that say whether they are whole, to be kept on disk."""

import json
import struct
import zlib
from hashlib import blake2b

from unlost.aggregate.found import AggregateResult
from unlost.aggregate.report import ArchiveReport
from unlost.aggregate.wish import RoutingOptions
from unlost.errors import InputError
from unlost.formats.mementos import Mementos

_MIN_COMPRESSED_BYTES = 512  # bytes; what is smaller is not worth compressing
_MAX_RESULT_BYTES = 1 << 28  # of an answer, uncompressed; what is larger was not written by us
_HEAD = struct.Struct(">IBI")  # checksum of all behind it, whether that is compressed, length of the first part


def cache_key(scope: str, uri: str, options: RoutingOptions) -> bytes:
    """Return by what an answer is known: the same for the same page, wish and scope, and for no others.

    scope: what stands for the archives that there are.
    """
    return blake2b(json.dumps(_cache_identity(scope, uri, options)).encode(), digest_size=20).digest()


def serialize_result(scope: str, options: RoutingOptions, result: AggregateResult) -> bytes:
    """Return an answer as bytes, without its times, which stand beside it.

    >>> found = Found("http://a/", Mementos(), (Report("a", "routed", "miss"),), ("b",), 1.0, 2.0)
    >>> unpacked("", "http://a/", Wish(), packed("", Wish(), found), 1.0, 2.0).reports[0].outcome
    'miss'
    """
    reports = [[each.archive, each.reason, each.outcome, each.mementos, each.message] for each in result.reports]
    said = json.dumps(
        [_cache_identity(scope, result.uri, options), reports, result.passed_over], separators=(",", ":")
    ).encode()
    body = said + result.mementos.packed()
    is_compressed = len(body) > _MIN_COMPRESSED_BYTES
    if is_compressed:
        body = zlib.compress(body, 1)
    rest = _HEAD.pack(0, is_compressed, len(said))[4:] + body
    return zlib.crc32(rest).to_bytes(4, "big") + rest


def deserialize_result(
    scope: str, uri: str, options: RoutingOptions, data: bytes, made: float, until: float
) -> AggregateResult:
    """Return the answer. Raises InputError if it is damaged, or one to another question."""
    try:
        checksum, is_compressed, length = _HEAD.unpack_from(data)
        if zlib.crc32(data[4:]) != checksum:
            raise InputError("a kept answer is damaged: its checksum is another")
        body = data[_HEAD.size :]
        if is_compressed:
            inflater = zlib.decompressobj()
            body = inflater.decompress(body, _MAX_RESULT_BYTES)
        identity, reports, passed_over = json.loads(body[:length])
        if identity != _cache_identity(scope, uri, options):
            raise InputError("a kept answer is one to another question")
        return AggregateResult(
            uri,
            Mementos.unpacked(body[length:]),
            tuple(
                ArchiveReport(archive, reason, outcome, n, message=said)
                for archive, reason, outcome, n, said in reports
            ),
            tuple(passed_over),
            made,
            until,
            from_cache=True,
        )
    except (struct.error, zlib.error, ValueError, TypeError) as error:
        raise InputError(f"a kept answer cannot be read: {error!s:.100}") from error


def _cache_identity(scope: str, uri: str, options: RoutingOptions) -> list[object]:
    return [
        scope,
        uri,
        None if options.archives is None else sorted(options.archives),
        options.broadcast,
        options.top_k,
        options.min_probability,
        None if options.preferred is None else sorted(options.preferred),
    ]
