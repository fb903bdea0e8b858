"""The directory of replaced links that pages of a site share."""

from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.errors import UsageError
from unlost.export import relative_to_page
from unlost.html import LinkDirectory, LinkKind, rewrite_links

BASE = "http://h.example/d/"
paths = st.lists(st.sampled_from(["a", "b", "url", "=x", "a&b", "c,d"]), min_size=1, max_size=4).map("/".join)


@given(
    links=st.lists(st.tuples(st.sampled_from(["a href", "img src", "img srcset", "x style"]), paths), max_size=8),
    files=st.dictionaries(paths, st.none() | paths),
    page=paths,
)
def test_directory_yields_same_result_as_callback(
    links: list[tuple[str, str]], files: dict[str, str | None], page: str
) -> None:
    """Links in the directory are written as if returned by the callback, on all pages."""

    def tag(name: str, path: str) -> str:
        return f"<{name}='url(/{path})'>" if name == "x style" else f"<{name}='/{path}'>"

    body = "".join(tag(name, path) for name, path in links).encode()
    directory = LinkDirectory(1 << 20)
    callback_urls: list[str] = []

    def replace(uri: str, use: LinkKind) -> str | None:  # noqa: ARG001
        file = files.get(uri.removeprefix("http://h.example/"))
        return None if file is None else relative_to_page(file, page)

    def replace_and_add(uri: str, use: LinkKind) -> str | None:
        callback_urls.append(uri)
        directory.add(uri, use, files.get(uri.removeprefix("http://h.example/")), group=2)
        return replace(uri, use)

    expected = rewrite_links(body, "text/html", BASE, None, replace)
    first = rewrite_links(body, "text/html", BASE, None, replace_and_add, directory=directory, page=page)
    number = len(callback_urls)
    again = rewrite_links(body, "text/html", BASE, None, replace_and_add, directory=directory, page=page)
    assert first == expected
    assert len(callback_urls) == number
    assert again == expected._replace(groups=(0, 0, number) if number else ())


def test_directory_rejects_invalid_replacement() -> None:
    """Invalid replacements are rejected, also those that become too long relative to a page."""
    directory = LinkDirectory(1 << 20)
    for replacement in ("a b", "\u00e9", "a\n", "x" * 9_000):
        with pytest.raises(UsageError, match="a new URL must have"):
            directory.add("http://h.example/x", LinkKind.PAGE, replacement)
    directory.add("http://h.example/x", LinkKind.PAGE, "x" * 7_990)
    with pytest.raises(UsageError, match="a new URL must have"):
        rewrite_links(b"<a href=/x>", "text/html", BASE, None, lambda *_: None, directory=directory, page="a/" * 10)


def test_directory_memory_is_bounded() -> None:
    """Links beyond the limit are passed to the callback."""
    directory = LinkDirectory(1_000)
    for nth in range(100):
        directory.add(f"http://h.example/{nth}", LinkKind.PAGE, f"file-{nth}")
    body = b"".join(b"<a href=/%d>" % nth for nth in range(100))
    callback_urls: list[str] = []
    result = rewrite_links(body, "text/html", BASE, None, lambda uri, _: callback_urls.append(uri), directory=directory)
    assert 0 < result.groups[0] < 20
    assert result.groups[0] + len(callback_urls) == 100


def test_directory_is_thread_safe() -> None:
    """Threads rewrite and add concurrently without deadlock."""
    directory = LinkDirectory(1 << 24)
    body = b"<p>".join(b"<a href=/%d>" % nth for nth in range(5_000))

    def replace_and_add(uri: str, use: LinkKind) -> str:
        directory.add(uri, use, "x")
        return "x"

    results: list[bytes] = []

    def rewrite() -> None:
        results.append(rewrite_links(body, "text/html", BASE, None, replace_and_add, directory=directory).body)

    threads = [Thread(target=rewrite) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 4
    assert set(results) == {b"<p>".join([b"<a href=x>"] * 5_000)}
