"""A self-signed certificate for a server on this machine, which a client can trust."""

import ipaddress
import subprocess
from pathlib import Path


def make_certificate(folder: Path, host: str = "127.0.0.1") -> tuple[Path, Path]:
    """Make a certificate for an IP address or host name; return it and its key."""
    cert, key = folder / f"{host}.pem", folder / f"{host}.key"
    try:
        name = f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        name = f"DNS:{host}"
    command: list[str | Path] = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-nodes", "-days", "2", "-subj", f"/CN={host}", "-addext", f"subjectAltName={name}"]
    subprocess.run([*command, "-out", cert, "-keyout", key], check=True, capture_output=True)
    return cert, key
