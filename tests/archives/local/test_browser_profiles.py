"""Where browsers store their caches, on every platform."""

from pathlib import Path

import pytest

from unlost.archives import find_profiles, profiles_at
from unlost.registry import ArchiveKind

PLACES = {
    "linux": {
        "chromium": ".cache/chromium/Default",
        "chrome": ".cache/google-chrome/Profile 1",
        "brave": ".cache/BraveSoftware/Brave-Browser/Default",
        "edge": ".cache/microsoft-edge/Default",
        "firefox": ".cache/mozilla/firefox/x.default",
    },
    "darwin": {
        "chromium": "Library/Caches/Chromium/Default",
        "chrome": "Library/Caches/Google/Chrome/Default",
        "brave": "Library/Caches/BraveSoftware/Brave-Browser/Default",
        "edge": "Library/Caches/Microsoft Edge/Default",
        "firefox": "Library/Caches/Firefox/Profiles/x.default",
    },
    "win32": {
        "chromium": "AppData/Local/Chromium/User Data/Default",
        "chrome": "AppData/Local/Google/Chrome/User Data/Default",
        "brave": "AppData/Local/BraveSoftware/Brave-Browser/User Data/Default",
        "edge": "AppData/Local/Microsoft/Edge/User Data/Default",
        "firefox": "AppData/Local/Mozilla/Firefox/Profiles/x.default",
    },
}


def make(profile: Path, browser: str) -> Path:
    """Make the folders of a profile's cache."""
    (profile / ("cache2/entries" if browser == "firefox" else "Cache/Cache_Data")).mkdir(parents=True)
    return profile


@pytest.mark.parametrize("platform", PLACES)
def test_profiles_are_found(platform: str, tmp_path: Path) -> None:
    """Every browser's, with the name of the profile and the client that reads it; none where there is no browser."""
    assert find_profiles(platform, tmp_path, {}) == []
    for browser, place in PLACES[platform].items():
        make(tmp_path / place, browser)
    found = {each.browser: each for each in find_profiles(platform, tmp_path, {})}
    assert {browser: each.name for browser, each in found.items()} == {
        browser: Path(place).name for browser, place in PLACES[platform].items()
    }
    assert {each.kind for browser, each in found.items() if browser != "firefox"} == {ArchiveKind.CHROMIUM}
    assert found["firefox"].kind is ArchiveKind.FIREFOX
    assert found["chromium"].folder == tmp_path / PLACES[platform]["chromium"] / "Cache"


def test_environment_variables_name_other_folders(tmp_path: Path) -> None:
    """XDG_CACHE_HOME and LOCALAPPDATA are respected."""
    make(tmp_path / "xdg" / "chromium" / "Default", "chromium")
    make(tmp_path / "local" / "Chromium" / "User Data" / "Default", "chromium")
    (linux,) = find_profiles("linux", tmp_path / "home", {"XDG_CACHE_HOME": str(tmp_path / "xdg")})
    (windows,) = find_profiles("win32", tmp_path / "home", {"LOCALAPPDATA": str(tmp_path / "local")})
    assert (linux.folder.is_relative_to(tmp_path / "xdg"), windows.name) == (True, "Default")


def test_profile_in_two_locations_is_found_once(tmp_path: Path) -> None:
    """As where one folder links to the other."""
    make(tmp_path / ".cache" / "chromium" / "Default", "chromium")
    (tmp_path / ".cache" / "google-chrome").symlink_to(tmp_path / ".cache" / "chromium")
    assert len(find_profiles("linux", tmp_path, {})) == 1


@pytest.mark.parametrize(
    ("settings", "cache", "browser"),
    [
        (".config/google-chrome/Default", ".cache/google-chrome/Default", "chrome"),
        (".mozilla/firefox/x.default", ".cache/mozilla/firefox/x.default", "firefox"),
        ("Library/Application Support/Firefox/Profiles/x", "Library/Caches/Firefox/Profiles/x", "firefox"),
        ("AppData/Roaming/Mozilla/Firefox/Profiles/x", "AppData/Local/Mozilla/Firefox/Profiles/x", "firefox"),
    ],
)
def test_settings_folder_resolves_to_the_cache(settings: str, cache: str, browser: str, tmp_path: Path) -> None:
    """Browsers show that folder, and store the cache in another one."""
    (tmp_path / settings).mkdir(parents=True)
    make(tmp_path / cache, browser)
    (found,) = profiles_at(tmp_path / settings)
    assert (found.browser, found.folder.is_relative_to(tmp_path / cache)) == (browser, True)


def test_folder_without_profile_has_none(tmp_path: Path) -> None:
    """Neither does one that is not there."""
    (tmp_path / "a").mkdir()
    assert profiles_at(tmp_path / "a") == profiles_at(tmp_path / "nowhere") == []
