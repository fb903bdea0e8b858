"""A job with real archives."""

import io
import zipfile
from pathlib import Path

from tests.external import pywb
from tests.jobs.service_process import ORDER, run_service
from tests.recovery.archives import write_warc
from tests.recovery.registry import registry
from tests.recovery.sample_site import FILES, NAMES, sample_site


def test_site_is_recovered_from_pywb(tmp_path: Path) -> None:
    """A site is ordered over HTTP; half of it comes from each pywb, byte by byte."""
    site = sample_site()
    warcs = []
    for name in NAMES:
        (tmp_path / name).mkdir()
        warcs.append(tmp_path / name / "held.warc.gz")
        write_warc(warcs[-1], (held for _, held in site.captures() if held.archive == name))
    with pywb.serve_warcs(warcs, tmp_path) as servers:
        entries = [server.archive(name) for server, name in zip(servers, NAMES, strict=True)]
        with run_service(tmp_path, registry(tmp_path / "archives.toml", *entries)) as service:
            key = service.request("POST", "/api/jobs", ORDER, is_admin=True).json["key"]
            done = service.wait_until_ended(key)
            packed = service.request("GET", f"/api/jobs/{key}/package/zip").body
    assert (done["state"], done["progress"]["recovered"], done["progress"]["missing"]) == ("complete", FILES, 1)
    assert {name: each["recovered"] for name, each in done["figures"]["archives"].items()} == {
        name: sum(held.archive == name for _, held in site.captures()) for name in NAMES
    }
    with zipfile.ZipFile(io.BytesIO(packed)) as files:
        pictures = {files.read(name) for name in files.namelist() if name.endswith(".gif")}
    assert pictures == {held.body for _, held in site.captures() if held.mime == "image/gif"}
