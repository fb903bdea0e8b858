"""Run by the Python of `.neighbours/surt`: URLs in, one a line; SURTs out, one a line; seconds spent on stderr.

Only the loop over `surt` is timed, as only the loop over unlost's batch is.
"""

import sys
import time

from surt import surt  # type: ignore[import-not-found]  # it is in the other environment


def main() -> None:
    """Read all, convert, write all."""
    urls = sys.stdin.buffer.read().decode().split("\n")
    results = []
    start = time.perf_counter()
    for url in urls:
        try:
            results.append(surt(url))
        except Exception as error:  # noqa: BLE001  a process about somebody else's code: any failure is an answer
            results.append(f"! {type(error).__name__}")
    seconds = time.perf_counter() - start
    sys.stdout.buffer.write("\n".join(line.replace("\n", " ") for line in results).encode())
    print(seconds, file=sys.stderr)


if __name__ == "__main__":
    main()
