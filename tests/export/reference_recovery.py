"""The reference site with valid images, recovered from WARC files."""

import base64
from dataclasses import replace
from pathlib import Path

from tests.recovery.archives import write_warc
from tests.recovery.command import Command
from tests.recovery.random_pages import ARCHIVES, RANDOM_FOLDERS
from tests.recovery.reference_site import reference_site
from tests.recovery.registry import registry
from tests.recovery.site import ROOT, Held, Site
from unlost.registry import Archive, ArchiveKind

GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")

EXCLUDED = [f"{ROOT}street/{number}/" for number in range(1, RANDOM_FOLDERS)]
"""Streets that are not recovered, since all are similar."""


def with_valid_image(held: Held) -> Held:
    """Return a capture with a valid image; its original body is appended."""
    is_picture = held.mime.startswith("image/") and held.mime != "image/svg+xml"
    return replace(held, body=GIF + held.body) if is_picture and held.status == 200 else held


def recover_reference_site(folder: Path) -> Command:
    """Recover the site without most of its streets."""
    site: Site = reference_site()
    archives = []
    for name in ARCHIVES:
        captures = [with_valid_image(held) for _, held in site.captures() if held.archive == name and not held.damaged]
        write_warc(folder / f"{name}.warc.gz", captures)
        archives.append(Archive(name, name, ArchiveKind.FILES, folder=str(folder / f"{name}.warc.gz")))
    command = Command(registry(folder / "archives.toml", *archives), folder / "reference.recovery", folder / "home")
    done = command.run(ROOT, "--exclude", "/street/[1-9]", "--page-requisites")
    assert done.code == 0, done.stderr
    return command
