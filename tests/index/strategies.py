"""Hypothesis strategies for index rows, including unusual ones."""

from hypothesis import strategies as st

from unlost.index import IndexRow

# A column cannot contain control characters or spaces, but braces, quotes and any script.
_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=12).filter(lambda t: t != "-")
_PATHS = st.one_of(st.sampled_from(["/", "/a", "/a-b", "/a/b", "/a?q={x}", "/*"]), _TEXT.map(lambda text: "/" + text))
KEYS = st.builds(lambda host, path: f"com,{host}){path}", st.sampled_from(["a", "b", "a,www", "example"]), _PATHS)
DATES = st.sampled_from(["20140210000001", "20140210000002", "2014", "20140210000001123"])

FIELDS = st.fixed_dictionaries(
    {"url": st.builds("http://a.com/{}".format, _TEXT), "offset": st.integers(0, 10**15).map(str), "filename": _TEXT},
    optional={
        "mime": st.sampled_from(["text/html", "warc/revisit", "TEXT/HTML", "unk"]),
        "status": st.sampled_from(["200", "404", "999", "OK"]),
        "digest": _TEXT,
        "redirect": _TEXT,
        "robotflags": st.just("A"),
        "length": st.integers(0, 10**9).map(str),
    },
)
ROWS = st.builds(IndexRow, KEYS, DATES, FIELDS)
