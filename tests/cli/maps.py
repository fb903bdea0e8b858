"""Maps of a small index, built by the command."""

from pathlib import Path

from tests.cli.run import unlost

PAGES = Path(__file__).parents[2] / "docs" / "examples" / "pages.cdxj"


def rows(path: Path) -> list[str]:
    """Return a map's lines without headers."""
    return [line for line in path.read_text().splitlines() if not line.startswith("!")]


def build(tmp_path: Path, *arguments: str, name: str = "a.ukvs") -> Path:
    """Build a map of the sample successfully."""
    output = tmp_path / name
    done = unlost("map", "build", str(PAGES), "-o", str(output), *arguments)
    assert done.returncode == 0, done.stderr
    return output
