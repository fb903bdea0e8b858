"""Locations of browser caches on all platforms."""

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


def make_cache(profile: Path, browser: str) -> Path:
    """Create the folders of a profile's cache."""
    (profile / ("cache2/entries" if browser == "firefox" else "Cache/Cache_Data")).mkdir(parents=True)
    return profile


@pytest.mark.parametrize("platform", PLACES)
def test_profiles_are_found(platform: str, tmp_path: Path) -> None:
    """Each profile has its name and client; without a browser there is none."""
    assert find_profiles(platform, tmp_path, {}) == []
    for browser, position in PLACES[platform].items():
        make_cache(tmp_path / position, browser)
    results = {each.browser: each for each in find_profiles(platform, tmp_path, {})}
    assert {browser: each.name for browser, each in results.items()} == {
        browser: Path(position).name for browser, position in PLACES[platform].items()
    }
    assert {each.kind for browser, each in results.items() if browser != "firefox"} == {ArchiveKind.CHROMIUM}
    assert results["firefox"].kind is ArchiveKind.FIREFOX
    assert results["chromium"].folder == tmp_path / PLACES[platform]["chromium"] / "Cache"


def test_environment_variables_name_other_folders(tmp_path: Path) -> None:
    """XDG_CACHE_HOME and LOCALAPPDATA are respected."""
    make_cache(tmp_path / "xdg" / "chromium" / "Default", "chromium")
    make_cache(tmp_path / "local" / "Chromium" / "User Data" / "Default", "chromium")
    (linux,) = find_profiles("linux", tmp_path / "home", {"XDG_CACHE_HOME": str(tmp_path / "xdg")})
    (windows,) = find_profiles("win32", tmp_path / "home", {"LOCALAPPDATA": str(tmp_path / "local")})
    assert (linux.folder.is_relative_to(tmp_path / "xdg"), windows.name) == (True, "Default")


def test_profile_in_two_locations_is_found_once(tmp_path: Path) -> None:
    """One folder may be a link to the other."""
    make_cache(tmp_path / ".cache" / "chromium" / "Default", "chromium")
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
    """Browsers display the settings folder, but store the cache elsewhere."""
    (tmp_path / settings).mkdir(parents=True)
    make_cache(tmp_path / cache, browser)
    (results,) = profiles_at(tmp_path / settings)
    assert (results.browser, results.folder.is_relative_to(tmp_path / cache)) == (browser, True)


def test_folder_without_profile_has_none(tmp_path: Path) -> None:
    """A missing folder has no profile, either."""
    (tmp_path / "a").mkdir()
    assert profiles_at(tmp_path / "a") == profiles_at(tmp_path / "nowhere") == []
