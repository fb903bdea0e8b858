"""Middleware while its vault changes or is damaged: the site stays available."""

import shutil
from collections.abc import Callable
from pathlib import Path
from wsgiref.util import setup_testing_defaults

import pytest

from tests.vault.fixtures import pack_site, server_files, static_site
from unlost.vault import BLOCKS_FOLDER, STATE_NAME, Vault, finish_update
from unlost.vault.middleware import page_blocks
from unlost.vault.middleware.wsgi import VaultMiddleware

PAGE = b"<html><body>hello</body></html>"


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """Return a vault that is updated; the middleware checks it before every response."""
    monkeypatch.setattr(page_blocks, "_RELOAD_CHECK_SECONDS", -1.0)
    server, site = server_files(tmp_path), static_site(tmp_path, 12)
    pack_site(tmp_path / "v", server, site)
    (server / "app.py").write_text("print('other')\n")
    return pack_site(tmp_path / "v", server, site).vault


def asker(vault: Vault) -> Callable[[str], bytes]:
    """Return a function that requests a path from an application with this vault."""

    def app(_: object, start_response: Callable[..., object]) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(PAGE)))])
        return [PAGE]

    middleware = VaultMiddleware(app, vault.folder)

    def ask(path: str) -> bytes:
        environ: dict[str, object] = {"PATH_INFO": path}
        setup_testing_defaults(environ)
        sent_headers: list[tuple[str, str]] = []

        def start_response(_: str, headers: list[tuple[str, str]], __: object = None) -> Callable[[bytes], object]:
            sent_headers[:] = headers
            return lambda data: data

        body = b"".join(middleware(environ, start_response))
        assert int(dict(sent_headers).get("content-length") or dict(sent_headers)["Content-Length"]) == len(body)
        return body

    return ask


def test_vault_update_appears_after_the_reload_check(vault: Vault) -> None:
    """During a staged update pages carry both versions, after `advance` the new one."""
    ask = asker(vault)
    assert ask("/sub/p8.html").count(b"BEGIN_FILE_RECOVERY") == 2
    finish_update(vault, "20260301000000")
    assert ask("/sub/p8.html").count(b"BEGIN_FILE_RECOVERY") == 1


def test_blocks_deleted_since_the_last_check_are_reloaded(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """If old blocks are deleted between two checks, pages get the current ones."""
    monkeypatch.setattr(page_blocks, "_RELOAD_CHECK_SECONDS", 1e9)
    ask = asker(vault)
    finish_update(vault, "20260301000000")
    assert ask("/sub/p9.html").count(b"BEGIN_FILE_RECOVERY") == 1


@pytest.mark.parametrize("harm", ["no blocks", "no state", "no sense", "nothing"])
def test_damaged_vault_leaves_pages_unchanged(vault: Vault, harm: str, caplog: pytest.LogCaptureFixture) -> None:
    """Pages are served although files of the vault are missing or damaged; the log gives the reason."""
    ask = asker(vault)
    if harm == "no blocks":
        shutil.rmtree(vault.folder / BLOCKS_FOLDER)
    elif harm == "no state":
        (vault.folder / STATE_NAME).unlink()
    elif harm == "no sense":
        (vault.folder / STATE_NAME).write_bytes(b"{}")
    else:
        shutil.rmtree(vault.folder)
    for path in ("/sub/p3.html", "/unknown"):
        assert ask(path).startswith(PAGE)
    assert str(vault.folder) in caplog.text
