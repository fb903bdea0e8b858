"""URLs on which tools disagree or may disagree: unusual hosts, ports, paths and queries in all combinations."""

HOSTS = [
    "a.com", "www.a.com", "WWW2.A.com", "www.www.a.com", "www.com", "www", "localhost", "a.com.", ".a.com", "a..com",
    "straße.de", "faß.de", "ς.gr", "bücher.de", "xn--bcher-kva.de", "xn--strae-oqa.de", "☃.net", "\uff41.com", "a。com",
    "a\u00adb.com", "K.com", "ﬀ.com", "xn--a.com", "a\u200db.com", "a" * 64 + ".com",
    "1.2.3.4", "www.1.2.3.4", "www2.1.2.3.4", "0x7f.1", "010.0.0.1", "1.2.3", "256.1.1.1", "1.2.3.4.5", "[::1]",
    "a_b.com", "a-.com", "a,b.com", "a(b).com", "a!b.com", "a+b.com", "a*b.com", "a~b.com", "a%20b.com", "%61.com",
    "me@a.com", "me:p@a.com",
]  # fmt: skip
PORTS = ["", ":80", ":443", ":8080", ":0", ":", ":08080"]
TAILS = [
    "", "/", "/A/B/", "/a/../b", "/a%2Fb/../x", "/a%2fb/%2e%2e/x", "/%2e%2e/x", "/..", "/a//b", "//a", "/a//../b",
    "/./a", "/a\\b", "/a%5Cb", "/a%5c..%5cb", "/a%3Fb=1&a?c=2", "/a%23b", "/a%25", "/a%2541", "/a%zz", "/a b",
    "/ü", "/%FC",
    "/a;jsessionid=0123456789abcdef0123456789abcdef", "/(S(4hqa0555fwsecu455xqckv45))/p.aspx", "?a", "/?", "/??a",
    "/a?b?c", "/?b=2&a=1", "/?a=%26b&c", "/?a=1%23b", "/?PHPSESSID=0123456789abcdef0123456789abcdef&z", "/?&a&&b",
    "/?a=%2F..%2F", "/#x", "/a#b?c", "/*", "/a%00b", "/a,b", "/a)b", "/a?b=/../c", "/a/b/../../c", "/a/...",
]  # fmt: skip
OTHERS = [
    "http://http://a.com/b", "http://a.com\\x", "http:\\\\a.com\\x", "http:/a.com/x", "http:a.com/x", "http:////a.com/x",
    "HTTP://A.com", "a.com/x", "//a.com/x", "http://[b](http://a.com/)",
]  # fmt: skip

URLS = [
    *(f"{scheme}://{host}{port}/a" for scheme in ("http", "https") for host in HOSTS for port in PORTS),
    *(f"http://{host}{tail}" for host in ("a.com", "www.1.2.3.4:8080", "straße.de") for tail in TAILS),
    *OTHERS,
]
