"""Duration of `unlost --help`, relative to `python -c "import click"` in the same run."""

import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.measure import Report, best_of

RUNS = 30


def main() -> None:
    """Measure and write the report."""
    report = Report("startup", "Start-up of the command line")
    unlost = Path(sys.executable).with_name("unlost")
    commands: dict[str, list[str | Path]] = {
        'python -c "import click"': [sys.executable, "-c", "import click"],
        "unlost --help": [unlost, "--help"],
        "unlost uri surt http://example.com/": [unlost, "uri", "surt", "http://example.com/"],
    }
    seconds: dict[str, float] = {name: float("inf") for name in commands}
    # Interleaved, so that other load on the machine affects all of them alike.
    for _ in range(RUNS):
        for name, command in commands.items():
            run = partial(subprocess.run, command, check=True, capture_output=True)
            seconds[name] = min(seconds[name], best_of(1, run))
    report.line(f"Best of {RUNS}, in turn, each a process of its own.")
    report.line("")
    report.line("| command | ms |")
    report.line("|---|---|")
    for name, value in seconds.items():
        report.line(f"| `{name}` | {value * 1000:.0f} |")
    report.line("")
    baseline = seconds['python -c "import click"']
    report.gate("`unlost --help` to `import click`", seconds["unlost --help"] / baseline, at_most=1.5)
    report.finish()


if __name__ == "__main__":
    main()
