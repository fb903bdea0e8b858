//! Fast path to resolve plain URLs, which most pages contain and which the parser would not change.
//!
//! A URL is not plain if parsing may change it: another scheme, a port, characters that must be escaped, numeric host
//! names, dot segments. The WHATWG parser handles those; it takes ten times as long (measured).

use url::Url;

use super::byte_scan;

/// Where a byte may occur unescaped.
const PATH: u8 = 1;
const QUERY: u8 = 2;
const HOST: u8 = 4;

/// The bytes that begin a path segment, and those that begin a potential dot segment; each class is a separate bit.
const SLASH: u8 = 8;
const DOT: u8 = 16;
const COLON: u8 = 32;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128_usize {
        #[expect(clippy::cast_possible_truncation, reason = "it is less than 128")]
        let character = byte as u8;
        classes[byte] = match character {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => PATH | QUERY | HOST,
            b'.' => PATH | QUERY | HOST | DOT,
            b'%' => PATH | QUERY | DOT,
            b'/' => PATH | QUERY | SLASH,
            b':' => PATH | QUERY | COLON,
            b'A'..=b'Z'
            | b'_'
            | b'~'
            | b'!'
            | b'$'
            | b'&'
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b'@' => PATH | QUERY,
            b'?' => QUERY,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

fn is_all(bytes: &[u8], class: u8) -> bool {
    bytes
        .iter()
        .fold(class, |all, &byte| all & CLASSES[usize::from(byte)])
        != 0
}

/// A base URL with the offsets of its parts.
pub struct FastUrlJoiner<'u> {
    /// The base without query and fragment.
    text: &'u str,
    scheme_end: usize,
    path_at: usize,
    folder_end: usize,
}

impl<'u> FastUrlJoiner<'u> {
    /// `base` must be an http or https URL.
    pub fn of(base: &'u Url) -> Self {
        let text = &base[..url::Position::AfterPath];
        let path_at = base[..url::Position::BeforePath].len();
        Self {
            text,
            scheme_end: base.scheme().len() + 1,
            path_at,
            folder_end: text.rfind('/').map_or(path_at, |slash| slash + 1),
        }
    }

    /// Appends the resolved URL to `out` if it is plain. `written` must be trimmed, without a fragment, and not empty.
    pub fn join(&self, written: &str, out: &mut String) -> bool {
        let mut is_relative = false;
        let (start, rest) = match written.as_bytes() {
            [b'/', b'/', ..] => (self.scheme_end, written),
            [b'/', ..] => (self.path_at, written),
            [b'?', ..] => (self.text.len(), written),
            [b'h', b't', b't', b'p', b':', b'/', b'/', ..]
            | [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => (0, written),
            _ => match self.above(written) {
                Some(shared) => {
                    is_relative = true;
                    shared
                }
                None => return false,
            },
        };
        let is_whole = start == 0 || start == self.scheme_end;
        let mut path_at = 0;
        if is_whole {
            match self.host_end(rest, start) {
                Some(host_end) => path_at = host_end,
                None => return false,
            }
        }
        let Some(path_length) = path_length(&rest.as_bytes()[path_at..], is_relative) else {
            return false;
        };
        out.push_str(&self.text[..start]);
        if is_whole && path_length == 0 {
            out.push_str(&rest[..path_at]);
            out.push('/');
            out.push_str(&rest[path_at..]);
        } else {
            out.push_str(rest);
        }
        true
    }

    /// The end of the host in a URL that has one, after `start` bytes of the base. `None` if it is not plain.
    fn host_end(&self, rest: &str, start: usize) -> Option<usize> {
        // Most have the host of the page itself.
        let own = &self.text.as_bytes()[start..self.path_at];
        let bytes = rest.as_bytes();
        if bytes.starts_with(own) && matches!(bytes.get(own.len()), Some(b'/')) {
            return Some(own.len());
        }
        let host_at = 2 + if start == 0 {
            memchr::memchr(b'/', bytes)?
        } else {
            0
        };
        let host = &bytes[host_at..];
        let length = memchr::memchr2(b'/', b'?', host).unwrap_or(host.len());
        is_host(&host[..length]).then_some(host_at + length)
    }

    /// The length of the base that a URL relative to its folder shares, and the rest of the URL. `None` if it is not
    /// plain.
    fn above<'w>(&self, written: &'w str) -> Option<(usize, &'w str)> {
        let (mut end, mut rest) = (self.folder_end, written);
        if let Some(inside) = rest.strip_prefix("./") {
            rest = inside;
        }
        while let Some(above) = rest.strip_prefix("../") {
            let folders = &self.text[self.path_at..end - 1];
            // The root has no parent, and parsers treat empty segments differently.
            if folders.ends_with('/') {
                return None;
            }
            end = folders
                .rfind('/')
                .map_or(end, |slash| self.path_at + slash + 1);
            rest = above;
        }
        // Slashes would begin a host.
        let is_plain = !matches!(rest.as_bytes(), [b'/' | b'.' | b'?', ..]);
        is_plain.then_some((end, rest))
    }
}

/// Whether a host is in the parser's canonical form and not a number, which would be normalized.
fn is_host(host: &[u8]) -> bool {
    let mut labels = host.split(|&byte| byte == b'.');
    is_all(host, HOST)
        && labels
            .clone()
            .all(|label| !label.is_empty() && !label.starts_with(b"xn--"))
        && labels
            .next_back()
            .is_some_and(|last| last[0].is_ascii_lowercase())
}

/// The length of the path, before a query or the end. `None` if it contains something to escape, or dot segments, or,
/// if it is relative, a colon: the text before that may be a scheme.
fn path_length(bytes: &[u8], is_relative: bool) -> Option<usize> {
    // Segments that begin with a dot, which most paths do not contain, are detected while each byte is read once.
    let (mut before, mut dots, mut seen, mut all) = (SLASH, 0, 0, PATH);
    let length = byte_scan::find_near(bytes, 0, b'?').unwrap_or(bytes.len());
    let (path, query) = bytes.split_at(length);
    for &byte in path {
        let class = CLASSES[usize::from(byte)];
        dots |= (before << 1) & class;
        seen |= class;
        all &= class;
        before = class;
    }
    let has_dots = || {
        is_dotted(path)
            || memchr::memchr_iter(b'/', path).any(|slash| is_dotted(&path[slash + 1..]))
    };
    let is_plain = all != 0
        && is_all(query, QUERY)
        && (dots & DOT == 0 || !has_dots())
        && (!is_relative || seen & COLON == 0);
    is_plain.then_some(length)
}

/// Whether a segment may be a dot segment.
fn is_dotted(name: &[u8]) -> bool {
    matches!(name, [b'.', ..] | [b'%', b'2', b'e' | b'E', ..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rng::test_rng;

    const BASES: &[&str] = &[
        "http://h.example/",
        "https://h.example/d/",
        "http://h.example/d/e/f.html?q=1/2#x",
        "http://user:secret@h.example:8080/d//e",
        "http://h.example/d//",
        "http://127.0.0.1/a;b/%7E/",
    ];

    const PIECES: &[&str] = &[
        "/",
        "//",
        "http://",
        "https://",
        "http:",
        "HTTP://",
        "a",
        "B",
        "b.html",
        ".",
        "..",
        "../",
        "./",
        "%2e",
        "%2E.",
        "%41",
        "%",
        "?",
        "?x=1&y=/../",
        ":",
        "h.example",
        "www.b-c.example",
        "xn--a",
        "1",
        "0x1",
        "a.1",
        ":80",
        ":8080",
        "@",
        "\\",
        "|",
        "^",
        "'",
        "\"",
        "~",
        "é",
        " ",
        "\t",
        "-",
        "_",
        ",",
        ";",
        "*",
        "{",
        "[",
        "!",
        "$",
        "(",
        "=",
        "&",
        "+",
        "/d/",
        "x.",
        "-a",
        "a--b.example",
    ];

    /// Plain URLs are resolved as by the parser, and URLs of real pages are plain.
    #[test]
    fn plain_urls_match_the_parser() {
        let mut rng = test_rng(3);
        let mut out = String::new();
        let mut plain = 0;
        for _ in 0..300_000 {
            let base = Url::parse(BASES[rng(BASES.len())]).expect("a base");
            let written: String = (0..=rng(5)).map(|_| PIECES[rng(PIECES.len())]).collect();
            let written = written.trim_matches(|character| character <= ' ');
            out.clear();
            if !written.is_empty() && FastUrlJoiner::of(&base).join(written, &mut out) {
                plain += 1;
                let joined = base.join(written).map(String::from);
                assert_eq!(joined.as_deref(), Ok(&*out), "{base} {written}");
            }
        }
        assert!(plain > 20_000, "{plain}");
    }

    #[test]
    fn common_urls_are_plain() {
        let base = Url::parse("http://h.example/d/e/f.html?q").expect("a base");
        for written in [
            "x",
            "../x.png",
            "./x?a=1&b=2",
            "/x/y%20z:w",
            "//b.example",
            "https://b.example/x",
            "?p=1",
        ] {
            assert!(
                FastUrlJoiner::of(&base).join(written, &mut String::new()),
                "{written}"
            );
        }
    }
}
