"""Server files, static sites and packed vaults for tests."""

import random
from pathlib import Path
from typing import Any

from unlost.vault import (
    STATE_NAME,
    EncryptionOptions,
    PackOptions,
    PackResult,
    Vault,
    VaultSettings,
    open_vault,
    pack_vault,
    read_site_folder,
    select_files,
)

LIMIT = 214 << 10


def server_files(folder: Path, seed: int = 1) -> Path:
    """Create a small server: scripts, settings, random data, a link, an empty folder, unusual modes and times."""
    rng = random.Random(seed)  # noqa: S311  not for secrets
    root = folder / "srv"
    (root / "lib" / "deep").mkdir(parents=True)
    (root / "empty").mkdir(mode=0o750)
    (root / "app.py").write_text("print('hello')\n" * 50)
    (root / "lib" / "data.bin").write_bytes(rng.randbytes(40_000))
    (root / "lib" / "deep" / "run.sh").write_text("#!/bin/sh\necho run\n")
    (root / "lib" / "deep" / "run.sh").chmod(0o755)
    (root / "settings.ini").write_text("[site]\nname = käfer\n")
    (root / "settings.ini").chmod(0o640)
    (root / "logo.png").write_bytes(b"\x89PNG" + rng.randbytes(500))
    (root / "current").symlink_to("lib/deep")
    return root


def static_site(folder: Path, pages: int = 40) -> Path:
    """Create a site with `pages` pages and a root, which links to five of them."""
    root = folder / "www"
    (root / "sub").mkdir(parents=True)
    links = "".join(f'<a href="sub/p{number}.html">{number}</a> ' for number in range(5))
    (root / "index.html").write_text(f"<!DOCTYPE html><title>Root</title><body>{links}</body></html>")
    for number in range(pages):
        (root / "sub" / f"p{number}.html").write_text(f"<!DOCTYPE html><body><p>Page {number}</p></body></html>\n")
    (root / "style.css").write_text("p { color: black }")
    return root


def pack_site(
    folder: Path,
    server: Path,
    site: Path,
    *,
    seal: EncryptionOptions | None = None,
    at: str = "20260101000000",
    options: dict[str, Any] | None = None,
    **settings: Any,  # noqa: ANN401  whatever `Settings` has
) -> PackResult:
    """Pack server files for a site into a new or existing vault.

    Args:
        options: Further fields of `PackOptions`.
        settings: Fields of `VaultSettings`.
    """
    chosen = VaultSettings(**{"limit": LIMIT, **settings})
    before = open_vault(folder) if (folder / STATE_NAME).exists() else Vault(folder)
    given = {"loss_tolerance": None, "pages": read_site_folder(site), **(options or {})}
    return pack_vault(
        before,
        PackOptions(select_files([server]).files, settings=chosen, encryption=seal or EncryptionOptions(), **given),
        at,
    )


def snapshot_folder(root: Path) -> dict[str, tuple[int, int, bytes | str]]:
    """Return mode, time and content of everything below a folder, for comparison."""
    found: dict[str, tuple[int, int, bytes | str]] = {}
    for path in sorted(root.rglob("*")):
        stat = path.lstat()
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        found[str(path.relative_to(root))] = (stat.st_mode, stat.st_mtime_ns, content)
    return found
