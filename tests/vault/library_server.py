"""The library's WSGI application, with the vault's middleware if configured; gunicorn imports this module by name."""

import importlib.util
import os
from pathlib import Path
from typing import Any

from unlost.vault.middleware import page_blocks
from unlost.vault.middleware.wsgi import VaultMiddleware

page_blocks._RELOAD_CHECK_SECONDS = 0.0  # simulated weeks are shorter than the reload interval


def load(root: Path) -> Any:  # noqa: ANN401  a WSGI application
    """Return the application in a server's folder."""
    spec = importlib.util.spec_from_file_location("library_app", root / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.application


if "UNLOST_TEST_LIBRARY" in os.environ:
    application = load(Path(os.environ["UNLOST_TEST_LIBRARY"]))
    if "UNLOST_TEST_VAULT" in os.environ:
        application = VaultMiddleware(application, os.environ["UNLOST_TEST_VAULT"])
