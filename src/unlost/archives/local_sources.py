"""Sources on this machine that the user names: archive files, HAR files, browser profiles.

Finds the cache folders of browser profiles, checks that a source can be read, and makes its registry entry
(`warc:NAME`, `har:NAME`, `BROWSER:PROFILE`).
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, count
from os import fsdecode
from pathlib import Path

from unlost.archives import chromium_cache, firefox_cache, har
from unlost.archives.browser_cache import CachedResponse
from unlost.archives.warc_file_index import walk_files
from unlost.errors import ArchiveFileError, InputError
from unlost.index.warc_index import check_archive_readable, is_archive_file
from unlost.problems import Problems, unreadable_error
from unlost.registry.models import Archive, ArchiveKind

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


ALL_PROFILES = "auto"
"""Names no profile of a browser, but all that can be found."""
_MAX_NAME = 100  # characters of a file name that become part of an id


@dataclass(frozen=True, slots=True)
class _LocalSource:
    """An archive that has no id yet. profile: of a browser, its name."""

    prefix: str
    archive: Archive
    profile: str | None = None


def local_source_archives(
    warc: Iterable[Path] = (),
    har_files: Iterable[Path] = (),
    browser_cache: Iterable[Path | str] = (),
    on_message: Callable[[str], object] = lambda _: None,
) -> dict[str, Archive]:
    """Return an archive for each source, by id: `warc:NAME`, `har:NAME`, `BROWSER:PROFILE`.

    Every source is opened, so that a file that is missing or is something else is an error before any work begins.

    warc: WARC, ARC and WACZ files, and folders of them. har_files: HAR files, and folders of them.
    browser_cache: cache folders or profiles; `AUTO` for all profiles in the standard locations.
    tell: receives one line for each profile that is found by itself.

    Raises InputError for a source that cannot be read, and if there is no profile.
    """
    found: list[_LocalSource] = []
    for path in warc:
        check_archive_files(path)
        found.append(_LocalSource("warc", Archive("", "", ArchiveKind.FILES, folder=str(path))))
    for path in har_files:
        archive = Archive("", "", ArchiveKind.HAR, folder=str(path), deep=False)
        check_has_entries(archive)
        found.append(_LocalSource("har", archive))
    profiles = _resolve_profiles(browser_cache, on_message)
    found += [_LocalSource(profile.browser, _cache_archive(profile), profile.name) for profile in profiles]
    return _assign_ids(found)


def _resolve_profiles(places: Iterable[Path | str], tell: Callable[[str], object]) -> list[BrowserProfile]:
    profiles: list[BrowserProfile] = []
    for place in places:
        if place == ALL_PROFILES:
            profiles += _usable_profiles(tell)
            continue
        named = profiles_at(Path(place).expanduser())
        if not named:
            raise InputError(f"{place}: expected a browser profile or its cache folder, found neither")
        for profile in named:
            check_has_entries(_cache_archive(profile))
        profiles += named
    return profiles


def _usable_profiles(tell: Callable[[str], object]) -> list[BrowserProfile]:
    """Return the profiles in the standard locations whose caches can be read. Raises InputError if there are none."""
    usable: list[BrowserProfile] = []
    reasons: list[str] = []
    for profile in find_profiles():
        try:
            check_has_entries(_cache_archive(profile))
        except InputError as error:
            reasons.append(str(error))
            tell(f"browser cache not used: {error}")
        else:
            usable.append(profile)
            tell(f"browser cache: {profile.browser}, profile {profile.name}, in {profile.folder}")
    if not usable:
        places = ", ".join(dict.fromkeys(str(root) for _, root in profile_roots() if root.parent.is_dir()))
        where = f" ({places})" if places else ""
        why = reasons[0] if reasons else f"no browser profile in the standard locations{where}"
        raise InputError(f"no browser cache can be read: {why}: name one by --browser-cache=PROFILE")
    return usable


def _cache_archive(profile: BrowserProfile) -> Archive:
    name = f"Cache of {profile.browser}, profile {profile.name}"
    return Archive("", name, profile.kind, folder=str(profile.folder), deep=False)


def check_archive_files(path: Path) -> None:
    """Raise InputError for what is no WARC, ARC or WACZ file, and for a folder that has none."""
    if not path.is_dir():
        check_archive_readable(path)
        if not is_archive_file(path):
            raise InputError(f"{path}: expected a WARC, ARC or WACZ file, found something else")
        return
    try:
        files = [path / fsdecode(each.path) for each in walk_files(path)]
    except OSError as error:
        raise unreadable_error(path, error) from error
    unreadable: InputError | None = None
    for file in files:
        try:
            if is_archive_file(file):
                return
        except InputError as error:
            unreadable = unreadable or error
    raise unreadable or InputError(f"{path}: expected WARC, ARC or WACZ files in the folder, found none")


_FindFolder = Callable[[Path], Path]
_ReadResponses = Callable[[Path, Problems, Counter[str]], Generator[CachedResponse, None, None]]
_CACHE_READERS: dict[ArchiveKind, tuple[_FindFolder, _ReadResponses, str]] = {
    ArchiveKind.HAR: (lambda place: place, har.read_har_responses, "responses in a HAR file"),
    ArchiveKind.CHROMIUM: (
        chromium_cache.chromium_data_folder,
        chromium_cache.read_chromium_responses,
        "entries of Chromium's cache",
    ),
    ArchiveKind.FIREFOX: (
        firefox_cache.firefox_data_folder,
        firefox_cache.read_firefox_responses,
        "entries of Firefox's cache",
    ),
}


def check_has_entries(archive: Archive) -> None:
    """Raise InputError for a HAR file or browser cache in which no entry can be read."""
    find, read, holds = _CACHE_READERS[archive.kind]
    place = Path(archive.folder or "")
    problems, left_out = Problems(), Counter[str]()
    try:
        with closing(read(find(place), problems, left_out)) as responses:
            if next(responses, None) is not None or left_out:
                return
    except OSError as error:
        raise unreadable_error(place, error) from error
    except ArchiveFileError as error:
        raise InputError(f"{place}: {error}") from error
    if problems.total:
        first = next(iter(problems.first.values()))
        raise InputError(f"{place}: expected {holds}, found none that can be read: {first.message[:200]}")
    raise InputError(f"{place}: expected {holds}, found none")


def _assign_ids(found: Iterable[_LocalSource]) -> dict[str, Archive]:
    """Return archives by id, each place once. Files of one name are told apart by the folders that they are in."""
    once = {(source.archive.kind, Path(source.archive.folder or "").resolve()): source for source in found}
    sources = [(source.prefix, _source_names(source, place), source.archive) for (_, place), source in once.items()]
    counts = Counter((prefix, short) for prefix, (short, _), _ in sources)
    archives: dict[str, Archive] = {}
    for prefix, (short, long), archive in sources:
        name = f"{prefix}:{short if counts[prefix, short] == 1 else long}"
        ids = chain([name], (f"{name}~{number}" for number in count(2)))
        unique = next(each for each in ids if each not in archives)
        archives[unique] = replace(archive, id=unique, name=archive.name or unique)
    return archives


def _source_names(source: _LocalSource, place: Path) -> tuple[str, str]:
    """Return what to call a source, and what to call it where another one has that name."""
    if source.profile is not None:
        return _printable(source.profile), _printable(source.profile)
    return _printable(place.name or "root"), _printable("/".join(place.parts[-2:]))


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "_" for each in text)[-_MAX_NAME:]
