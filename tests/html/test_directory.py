"""What links become on all pages of a site."""

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
def test_known_or_asked_is_the_same(links: list[tuple[str, str]], files: dict[str, str | None], page: str) -> None:
    """What a directory knows is written as if it had been asked for, on this page and on the next."""

    def tag(name: str, path: str) -> str:
        return f"<{name}='url(/{path})'>" if name == "x style" else f"<{name}='/{path}'>"

    body = "".join(tag(name, path) for name, path in links).encode()
    known = LinkDirectory(1 << 20)
    asked: list[str] = []

    def replaced(uri: str, use: LinkKind) -> str | None:  # noqa: ARG001
        file = files.get(uri.removeprefix("http://h.example/"))
        return None if file is None else relative_to_page(file, page)

    def taught(uri: str, use: LinkKind) -> str | None:
        asked.append(uri)
        known.add(uri, use, files.get(uri.removeprefix("http://h.example/")), group=2)
        return replaced(uri, use)

    expected = rewrite_links(body, "text/html", BASE, None, replaced)
    first = rewrite_links(body, "text/html", BASE, None, taught, directory=known, page=page)
    number = len(asked)
    again = rewrite_links(body, "text/html", BASE, None, taught, directory=known, page=page)
    assert first == expected
    assert len(asked) == number
    assert again == expected._replace(groups=(0, 0, number) if number else ())


def test_only_what_may_be_written_is_remembered() -> None:
    """An address is refused as `rewrite` refuses it; so is one that becomes too long on a page."""
    known = LinkDirectory(1 << 20)
    for address in ("a b", "\u00e9", "a\n", "x" * 9_000):
        with pytest.raises(UsageError, match="a new URL must have"):
            known.add("http://h.example/x", LinkKind.PAGE, address)
    known.add("http://h.example/x", LinkKind.PAGE, "x" * 7_990)
    with pytest.raises(UsageError, match="a new URL must have"):
        rewrite_links(b"<a href=/x>", "text/html", BASE, None, lambda *_: None, directory=known, page="a/" * 10)


def test_memory_is_bounded() -> None:
    """What does not fit any more is asked for."""
    known = LinkDirectory(1_000)
    for nth in range(100):
        known.add(f"http://h.example/{nth}", LinkKind.PAGE, f"file-{nth}")
    body = b"".join(b"<a href=/%d>" % nth for nth in range(100))
    asked: list[str] = []
    done = rewrite_links(body, "text/html", BASE, None, lambda uri, _: asked.append(uri), directory=known)
    assert 0 < done.groups[0] < 20
    assert done.groups[0] + len(asked) == 100


def test_several_threads_teach_one_directory() -> None:
    """Long pages are read while others run; none waits for the other without end."""
    known = LinkDirectory(1 << 24)
    body = b"<p>".join(b"<a href=/%d>" % nth for nth in range(5_000))

    def taught(uri: str, use: LinkKind) -> str:
        known.add(uri, use, "x")
        return "x"

    results: list[bytes] = []

    def work() -> None:
        results.append(rewrite_links(body, "text/html", BASE, None, taught, directory=known).body)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 4
    assert set(results) == {b"<p>".join([b"<a href=x>"] * 5_000)}
