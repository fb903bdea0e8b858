"""Entry point of the console script."""

import gc
import sys


def main() -> None:
    """Run one command and end the process with its exit code."""
    # Imported modules live until the process ends. Scanning them in garbage collections, and once more at exit, took a
    # tenth of the time of a short command.
    gc.disable()
    from unlost.cli.main import run  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
