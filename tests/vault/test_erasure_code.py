"""The erasure code: any needed blocks suffice, and the slow decoder agrees."""

import io
import json
import random
import tempfile
from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlost._core import decode_rows, encode_rows
from unlost.errors import InputError
from unlost.vault import MAX_BLOCKS, CodeShape, count_needed_blocks, erasure_code, slow_decoder, smallest_shape

VECTORS = Path(slow_decoder.__file__).with_name("vectors.json")


def encode_content(content: bytes, shape: CodeShape) -> list[bytes]:
    """Return the blocks of a content."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(content)
        source.flush()
        erasure_code.encode_blocks(source, shape, target)
        assert erasure_code.read_content(target, shape) == content
        return [erasure_code.read_block(target, shape, index) for index in range(shape.count)]


def decode_content(blocks: dict[int, bytes], shape: CodeShape) -> bytes:
    """Return what blocks code."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        places = {}
        for index, block in blocks.items():
            places[index] = source.tell()
            source.write(block)
        source.flush()
        erasure_code.decode_blocks(source, places, shape, target)
        target.seek(0)
        return target.read()


@settings(max_examples=60)
@given(st.binary(min_size=1, max_size=3000), st.integers(1, 40), st.integers(0, 60), st.randoms(use_true_random=False))
def test_any_needed_blocks_suffice_for_both_decoders(
    content: bytes, needed: int, spare: int, rng: random.Random
) -> None:
    """Whichever blocks are left, the fast and the slow decoder give the content back."""
    shape = smallest_shape(len(content), needed, needed + spare)
    blocks = encode_content(content, shape)
    chosen = {index: blocks[index] for index in rng.sample(range(shape.count), shape.needed)}
    assert decode_content(chosen, shape) == content
    assert slow_decoder.decode(chosen, shape.needed, shape.size) == content


def test_thousands_of_blocks_are_decoded(tmp_path: Path) -> None:
    """Of 30,000 blocks, the last ones suffice."""
    del tmp_path
    content = random.Random(4).randbytes(64 * 1500)  # noqa: S311  not for secrets
    shape = smallest_shape(len(content), 1500, MAX_BLOCKS)
    blocks = encode_content(content, shape)
    assert decode_content({index: blocks[index] for index in range(MAX_BLOCKS - 1500, MAX_BLOCKS)}, shape) == content


def test_stripe_size_does_not_change_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many narrow stripes give the same blocks as a single one."""
    content = random.Random(5).randbytes(9_999)  # noqa: S311
    shape = smallest_shape(len(content), 3, 8)
    whole = encode_content(content, shape)
    monkeypatch.setattr(erasure_code, "STRIPE_BYTES", 8 * 64)
    monkeypatch.setattr(erasure_code, "_DECODE_STRIPE_BYTES", 8 * 64)
    assert encode_content(content, shape) == whole
    assert decode_content({index: whole[index] for index in (1, 5, 7)}, shape) == content


def test_shipped_test_vectors_decode() -> None:
    """Both decoders read the shipped test vectors, and encoding reproduces them."""
    for vector in json.loads(VECTORS.read_text())["codes"]:
        content = b64decode(vector["content"])
        shape = CodeShape(len(content), vector["block"], vector["needed"], vector["count"])
        blocks = [b64decode(block) for block in vector["blocks"]]
        assert encode_content(content, shape) == blocks
        chosen = {index: blocks[index] for index in vector["decode_from"]}
        assert slow_decoder.decode(chosen, shape.needed, shape.size) == content
        assert decode_content(chosen, shape) == content


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1 << 10, [1, 1, 1]), (1 << 20, [21, 11, 7]), (100 << 20, [2048, 1024, 683]), (1 << 30, [20972, 10486, 6991])],
)
def test_needed_blocks_match_table_23_of_the_dissertation(size: int, expected: list[int]) -> None:
    """Blocks of 50, 100 and 150 KB for contents of 1 KB, 1 MB, 100 MB and 1 GB."""
    assert [count_needed_blocks(size, kib << 10) for kib in (50, 100, 150)] == expected


def test_invalid_rows_are_rejected() -> None:
    """Invalid parameters raise an error."""
    for rows, needed, count in ((b"", 1, 2), (bytes(64), 2, 3), (bytes(64), 1, 40_000), (bytes(63), 1, 2)):
        with pytest.raises(InputError):
            encode_rows(rows, needed, count)
    with pytest.raises(InputError):
        decode_rows(bytes(128), [0, 0], 2, 4)
    assert io.BytesIO(encode_rows(bytes(64), 1, 2)).read() == bytes(64)
