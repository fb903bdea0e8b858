//! Plain addresses joined to a base: what most pages have, and reading it as an address would change nothing in.
//!
//! Whatever could be spelled otherwise is not plain: another scheme, a port, letters that are escaped, names of hosts that are
//! numbers, dots in the middle. It is left to the parser, which takes ten times as long.

use url::Url;

use super::scan;

/// What a byte may stand in as it is.
const PATH: u8 = 1;
const QUERY: u8 = 2;
const HOST: u8 = 4;

/// What begins a name in a path, and what a name begins with that may mean a folder; a bit apart.
const SLASH: u8 = 8;
const DOT: u8 = 16;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128_usize {
        #[expect(clippy::cast_possible_truncation, reason = "it is less than 128")]
        let letter = byte as u8;
        classes[byte] = match letter {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => PATH | QUERY | HOST,
            b'.' => PATH | QUERY | HOST | DOT,
            b'%' => PATH | QUERY | DOT,
            b'/' => PATH | QUERY | SLASH,
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
            | b'@'
            | b':' => PATH | QUERY,
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

/// A base, and where its parts end.
pub struct Joiner<'u> {
    /// The base without query and fragment.
    text: &'u str,
    scheme_end: usize,
    path_at: usize,
    folder_end: usize,
}

impl<'u> Joiner<'u> {
    /// `base` is one of http or https.
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

    /// Writes the address that is meant behind what is in `out`, if it is a plain one. `written` has neither blanks around it
    /// nor a fragment, and is not empty.
    pub fn join(&self, written: &str, out: &mut String) -> bool {
        let (start, rest) = match written.as_bytes() {
            [b'/', b'/', ..] => (self.scheme_end, written),
            [b'/', ..] => (self.path_at, written),
            [b'?', ..] => (self.text.len(), written),
            [b'h', b't', b't', b'p', b':', b'/', b'/', ..]
            | [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => (0, written),
            _ => match self.above(written) {
                Some(found) => found,
                None => return false,
            },
        };
        let is_whole = start == 0 || start == self.scheme_end;
        let mut path = rest;
        if is_whole {
            let host_at = if start == 0 {
                written.find("//").unwrap_or(0)
            } else {
                0
            } + 2;
            let host = &rest[host_at..];
            let length = memchr::memchr2(b'/', b'?', host.as_bytes()).unwrap_or(host.len());
            if !is_host(&host.as_bytes()[..length]) {
                return false;
            }
            path = &host[length..];
        }
        let path_end = scan::find(path.as_bytes(), 0, b'?').unwrap_or(path.len());
        if !is_path(&path.as_bytes()[..path_end]) || !is_all(&path.as_bytes()[path_end..], QUERY) {
            return false;
        }
        out.push_str(&self.text[..start]);
        if is_whole && path_end == 0 {
            out.push_str(&rest[..rest.len() - path.len()]);
            out.push('/');
            out.push_str(path);
        } else {
            out.push_str(rest);
        }
        true
    }

    /// How much of the base an address keeps that is relative to its folder, and what comes behind it. `None` if that is not
    /// plain.
    fn above<'w>(&self, written: &'w str) -> Option<(usize, &'w str)> {
        let (mut end, mut rest) = (self.folder_end, written);
        if let Some(inside) = rest.strip_prefix("./") {
            rest = inside;
        }
        while let Some(above) = rest.strip_prefix("../") {
            let folders = &self.text[self.path_at..end - 1];
            // Nothing is above the first; and of what is empty, parsers may take away more.
            if folders.ends_with('/') {
                return None;
            }
            end = folders
                .rfind('/')
                .map_or(end, |slash| self.path_at + slash + 1);
            rest = above;
        }
        // Slashes would begin a host, and what is before a colon may be a scheme.
        let is_plain = !rest.starts_with(['/', '.', '?'])
            && memchr::memchr2(b':', b'?', rest.as_bytes())
                .is_none_or(|mark| rest.as_bytes()[mark] == b'?');
        is_plain.then_some((end, rest))
    }
}

/// Whether a host is spelled as parsers do, and no number: they are spelled otherwise.
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

/// Whether a path has nothing to escape, and no folders that mean others.
fn is_path(path: &[u8]) -> bool {
    // Where a name begins with a dot, which most paths have nowhere, is looked for while each byte is seen once.
    let (mut all, mut before, mut dots) = (PATH, SLASH, 0);
    for &byte in path {
        let class = CLASSES[usize::from(byte)];
        all &= class;
        dots |= (before << 1) & class;
        before = class;
    }
    let has_dots = || {
        is_dotted(path)
            || memchr::memchr_iter(b'/', path).any(|slash| is_dotted(&path[slash + 1..]))
    };
    all & PATH != 0 && (dots & DOT == 0 || !has_dots())
}

/// Whether a name may be that of the folder itself or of the one above.
fn is_dotted(name: &[u8]) -> bool {
    matches!(name, [b'.', ..] | [b'%', b'2', b'e' | b'E', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Whatever is plain is joined as the parser does; and what pages mostly have is plain.
    #[test]
    fn plain_addresses_are_those_of_the_parser() {
        let mut state = 3_u64;
        let mut dice = move |sides: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).expect("31 bits") % sides
        };
        let mut out = String::new();
        let mut plain = 0;
        for _ in 0..300_000 {
            let base = Url::parse(BASES[dice(BASES.len())]).expect("a base");
            let written: String = (0..=dice(5)).map(|_| PIECES[dice(PIECES.len())]).collect();
            let written = written.trim_matches(|letter| letter <= ' ');
            out.clear();
            if !written.is_empty() && Joiner::of(&base).join(written, &mut out) {
                plain += 1;
                let joined = base.join(written).map(String::from);
                assert_eq!(joined.as_deref(), Ok(&*out), "{base} {written}");
            }
        }
        assert!(plain > 20_000, "{plain}");
    }

    #[test]
    fn what_pages_have_is_plain() {
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
                Joiner::of(&base).join(written, &mut String::new()),
                "{written}"
            );
        }
    }
}
