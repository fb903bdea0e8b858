"""Where the command begins and ends."""

import gc
import sys


def main() -> None:
    """Run one command and end the process with its exit code: the entry point of the console script."""
    # What is imported stays to the end. To look through it for garbage now and then, and once more at the end, was a
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
