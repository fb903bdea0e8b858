"""Run by the Python of `.neighbours/surt`: reads URLs, writes SURTs line by line, and the seconds to stderr.

Only the loop over `surt` is timed, as for unlost's batch.
"""

import sys
import time

from surt import surt  # type: ignore[import-not-found]  # it is in the other environment


def main() -> None:
    """Read, convert and write all URLs."""
    urls = sys.stdin.buffer.read().decode().split("\n")
    results = []
    start = time.perf_counter()
    for url in urls:
        try:
            results.append(surt(url))
        except Exception as error:  # noqa: BLE001  any exception of the library is a result
            results.append(f"! {type(error).__name__}")
    seconds = time.perf_counter() - start
    sys.stdout.buffer.write("\n".join(line.replace("\n", " ") for line in results).encode())
    print(seconds, file=sys.stderr)


if __name__ == "__main__":
    main()
