"""Firefox from Debian, which visits the lost site."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.external.lost_site import HOME, run_proxy

_TIMEOUT = 120

# All requests go to the proxy of the site, which refuses other URLs; background requests are disabled.
_PREFERENCES = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.no_proxies_on": "",
    "network.proxy.allow_hijacking_localhost": True,
    "network.proxy.failover_direct": False,
    "network.trr.mode": 5,
    "network.dns.disablePrefetch": True,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.cache.max_shutdown_io_lag": 60,  # seconds: with the default of 2, pending entries are lost
    "browser.region.network.url": "",
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.security.https_first": False,
    "extensions.systemAddon.update.enabled": False,
    "extensions.update.enabled": False,
    "services.settings.server": "http://127.0.0.1/",
    "toolkit.telemetry.enabled": False,
}


def visit(profile: Path) -> None:
    """Visit the lost site with a profile, so that its cache is written.

    It takes a screenshot, because then it ends once the page is loaded.
    """
    program = shutil.which("firefox-esr")
    if program is None:
        raise FileNotFoundError("firefox-esr: run `make test`, which installs it")
    profile.mkdir(parents=True, exist_ok=True)
    screenshot = profile / "screenshot.png"
    with run_proxy() as port:
        ports = {"network.proxy.http_port": port, "network.proxy.ssl_port": port}
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
            for name, value in {**_PREFERENCES, **ports}.items()
        ]
        (profile / "user.js").write_text("".join(lines))
        command: list[str | Path] = [
            program,
            "--headless",
            "--no-remote",
            "--profile",
            profile,
            "--screenshot",
            screenshot,
            HOME,
        ]
        environment = {"HOME": str(profile), "PATH": os.environ["PATH"], "MOZ_CRASHREPORTER_DISABLE": "1"}
        with (profile / "firefox.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment)
        try:
            process.wait(_TIMEOUT)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if not screenshot.exists():
        raise RuntimeError(
            f"Firefox took no screenshot:\n{(profile / 'firefox.log').read_text(errors='replace')[-2000:]}"
        )
