"""Each command suggests the next one on stderr, except with JSON output."""

from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.export.sample_recoveries import SampleCapture, make_recovery
from tests.recovery.sample_site import sample_site, serve_site
from tests.recovery.site import ROOT
from tests.vault.fixtures import server_files, static_site


def next_steps(*arguments: str, code: int = 0, **env: str) -> list[str]:
    """Run a command and return the suggested next steps."""
    done = unlost(*arguments, env=env)
    assert done.returncode == code, done.stderr
    return [line for line in done.stderr.decode().splitlines() if line.startswith("unlost: next: ")]


def test_recover_report_and_export_suggest_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`recover` suggests `report` and `export`, `report` suggests `export`, `export` says how to open its output."""
    monkeypatch.chdir(tmp_path)
    with serve_site(sample_site()) as found:
        registry = str(found.registry(tmp_path))
        words = ("recover", ROOT, "--archives", registry, "-o", "my site")
        (step,) = next_steps(*words, "--dry-run")
        assert step == "unlost: next: the same command without --dry-run recovers the site"
        report, export = next_steps(*words)
        assert "`unlost report 'my site'`" in report
        assert "`unlost export 'my site' -o SITE`" in export
        assert next_steps(*words, "--json") == []
    (step,) = next_steps("report", "my site")
    assert step == "unlost: next: `unlost export 'my site' -o SITE` writes the recovered site"
    for options in (["--json"], ["--tsv"], ["--list", "recovered"]):
        assert next_steps("report", "my site", *options) == []
    (step,) = next_steps("export", "my site", "-o", "site")
    assert step == "unlost: next: open site/index.html in a browser"
    (step,) = next_steps("export", "my site", "-o", "site.zip")
    assert step == "unlost: next: unpack it, and open index.html in a browser"
    (step,) = next_steps("export", "my site", "-o", "hosted", "--as", "hosting")
    assert step == "unlost: next: copy hosted to the server, with the rules that docs/export.md explains"
    (step,) = next_steps("export", "my site", "-o", "site.wacz")
    assert "https://replayweb.page/" in step
    assert next_steps("export", "my site", "-o", "other", "--json") == []


def test_compare_suggests_listing_missing_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only if some are missing, and some were recovered."""
    monkeypatch.chdir(tmp_path)
    captures = [SampleCapture(f"{ROOT}{name}", f"<title>{name}".encode()) for name in ("", "a")]
    make_recovery(tmp_path / "both", captures)
    make_recovery(tmp_path / "one", captures[:1])
    (step,) = next_steps("compare", "both", "one")
    assert step == "unlost: next: `unlost compare both one --list missing` names what is missing"
    assert next_steps("compare", "one", "both") == []
    assert next_steps("compare", "both", "one", "--json") == []


def test_vault_commands_suggest_the_next_step(tmp_path: Path) -> None:
    """`plan` suggests `pack`, `pack` suggests `inject`, `inject` suggests `verify`."""
    server, site, vault = str(server_files(tmp_path)), str(static_site(tmp_path)), str(tmp_path / "v")
    (step,) = next_steps("vault", "plan", server, "--pages", site)
    assert "`unlost vault pack`" in step
    (step,) = next_steps("vault", "pack", server, "--pages", site, "--vault", vault)
    assert f"`unlost vault inject SITE --vault {vault}`" in step
    (step,) = next_steps("vault", "inject", site, "--vault", vault)
    assert f"`unlost vault verify {site} --vault {vault}`" in step
