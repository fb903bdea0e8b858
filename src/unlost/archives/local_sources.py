"""Local sources that the user names: archive files, HAR files, browser profiles.

Finds the cache directories of browser profiles, checks that a source can be read, and creates its registry entry
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

# Directories with one directory for each profile, below the user's cache directory (Linux, macOS) or %LOCALAPPDATA%.
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
# Cache directories of browsers installed as a Flatpak or a Snap, below the home directory.
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
# Browsers show the directory of a profile's settings (`chrome://version`, `about:profiles`), but the cache is
# elsewhere.
_SETTINGS_TO_CACHE = (
    ("/.config/", "/.cache/"),
    ("/config/", "/cache/"),
    ("/.mozilla/", "/.cache/mozilla/"),
    ("/Library/Application Support/", "/Library/Caches/"),
    ("/AppData/Roaming/", "/AppData/Local/"),
)
_CHROMIUM_FILE = re.compile(r"index|index-dir|data_[0-3]|sqldb[0-9]+|[0-9a-f]{16}_[01s]")
# Beginnings of the names of browsers' directories, in lower case.
_BROWSER_BY_FOLDER = {
    "chromium": "chromium", "google-chrome": "chrome", "chrome": "chrome", "brave": "brave", "microsoft-edge": "edge",
    "microsoft edge": "edge", "edge": "edge", "firefox": "firefox", "mozilla": "firefox",
}  # fmt: skip
ALL_PROFILES = "auto"
"""Selects all browser profiles in the standard locations."""
_MAX_NAME_CHARS = 100  # of a file name that become part of an ID

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


@dataclass(frozen=True, slots=True)
class BrowserProfile:
    """A browser profile with a cache.

    Attributes:
        browser: `chromium`, `chrome`, `brave`, `edge` or `firefox`; guessed from the path for other locations.
        name: Name of the profile's directory.
        kind: The client that reads the cache.
        folder: The cache, as that client expects it.
    """

    browser: str
    name: str
    kind: ArchiveKind
    folder: Path


def profile_roots(
    platform: str = sys.platform, home: Path | None = None, environ: Mapping[str, str] = os.environ
) -> Iterator[tuple[str, Path]]:
    """Yield the directories in which browsers store caches of profiles, with the browser. They may not exist."""
    home = Path.home() if home is None else home
    if platform == "win32":
        local = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        yield from _below([local], _WINDOWS)
    elif platform == "darwin":
        yield from _below([home / "Library" / "Caches"], _MACOS)
    else:
        cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
        yield from _below([cache, *(home / path for path in _FLATPAK_AND_SNAP)], _LINUX)


def _below(folders: list[Path], names: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, Path]]:
    for browser, paths in names.items():
        yield from ((browser, folder / path) for folder in folders for path in paths)


def find_profiles(
    platform: str = sys.platform, home: Path | None = None, environ: Mapping[str, str] = os.environ
) -> list[BrowserProfile]:
    """Return the profiles in the standard locations of this platform, without duplicates."""
    profiles: dict[Path, BrowserProfile] = {}
    for browser, root in profile_roots(platform, home, environ):
        for profile in _profiles_in(root, browser):
            profiles.setdefault(profile.folder.resolve(), profile)
    return list(profiles.values())


def profiles_at(place: Path) -> list[BrowserProfile]:
    """Return the profiles at a path; none if there is no cache.

    The path may be a cache directory, a profile, the directory of a profile's settings, or a directory of profiles.
    """
    for folder in (place, *_cache_folders(place)):
        browser = _browser_of(folder)
        profile = _detect_profile(folder, browser) or _detect_cache(folder, browser)
        if profile is not None:
            return [profile]
        profiles = list(_profiles_in(folder, browser))
        if profiles:
            return profiles
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
    """Return the profile in a directory; None if it has no cache."""
    name = folder.resolve().name
    if (folder / "cache2" / "entries").is_dir():
        return BrowserProfile("firefox", name, ArchiveKind.FIREFOX, folder)
    if browser != "firefox" and (folder / "Cache").is_dir():
        return BrowserProfile(browser, name, ArchiveKind.CHROMIUM, folder / "Cache")
    return None


def _detect_cache(folder: Path, browser: str) -> BrowserProfile | None:
    """Return the profile of a cache directory: `cache2`, its `entries`, `Cache` or `Cache_Data`."""
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
    """Yield possible cache directories of a profile, given the directory of its settings."""
    text = f"{place.absolute().as_posix()}/"
    for settings, cache in _SETTINGS_TO_CACHE:
        before, separator, after = text.rpartition(settings)
        if separator:
            yield Path(f"{before}{cache}{after}")


def _browser_of(folder: Path) -> str:
    """Return the browser that a path suggests, by the last directory named after one; `chromium` if none is."""
    for part in reversed(folder.absolute().parts):
        for name, browser in _BROWSER_BY_FOLDER.items():
            if part.lower().startswith(name):
                return browser
    return "chromium"


@dataclass(frozen=True, slots=True)
class _LocalSource:
    """An archive without an ID. For a browser, `profile` is the name of the profile."""

    prefix: str
    archive: Archive
    profile: str | None = None


def local_source_archives(
    warc: Iterable[Path] = (),
    har_files: Iterable[Path] = (),
    browser_cache: Iterable[Path | str] = (),
    on_message: Callable[[str], object] = lambda _: None,
) -> dict[str, Archive]:
    """Return an archive for each source, by ID: `warc:NAME`, `har:NAME`, `BROWSER:PROFILE`.

    Every source is opened, so that a missing or invalid file is reported before any work begins.

    Args:
        warc: WARC, ARC and WACZ files, and directories of them.
        har_files: HAR files, and directories of them.
        browser_cache: Cache directories or profiles; `ALL_PROFILES` for all profiles in the standard locations.
        on_message: Receives a line for each profile in a standard location.

    Raises:
        InputError: A source cannot be read, or there is no profile.
    """
    sources: list[_LocalSource] = []
    for path in warc:
        check_archive_files(path)
        sources.append(_LocalSource("warc", Archive("", "", ArchiveKind.FILES, folder=str(path))))
    for path in har_files:
        archive = Archive("", "", ArchiveKind.HAR, folder=str(path), deep=False)
        check_has_entries(archive)
        sources.append(_LocalSource("har", archive))
    profiles = _resolve_profiles(browser_cache, on_message)
    sources += [_LocalSource(profile.browser, _cache_archive(profile), profile.name) for profile in profiles]
    return _assign_ids(sources)


def _resolve_profiles(places: Iterable[Path | str], on_message: Callable[[str], object]) -> list[BrowserProfile]:
    profiles: list[BrowserProfile] = []
    for place in places:
        if place == ALL_PROFILES:
            profiles += _usable_profiles(on_message)
            continue
        matches = profiles_at(Path(place).expanduser())
        if not matches:
            raise InputError(f"{place}: expected a browser profile or its cache folder, found neither")
        for profile in matches:
            check_has_entries(_cache_archive(profile))
        profiles += matches
    return profiles


def _usable_profiles(on_message: Callable[[str], object]) -> list[BrowserProfile]:
    """Return the profiles in the standard locations whose caches can be read. Raises InputError if there are none."""
    usable: list[BrowserProfile] = []
    reasons: list[str] = []
    for profile in find_profiles():
        try:
            check_has_entries(_cache_archive(profile))
        except InputError as error:
            reasons.append(str(error))
            on_message(f"browser cache not used: {error}")
        else:
            usable.append(profile)
            on_message(f"browser cache: {profile.browser}, profile {profile.name}, in {profile.folder}")
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
    """Raise InputError unless a path is a WARC, ARC or WACZ file, or a directory with at least one."""
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


def check_has_entries(archive: Archive) -> None:
    """Raise InputError for a HAR file or browser cache in which no entry can be read."""
    find_folder, read_responses, description = _CACHE_READERS[archive.kind]
    place = Path(archive.folder or "")
    problems, excluded_counts = Problems(), Counter[str]()
    try:
        with closing(read_responses(find_folder(place), problems, excluded_counts)) as responses:
            if next(responses, None) is not None or excluded_counts:
                return
    except OSError as error:
        raise unreadable_error(place, error) from error
    except ArchiveFileError as error:
        raise InputError(f"{place}: {error}") from error
    if problems.total:
        first = next(iter(problems.first.values()))
        raise InputError(f"{place}: expected {description}, found none that can be read: {first.message[:200]}")
    raise InputError(f"{place}: expected {description}, found none")


def _assign_ids(sources: Iterable[_LocalSource]) -> dict[str, Archive]:
    """Return archives by ID, without duplicates. Files with the same name are distinguished by their directories."""
    by_path = {(source.archive.kind, Path(source.archive.folder or "").resolve()): source for source in sources}
    named = [(source.prefix, _source_names(source, path), source.archive) for (_, path), source in by_path.items()]
    counts = Counter((prefix, short) for prefix, (short, _), _ in named)
    archives: dict[str, Archive] = {}
    for prefix, (short, long), archive in named:
        name = f"{prefix}:{short if counts[prefix, short] == 1 else long}"
        ids = chain([name], (f"{name}~{number}" for number in count(2)))
        unique = next(each for each in ids if each not in archives)
        archives[unique] = replace(archive, id=unique, name=archive.name or unique)
    return archives


def _source_names(source: _LocalSource, path: Path) -> tuple[str, str]:
    """Return a short name for a source, and a long one in case another source has the same short name."""
    if source.profile is not None:
        return _printable(source.profile), _printable(source.profile)
    return _printable(path.name or "root"), _printable("/".join(path.parts[-2:]))


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "_" for each in text)[-_MAX_NAME_CHARS:]
