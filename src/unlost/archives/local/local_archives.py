"""Registry entries for sources on this machine that the user names directly: archive files, HAR files, caches."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, count
from os import fsdecode
from pathlib import Path

from unlost.archives.archive import Archive, ArchiveKind
from unlost.archives.local.browser_profiles import BrowserProfile, find_profiles, profile_roots, profiles_at
from unlost.archives.local.file_walk import walk_files
from unlost.errors import ArchiveFileError, InputError
from unlost.formats import chromium_cache, firefox_cache, har
from unlost.formats.kept import CachedResponse
from unlost.formats.problems import Problems
from unlost.formats.unread import unreadable_error
from unlost.formats.warcindex import check_archive_readable, is_archive_file

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
