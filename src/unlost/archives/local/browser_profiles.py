"""Finds the cache folders of browser profiles on this machine."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from unlost.archives.archive import ArchiveKind

# Folders that contain one folder per profile, below the cache folder of the user (Linux, macOS) or %LOCALAPPDATA%.
_LINUX = {
    "chromium": ("chromium",),
    "chrome": ("google-chrome", "google-chrome-beta", "google-chrome-unstable"),
    "brave": ("BraveSoftware/Brave-Browser",),
    "edge": ("microsoft-edge", "microsoft-edge-beta", "microsoft-edge-dev"),
    "firefox": ("mozilla/firefox",),
}
_MACOS = {
    "chromium": ("Chromium",),
    "chrome": ("Google/Chrome",),
    "brave": ("BraveSoftware/Brave-Browser",),
    "edge": ("Microsoft Edge",),
    "firefox": ("Firefox/Profiles",),
}
_WINDOWS = {
    "chromium": ("Chromium/User Data",),
    "chrome": ("Google/Chrome/User Data",),
    "brave": ("BraveSoftware/Brave-Browser/User Data",),
    "edge": ("Microsoft/Edge/User Data",),
    "firefox": ("Mozilla/Firefox/Profiles",),
}
# Below the home folder: cache folders of browsers that are installed as a Flatpak or a Snap.
_FLATPAK_AND_SNAP = (
    ".var/app/org.chromium.Chromium/cache",
    ".var/app/com.google.Chrome/cache",
    ".var/app/com.brave.Browser/cache",
    ".var/app/com.microsoft.Edge/cache",
    ".var/app/org.mozilla.firefox/cache",
    "snap/chromium/common",
    "snap/chromium/common/.cache",
    "snap/brave/common/.cache",
    "snap/firefox/common/.cache",
)
# Browsers show the folder of a profile's settings (`chrome://version`, `about:profiles`); the cache is elsewhere.
_SETTINGS_TO_CACHE = (
    ("/.config/", "/.cache/"),
    ("/config/", "/cache/"),
    ("/.mozilla/", "/.cache/mozilla/"),
    ("/Library/Application Support/", "/Library/Caches/"),
    ("/AppData/Roaming/", "/AppData/Local/"),
)
_CHROMIUM_FILE = re.compile(r"index|index-dir|data_[0-3]|sqldb[0-9]+|[0-9a-f]{16}_[01s]")
# How the folders of browsers begin, in lower case.
_BROWSER_BY_FOLDER = {
    "chromium": "chromium", "google-chrome": "chrome", "chrome": "chrome", "brave": "brave", "microsoft-edge": "edge",
    "microsoft edge": "edge", "edge": "edge", "firefox": "firefox", "mozilla": "firefox",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BrowserProfile:
    """A profile with a cache.

    browser: `chromium`, `chrome`, `brave`, `edge` or `firefox`; of a profile somewhere else, what its path suggests.
    name: of the profile's folder.
    kind: the client that reads the cache. folder: of the cache, as that client takes it.
    """

    browser: str
    name: str
    kind: ArchiveKind
    folder: Path


def profile_roots(
    platform: str = sys.platform, home: Path | None = None, environ: Mapping[str, str] = os.environ
) -> Iterator[tuple[str, Path]]:
    """Yield the folders in which browsers store the caches of their profiles, with the browser, existing or not."""
    home = Path.home() if home is None else home
    if platform == "win32":
        local = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        yield from _below([local], _WINDOWS)
    elif platform == "darwin":
        yield from _below([home / "Library" / "Caches"], _MACOS)
    else:
        cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
        yield from _below([cache, *(home / place for place in _FLATPAK_AND_SNAP)], _LINUX)


def _below(folders: list[Path], names: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, Path]]:
    for browser, places in names.items():
        yield from ((browser, folder / place) for folder in folders for place in places)


def find_profiles(
    platform: str = sys.platform, home: Path | None = None, environ: Mapping[str, str] = os.environ
) -> list[BrowserProfile]:
    """Return the profiles in the standard locations of this platform, each once, by browser and name."""
    found: dict[Path, BrowserProfile] = {}
    for browser, root in profile_roots(platform, home, environ):
        for profile in _profiles_in(root, browser):
            found.setdefault(profile.folder.resolve(), profile)
    return list(found.values())


def profiles_at(place: Path) -> list[BrowserProfile]:
    """Return the profiles at a place that the user named; none if there is no cache.

    place: a cache folder, a profile, the folder of a profile's settings, or a folder of profiles.
    """
    for folder in (place, *_cache_folders(place)):
        browser = _browser_of(folder)
        profile = _detect_profile(folder, browser) or _detect_cache(folder, browser)
        if profile is not None:
            return [profile]
        found = list(_profiles_in(folder, browser))
        if found:
            return found
    return []


def _profiles_in(root: Path, browser: str) -> Iterator[BrowserProfile]:
    try:
        folders = sorted(each for each in root.iterdir() if each.is_dir())
    except OSError:
        return
    for folder in folders:
        profile = _detect_profile(folder, browser)
        if profile is not None:
            yield profile


def _detect_profile(folder: Path, browser: str) -> BrowserProfile | None:
    """Return what is in the folder of a profile; None if it has no cache."""
    name = folder.resolve().name
    if (folder / "cache2" / "entries").is_dir():
        return BrowserProfile("firefox", name, ArchiveKind.FIREFOX, folder)
    if browser != "firefox" and (folder / "Cache").is_dir():
        return BrowserProfile(browser, name, ArchiveKind.CHROMIUM, folder / "Cache")
    return None


def _detect_cache(folder: Path, browser: str) -> BrowserProfile | None:
    """Return what is in the folder of a cache itself: `cache2`, its `entries`, `Cache` or `Cache_Data`."""
    name = folder.resolve().parent.name
    if (folder / "entries").is_dir() or folder.name == "entries":
        return BrowserProfile("firefox", name, ArchiveKind.FIREFOX, folder)
    try:
        is_chromium = (folder / "Cache_Data").is_dir() or any(
            _CHROMIUM_FILE.fullmatch(each.name) for each in folder.iterdir()
        )
    except OSError:
        return None
    return BrowserProfile(browser, name, ArchiveKind.CHROMIUM, folder) if is_chromium else None


def _cache_folders(place: Path) -> Iterator[Path]:
    """Yield where the cache of a profile may be, given the folder of its settings."""
    text = f"{place.absolute().as_posix()}/"
    for settings, cache in _SETTINGS_TO_CACHE:
        before, found, after = text.rpartition(settings)
        if found:
            yield Path(f"{before}{cache}{after}")


def _browser_of(folder: Path) -> str:
    """Return which browser a path suggests, by the last folder that is one's; `chromium` if none is."""
    for part in reversed(folder.absolute().parts):
        for name, browser in _BROWSER_BY_FOLDER.items():
            if part.lower().startswith(name):
                return browser
    return "chromium"
