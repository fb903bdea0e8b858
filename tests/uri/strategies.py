"""Random difficult URLs: nested escapes, dots, ports, unusual labels, session ids."""

from hypothesis import strategies as st

ID = "0123456789abcdef0123456789ABCDEF"
ASP = "(S(4hqa0555fwsecu455xqckv45))"

_nasty_segments = st.sampled_from(
    ["", ".", "..", "%2e", "%2E%2e", "%252e", "%2F", "%5C", "%3F", "%23", "%25", "%2", "%", "%zz", "%2541", "%C3%BC",
     "ü", "€", "a b", "A", "a-b", "a.html", "*", "%2a", ";x", "(a)", ASP, "page.aspx", "x)y", "a,b", "~", "\\", "+",
     "'", '"']
)  # fmt: skip
_free_text = st.text(st.characters(blacklist_characters="/?#\\\t\n\r", blacklist_categories=["Cs", "Cc"]), max_size=6)
segments = st.one_of(_nasty_segments, _free_text)

_nasty_parameters = st.sampled_from(
    ["", "a", "a=", "a=1", "A=1", "a-b=1", "b=%26c", "b=%3D", "%61=2", "=", "x=*", "q=a/b", "q=a?b", "q=\\", "ü=€",
     "c=%23", "%zz", "a b", "a+b", "cfid=1", "cftoken=2", "sid=1", f"sid={ID}", f"jsessionid={ID}", f"osid={ID}",
     f"PHPSESSID={ID}", "aspsessionidabcdefgh=abcdefghijklmnopqrstuvwx", f"%4sid={ID}", f"%sid={ID}", "1x", "6"]
)  # fmt: skip
parameters = st.one_of(_nasty_parameters, _free_text)

# Last labels are names: what happens to hosts that end in a number is up to the URL standard, and tested by example.
_labels = st.sampled_from(
    [
        "www",
        "www2",
        "WWW",
        "a",
        "b",
        "Example",
        "a-b",
        "a_b",
        "xn--bcher-kva",
        "bücher",
        "1",
        "a,b",
        "a!",
        "a*",
        "a)b",
        "",
    ]
)
_tops = st.sampled_from(["com", "co.uk", "uk", "github.io", "localhost", "www", "com."])
names = st.builds(lambda labels, top: ".".join([*labels, top]), st.lists(_labels, max_size=4), _tops)
addresses = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    st.sampled_from(["0x7f.1", "0177.0.0.1", "16909060", "1.2.3"]),
)
hosts = st.one_of(names, names, names, addresses)
ports = st.sampled_from(["", "", "", ":80", ":443", ":8080", ":0", ":"])
userinfos = st.sampled_from(["", "", "user@", "user:pass@", "a@b@"])
schemes = st.sampled_from(["http://", "https://", "HTTP://", "http:", "https:/", "http:\\\\"])
fragments = st.sampled_from(["", "", "#", "#top", "#a?b/c"])


@st.composite
def uris(draw: st.DrawFn) -> str:
    """Draw an http or https URL."""
    path = draw(st.lists(segments, max_size=5))
    query = draw(st.one_of(st.none(), st.lists(parameters, max_size=5)))
    authority = draw(userinfos) + draw(hosts) + draw(ports)
    tail = "".join("/" + segment for segment in path)
    if query is not None:
        tail += "?" + "&".join(query)
    return draw(schemes) + authority + tail + draw(fragments)
