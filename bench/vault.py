"""Speed and memory of erasure coding, and the cost of carrying a block in a page."""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import Report, best_of
from unlost.vault import (
    Carrier,
    CarrierPage,
    CodeShape,
    EncryptionOptions,
    PackOptions,
    ServerFile,
    Vault,
    VaultSettings,
    pack_vault,
)
from unlost.vault.middleware import AsgiMessage, VaultMiddleware

ROOT = Path(__file__).parents[1]
NEEDED, COUNT, SIZE = 2048, 8192, 100 << 20
SHAPE = CodeShape(SIZE, SIZE // NEEDED, NEEDED, COUNT)
PAGE_BYTES = 100_000
CALLS = 2_000

CODING = """
import re, sys, time
from contextlib import ExitStack
from unlost.vault import erasure_code
from unlost.vault.erasure_code import CodeShape
shape = CodeShape(*map(int, sys.argv[3:]))
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
open("/proc/self/clear_refs", "w").write("5")  # reset the peak, which the parent process may have set
before = peak()
with ExitStack() as opened:
    content = opened.enter_context(open(sys.argv[1], "rb"))
    blocks, back, found = (opened.enter_context(open(sys.argv[2] + end, "w+b")) for end in ("", ".back", ".found"))
    start = time.perf_counter()
    erasure_code.encode_blocks(content, shape, blocks)
    coded = time.perf_counter() - start
    places = {}
    for number, index in enumerate(range(shape.count - shape.needed, shape.count)):
        places[index] = number * shape.block
        found.write(erasure_code.read_block(blocks, shape, index))
    start = time.perf_counter()
    erasure_code.decode_blocks(found, places, shape, back)
    decoded = time.perf_counter() - start
print(coded, decoded, (peak() - before) * 1024)
"""


def bare() -> tuple[float, float]:
    """Return the encoding and decoding seconds of the crate alone."""
    command = [
        "cargo",
        "run",
        "--quiet",
        "--release",
        "--package",
        "unlost-core",
        "--example",
        "bare_reed_solomon",
        "--",
    ]
    numbers = [str(NEEDED), str(COUNT), str(SHAPE.block)]
    done = subprocess.run([*command, *numbers], cwd=ROOT, check=True, capture_output=True, text=True)
    coded, decoded = map(float, done.stdout.split())
    return coded, decoded


def coding(report: Report) -> None:
    """Report encoding and decoding from file to file."""
    with tempfile.TemporaryDirectory() as folder:
        content, blocks = Path(folder, "content"), Path(folder, "blocks")
        content.write_bytes(os.urandom(SIZE))
        words = [str(number) for number in (SIZE, SHAPE.block, NEEDED, COUNT)]
        runs = []
        for _ in range(3):
            done = subprocess.run(
                [sys.executable, "-c", CODING, content, blocks, *words], check=True, capture_output=True, text=True
            )
            runs.append([float(word) for word in done.stdout.split()])
            if content.read_bytes() != Path(f"{blocks}.back").read_bytes():
                raise RuntimeError("what was decoded is not what was coded")
    coded, decoded = min(run[0] for run in runs), min(run[1] for run in runs)
    memory = max(run[2] for run in runs)
    bare_coded, bare_decoded = bare()
    report.line(
        f"100 MB into {COUNT:,} blocks of which {NEEDED:,} suffice, from file to file, which a second thread reads and "
        "writes; the crate alone, in memory."
    )
    report.line(f"Coding: {SIZE / coded / 1e6:.0f} MB/s of input ({coded:.2f} s; bare {bare_coded:.2f} s).")
    report.line(
        f"Decoding from spares alone: {SIZE / decoded / 1e6:.0f} MB/s ({decoded:.2f} s; bare {bare_decoded:.2f} s)."
    )
    report.line(f"Memory: {memory / 1e6:.0f} MB.")
    report.line("")
    report.gate("time of coding by that of the bare crate", coded / bare_coded, at_most=1.3)
    report.gate("time of decoding by that of the bare crate", decoded / bare_decoded, at_most=1.3)
    report.gate("memory by the bytes that are coded", memory / SIZE, at_most=3)
    report.line("")


def carrying(report: Report) -> None:
    """Report the overhead of the middleware for a response, relative to copying the body once."""
    page = b"<p>" + b"x" * (PAGE_BYTES - 3)
    headers = [(b"content-type", b"text/html"), (b"content-length", b"%d" % len(page)), (b"etag", b'"a"')]

    async def app(scope: object, receive: object, send: object) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": page})  # type: ignore[operator]

    async def send_(message: AsgiMessage) -> None:
        del message

    async def receive_() -> AsgiMessage:
        return {}

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "data")
        file.write_bytes(os.urandom(20_000))
        options = PackOptions(
            [ServerFile("data", file, "file", 0o644, 0, 20_000)],
            [CarrierPage("/", PAGE_BYTES, 0), CarrierPage("/b", PAGE_BYTES, 1)],
            VaultSettings(Carrier.COMMENT, 1 << 20),
            EncryptionOptions(),
            0.5,
        )
        pack_vault(Vault(Path(folder, "v")), options, "20260101000000")
        with_vault = VaultMiddleware(app, Path(folder, "v"))
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"host", b"a")] * 8}

        async def calls(target: object) -> None:
            for _ in range(CALLS):
                await target(scope, receive_, send_)  # type: ignore[operator]

        plain = best_of(5, lambda: asyncio.run(calls(app))) / CALLS
        carried = best_of(5, lambda: asyncio.run(calls(with_vault))) / CALLS
    pieces = [bytes([number]) + page for number in range(64)]

    def copy() -> None:
        for number in range(CALLS):
            bytearray(pieces[number % 64])

    copied = best_of(5, copy) / CALLS
    report.line(
        f"A page of {PAGE_BYTES / 1e3:.0f} kB: {(carried - plain) * 1e6:.1f} µs more with the middleware; "
        f"copying its bytes once: {copied * 1e6:.1f} µs."
    )
    report.gate("what carrying adds, by copying the page once", (carried - plain) / copied, at_most=3)


def main() -> None:
    """Measure and write the report."""
    report = Report("vault", "Vault")
    coding(report)
    carrying(report)
    report.finish()


if __name__ == "__main__":
    main()
