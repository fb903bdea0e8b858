"""Page names: all URLs of a page have one name; the core agrees with a slow model."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.models import page_names as model
from tests.uri import strategies
from unlost.errors import ForeignSchemeError, UriError
from unlost.uri import default_page_names, fold_case, folder_of_default_page, page_name, page_names, url_from_name

ID = strategies.ID

# The rules of "Canonical URIs while crawling", each with what it does and what it must leave alone.
RULES = [
    ("lower-case host", "http://Foo.ORG/Bar", "foo.org/Bar"),
    ("index.html at the end", "http://foo.org/a/index.html", "foo.org/a"),
    ("index.htm at the end", "http://foo.org/index.htm", "foo.org/"),
    ("default.htm at the end", "http://foo.org/a/default.htm", "foo.org/a"),
    ("in capitals, as of Windows", "http://foo.org/Default.htm", "foo.org/"),
    ("before a query", "http://foo.org/a/index.html?x=1", "foo.org/a?x=1"),
    ("not in the middle", "http://foo.org/index.html/a", "foo.org/index.html/a"),
    ("not the end of a longer name", "http://foo.org/myindex.html", "foo.org/myindex.html"),
    ("not index.php", "http://foo.org/index.php", "foo.org/index.php"),
    ("fragment", "http://foo.org/a#b", "foo.org/a"),
    ("fragment with a question mark", "http://foo.org/a#b?c", "foo.org/a"),
    ("./", "http://foo.org/./a/./b", "foo.org/a/b"),
    ("../", "http://foo.org/a/../b/c/..", "foo.org/b"),
    ("../ above the root", "http://foo.org/../a", "foo.org/a"),
    ("../ escaped", "http://foo.org/a/%2e%2E/b", "foo.org/b"),
    ("doubled slashes", "http://foo.org//a///b", "foo.org/a/b"),
    ("not in the query", "http://foo.org/?u=http://a//b/../c", "foo.org/?u=http://a//b/../c"),
    ("%21 to %7E decoded", "http://foo.org/%21%41%7euser%7E", "foo.org/!A~user~"),
    ("a space becomes +", "http://foo.org/a%20b c+d", "foo.org/a+b+c+d"),
    ("not in the query", "http://foo.org/?a=%41%20b", "foo.org/?a=%41%20b"),
    ("never the reserved", "http://foo.org/%23%25%2F%3F", "foo.org/%23%25%2F%3F"),
    ("never twice", "http://foo.org/%2541", "foo.org/%2541"),
    ("upper-case hex", "http://foo.org/%2f%c3%bc?a=%c3%bc", "foo.org/%2F%C3%BC?a=%C3%BC"),
    ("as if it were escaped", "http://foo.org/ü?a=ü", "foo.org/%C3%BC?a=%C3%BC"),
    ("other bytes than UTF-8", "http://foo.org/%fc", "foo.org/%FC"),
    ("a lone percent sign", "http://foo.org/100%", "foo.org/100%25"),
    ("session id of PHP", f"http://foo.org/?a=1&PHPSESSID={ID}&b=2", "foo.org/?a=1&b=2"),
    ("session id alone", f"http://foo.org/a?sid={ID}", "foo.org/a"),
    ("session id of Java", f"http://foo.org/a.jsp?jsessionid={ID}", "foo.org/a.jsp"),
    ("session id of Java in the path", f"http://foo.org/a.jsp;jsessionid={ID}?b=1", "foo.org/a.jsp?b=1"),
    ("session id of ASP", f"http://foo.org/?ASPSESSIONID{'ABCDEFGH'}={'abcdefghijkl' * 2}", "foo.org/"),
    ("session id of ASP.NET", f"http://foo.org/{strategies.ASP}/Page.ASPX", "foo.org/Page.ASPX"),
    ("session id of ColdFusion", "http://foo.org/?CFID=1&a=2&CFTOKEN=3", "foo.org/?a=2"),
    ("not half of one", "http://foo.org/?cfid=1", "foo.org/?cfid=1"),
    ("not what only ends like one", f"http://foo.org/?osid={ID}&b=1", f"foo.org/?osid={ID}&b=1"),
    ("not a short number", "http://foo.org/?sid=17", "foo.org/?sid=17"),
    ("www", "http://www.foo.org/", "foo.org/"),
    ("not www2", "http://www2.foo.org/", "www2.foo.org/"),
    ("not all of a host", "http://www.org/", "www.org/"),
    ("letter case stays", "http://foo.org/BAR.html", "foo.org/BAR.html"),
    ("a final slash", "http://foo.org/bar/", "foo.org/bar"),
    ("a final slash before a query", "http://foo.org/bar/?x", "foo.org/bar?x"),
    ("the slash of the root stays", "http://foo.org", "foo.org/"),
    ("scheme", "https://foo.org/", "foo.org/"),
    ("port of http", "http://foo.org:80/", "foo.org/"),
    ("port of https", "https://foo.org:443/", "foo.org/"),
    ("another port stays", "http://foo.org:8080/", "foo.org:8080/"),
    ("user info", "http://me:secret@foo.org/", "foo.org/"),
    ("international names", "http://Bücher.example/", "xn--bcher-kva.example/"),
    ("dots around the host", "http://foo.org./", "foo.org/"),
    ("IPv4", "http://0x7f.1/a/", "127.0.0.1/a"),
    ("IPv6", "http://[2001:DB8::0:1]:81/", "[2001:db8::1]:81/"),
    ("an empty query", "http://foo.org/a?", "foo.org/a"),
    ("the order of parameters stays", "http://foo.org/?b=1&a=2", "foo.org/?b=1&a=2"),
    ("what may not stand in a query", "http://foo.org/?a[]='{x|y}' 5%", "foo.org/?a%5B%5D=%27%7Bx%7Cy%7D%27%205%25"),
    ("backslash", "http://foo.org/a\\b%5Cc", "foo.org/a/b/c"),
]


@pytest.mark.parametrize(("uri", "name"), [rule[1:] for rule in RULES], ids=[f"{r[0]}: {r[1]}"[:60] for r in RULES])
def test_each_naming_rule(uri: str, name: str) -> None:
    """Names are idempotent."""
    assert page_name(uri) == name
    assert page_name(url_from_name(name)) == name
    assert model.name(uri) == name


@given(strategies.uris())
@example(f"http://a.com/..;jsessionid={ID}/b")
@example(f"http://a.com/b;jsessionid={ID};JSESSIONID={ID}/index.html/Default.HTM/")
@example("http://a.com/%4%31")
@example("http://a.com/a%2Fb%3fc%23d%25e")
@example("http://a.com/%2%35/%%34%31")
@example("http://a.com/a%5C..%5Cb")
@example("http://a.com/x//../y")
@example(f"http://a.com/?cfid=1&sid={ID}&cftoken=2")
@example("http://www.www.com/")
@example("https://a.com:80/")
@example("http://a.com/?%C3%bC%zz%4")
def test_names_agree_with_the_model(uri: str) -> None:
    """And the URL of a name has that name."""
    name = page_name(uri)
    assert name == model.name(uri)
    assert page_name(url_from_name(name)) == name
    small = page_name(uri, ignore_case=True)
    assert small == fold_case(name) == model.name(uri, ignore_case=True)
    assert page_name(url_from_name(small), ignore_case=True) == small


@given(strategies.uris())
def test_fast_path_agrees_with_the_parser(uri: str) -> None:
    """An upper-case scheme does not take the fast path."""
    plain = "http://" + uri.partition(":")[2].lstrip("/\\")
    assert page_name(plain) == page_name(plain.replace("http:", "HTTP:", 1))


@given(st.lists(st.one_of(st.text(), strategies.uris()), max_size=8), st.booleans())
def test_any_text_has_a_name_or_is_rejected(texts: list[str], ignore_case: bool) -> None:
    """The name is printable ASCII, the error one line; batches give the same results."""
    names = page_names(texts, ignore_case=ignore_case)
    assert len(names) == len(texts)
    for text, name in zip(texts, names, strict=True):
        if isinstance(name, UriError):
            assert str(name).isprintable()
            with pytest.raises(type(name)):
                page_name(text, ignore_case=ignore_case)
            continue
        assert name.isascii()
        assert name.isprintable()
        assert " " not in name
        assert "/" in name
        assert page_name(text, ignore_case=ignore_case) == name
        assert page_name(url_from_name(name), ignore_case=ignore_case) == name


@pytest.mark.parametrize("text", ["", "/a", "http://", "http://a b/", "http://a.com:99999/", "http://256.1.1.1/"])
def test_invalid_url_is_rejected(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(UriError):
        page_name(text)


@pytest.mark.parametrize(
    "text", ["mailto:me@foo.org", "ftp://foo.org/", "javascript:void(0)", "data:,a", "dns:foo.org"]
)
def test_foreign_schemes_are_rejected(text: str) -> None:
    """Other schemes have no names."""
    with pytest.raises(ForeignSchemeError):
        page_name(text)


def test_hostile_urls_take_linear_time() -> None:
    """Two million bytes take no noticeable time."""
    for piece in (f";jsessionid={ID}", "../", "%25", "%2", "&cfid=1", "&sid=", "/index.html", "(a("):
        assert page_name("http://a.com/?" + piece * (2_000_000 // len(piece)))
        assert page_name("http://a.com/" + piece * (2_000_000 // len(piece)))


def test_names_differing_in_case_fold_to_one() -> None:
    """For sites on Windows servers."""
    assert fold_case(page_name("http://foo.org/bar.html")) == fold_case(page_name("http://www.foo.org/BAR.html"))


@given(strategies.uris())
def test_default_pages_map_back_to_their_folder(uri: str) -> None:
    """Every default page is a name."""
    name = page_name(uri)
    for root in () if strategies.ASP in name else default_page_names(name):  # a session before a page is dropped
        assert page_name(url_from_name(root)) == root
        assert folder_of_default_page(root) == name


def test_other_pages_are_not_default_pages() -> None:
    """Only those of the list."""
    assert folder_of_default_page("foo.org/a/page.php") is None
    assert folder_of_default_page("foo.org/") is None
    assert len(set(default_page_names("foo.org/"))) == len(default_page_names("foo.org/"))
