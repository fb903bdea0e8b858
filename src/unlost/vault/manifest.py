"""The manifest: which files there are, in which segments, and which pages carry them. For when something is missing."""

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unlost.errors import InputError
from unlost.vault.generation import Generation, VaultSegment, segment_to_json, segment_from_json

MANIFEST_FORMAT = "unlost-vault-manifest-1"
MANIFEST_NAME = "manifest"
_MAX_MANIFEST_BYTES = 64 << 20
"""Of a manifest's text: of half a million files, which no pages carry."""

_MAX_MANIFEST_EXPANSION = 100
"""How many times as long as what is packed its text may be: names and hashes are packed to a tenth at best."""


@dataclass(frozen=True, slots=True)
class VaultManifest:
    """What a manifest says. number: of its generation. pages: by segment, which page carries which block of it."""

    number: int
    segments: tuple[VaultSegment, ...]
    pages: Mapping[str, Mapping[int, str]]


def serialize_manifest(generation: Generation) -> tuple[bytes, str]:
    """Return the manifest of all segments of files, gzipped, and the SHA-256 of its text."""
    segments = []
    for each in generation.files:
        pages = generation.pages_of(each)
        value: dict[str, Any] = segment_to_json(each)
        value["pages"] = [pages.get(index) for index in range(each.shape.count)]
        segments.append(value)
    text = json.dumps(
        {"format": MANIFEST_FORMAT, "number": generation.number, "segments": segments}, separators=(",", ":")
    ).encode()
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(text)
    return packed.getvalue(), hashlib.sha256(text).hexdigest()


def parse_manifest(packed: bytes) -> VaultManifest:
    """Return what `manifest_bytes` made. Raises InputError for anything else."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            most = min(_MAX_MANIFEST_BYTES, max(1 << 20, _MAX_MANIFEST_EXPANSION * len(packed)))
            text = file.read(most + 1)
        value = json.loads(text[:most])
        _check_manifest_format(value["format"])
        number = int(value["number"])
        segments = tuple(segment_from_json(each) for each in value["segments"])
        pages = {
            str(each["id"]): {index: str(page) for index, page in enumerate(each["pages"]) if page is not None}
            for each in value["segments"]
        }
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, zlib.error, OSError, RecursionError):
        raise InputError("expected a manifest, found something else, or damage") from None
    return VaultManifest(number, segments, pages)


def _check_manifest_format(found: object) -> None:
    if found != MANIFEST_FORMAT:
        raise ValueError(found)
