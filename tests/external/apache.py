"""Apache httpd that hosts an exported site with its settings."""

import http.client
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.external.process import start_server

_MODULES = Path("/usr/lib/apache2/modules")
_BASE_MODULES = ("mpm_event", "authz_core", "mime", "dir")
_SERVER = """\
{modules}
ServerRoot "{work}"
ServerName 127.0.0.1
PidFile "{work}/apache.pid"
DefaultRuntimeDir "{work}"
{user}
Listen 127.0.0.1:{port}
ErrorLog "/dev/stderr"
LogLevel crit
TypesConfig /dev/null
AddType text/html .html
DocumentRoot "{folder}"
"""
_SITE = """\
Redirect 404 "/ready-{port}"
<Directory "{folder}">
    Require all granted
    {rules}
</Directory>
<Files ".ht*">
    Require all denied
</Files>
"""
OVERRIDES = "AllowOverride FileInfo Indexes"


def program() -> str:
    """Return the path of the program. Raises FileNotFoundError."""
    # On Debian it is only in the PATH of root.
    found = shutil.which("apache2") or shutil.which("apache2", path="/usr/sbin")
    if found is None:
        raise FileNotFoundError("apache2: run `scripts/need tools`, which installs it")
    return found


def is_ready(port: int) -> bool:
    """Return whether this server is ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", f"/ready-{port}")
        return connection.getresponse().getheader("Server", "").startswith("Apache")
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def host_site(folder: Path, work: Path) -> Iterator[int]:
    """Host a folder with `.htaccess` files on the port that is yielded."""
    with _readable_copy(folder) as readable:

        def command(port: int) -> list[str | Path]:
            return [program(), "-f", _config(readable, work, port, OVERRIDES), "-D", "FOREGROUND"]

        with start_server(command, is_ready, work) as port:
            yield port


@contextmanager
def _readable_copy(folder: Path) -> Iterator[Path]:
    """Make a folder readable: a server started by root changes to a user without access to the folders of tests."""
    if os.getuid() != 0:
        yield folder
        return
    with tempfile.TemporaryDirectory() as parent:
        capture = Path(shutil.copytree(folder, Path(parent) / "site"))
        for each in (Path(parent), capture, *capture.rglob("*")):
            each.chmod(0o755)
        yield capture


def config_errors(folder: Path, work: Path) -> str:
    """Return the errors in the `.htaccess` of a folder; empty if it is valid."""
    config = _config(folder, work, 1, f'AllowOverride None\n    Include "{folder}/.htaccess"')
    done = subprocess.run([program(), "-f", config, "-t"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr or "apache2 failed without a message"


def _config(folder: Path, work: Path, port: int, rules: str) -> Path:
    config = work / "apache.conf"
    site = _SITE.format(folder=folder, port=port, rules=rules)
    config.write_text(server_config(folder, work, port, ("rewrite", "alias")) + site)
    return config


def server_config(folder: Path, work: Path, port: int, extra_modules: tuple[str, ...]) -> str:
    """Return the configuration of a server of a folder with additional modules; more directives may follow."""
    modules = "\n".join(
        f"LoadModule {name}_module {_MODULES}/mod_{name}.so" for name in (*_BASE_MODULES, *extra_modules)
    )
    # It does not serve requests as root.
    user = "User nobody\nGroup nogroup" if os.getuid() == 0 else ""
    return _SERVER.format(modules=modules, work=work, folder=folder, port=port, user=user)
