//! Detects the kind of a document from its type, its URL and its first bytes.

use std::borrow::Cow;

use super::spans::is_blank;

/// The kinds of documents that links or text are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Html,
    /// XHTML or SVG.
    Xhtml,
    Css,
    /// A sitemap, RSS or Atom.
    Feed,
    Robots,
    UrlList,
    /// XML of any other kind. It has text, but no known links.
    Xml,
    /// Plain text, scripts and textual data formats, without links.
    Text,
}

/// The number of leading bytes used for detection.
const HEAD_BYTES: usize = 4096;

/// The tags from which the MIME Sniffing standard detects HTML.
const HTML_TAGS: [&[u8]; 17] = [
    b"!doctype html",
    b"html",
    b"head",
    b"script",
    b"iframe",
    b"h1",
    b"div",
    b"font",
    b"table",
    b"a",
    b"style",
    b"title",
    b"b",
    b"body",
    b"br",
    b"p",
    // Not in the standard, which ignores framesets; old pages consist of them.
    b"frameset",
];

impl Kind {
    pub fn has_links(self) -> bool {
        !matches!(self, Self::Xml | Self::Text)
    }

    /// Detects the kind of a body; `None` for other kinds.
    pub fn of(body: &[u8], mime: Option<&str>, base: &str) -> Option<Self> {
        let essence = mime.map(essence).unwrap_or_default();
        // Parsing the URL takes longer than everything else here, and mostly adds nothing.
        let is_specific = matches!(
            essence.as_str(),
            "text/html" | "application/xhtml+xml" | "image/svg+xml" | "text/css"
        );
        let path = if is_specific && !may_be_robots(base) {
            String::new()
        } else {
            path(base)
        };
        let declared = match essence.as_str() {
            _ if path == "/robots.txt" => Some(Self::Robots),
            "text/html" => Some(Self::Html),
            "application/xhtml+xml" | "image/svg+xml" => Some(Self::Xhtml),
            "text/css" => Some(Self::Css),
            "" | "text/plain" | "application/octet-stream" => by_name(&path).or(Some(Self::Text)),
            other => by_type(other),
        };
        // UTF-16 is detected by its bytes, too: every other one is zero.
        let mut head = Cow::Borrowed(&body[..body.len().min(HEAD_BYTES)]);
        if memchr::memchr(0, &head).is_some() {
            head.to_mut().retain(|&byte| byte != 0);
        }
        match (declared, sniff(&head)) {
            // Feeds and SVG are often sent as HTML, but no page looks like a feed by mistake.
            (_, Some(Self::Feed)) => Some(Self::Feed),
            (Some(declared @ (Self::Html | Self::Xhtml)), _) => Some(declared),
            // An XML declaration is weaker evidence than a specific media type.
            (Some(declared), Some(Self::Xml)) if declared != Self::Text => Some(declared),
            // An error page sent instead of a file is a page, whatever type the file has.
            (_, Some(sniffed)) => Some(sniffed),
            (declared, None) => declared,
        }
    }
}

/// A media type without its parameters, in lower case.
fn essence(mime: &str) -> String {
    let end = mime.find(';').unwrap_or(mime.len());
    mime[..end].trim().to_ascii_lowercase()
}

/// A parameter of a media type, without quotes.
pub fn parameter<'m>(mime: &'m str, name: &str) -> Option<&'m str> {
    mime.split(';').skip(1).find_map(|each| {
        let (key, value) = each.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        key.trim().eq_ignore_ascii_case(name).then_some(value)
    })
}

/// The path of a URL in lower case, without a final `.gz`.
fn path(base: &str) -> String {
    let path = url::Url::parse(base).map_or_else(|_| String::new(), |url| url.path().to_owned());
    path.trim_end_matches(".gz").to_ascii_lowercase()
}

/// Whether a URL may be that of `/robots.txt`. Blanks within URLs are ignored.
fn may_be_robots(base: &str) -> bool {
    let name = b"robots.txt";
    !base.bytes().all(|byte| byte.is_ascii_graphic())
        || (base.as_bytes().windows(name.len())).any(|each| each.eq_ignore_ascii_case(name))
}

fn by_name(path: &str) -> Option<Kind> {
    if path.ends_with("sitemap.txt") {
        Some(Kind::UrlList)
    } else if has_suffix(path, "css") {
        Some(Kind::Css)
    } else {
        None
    }
}

/// The kind for a type that has no links.
fn by_type(essence: &str) -> Option<Kind> {
    let (family, name) = essence.split_once('/').unwrap_or(("", essence));
    match (family, name) {
        // The placeholders that indexes use for a missing media type.
        (_, "unk" | "unknown") => Some(Kind::Text),
        (_, "xml") => Some(Kind::Xml),
        _ if name.ends_with("+xml") => Some(Kind::Xml),
        ("text", _)
        | (
            "application",
            "javascript" | "x-javascript" | "ecmascript" | "x-ecmascript" | "json" | "x-json",
        ) => Some(Kind::Text),
        _ if name.ends_with("+json") => Some(Kind::Text),
        _ => None,
    }
}

fn has_suffix(path: &str, suffix: &str) -> bool {
    path.rsplit('.').next() == Some(suffix)
}

/// The kind shown by the first bytes: comments, declarations and document types are skipped.
fn sniff(head: &[u8]) -> Option<Kind> {
    let mut rest = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    // The byte-order mark of UTF-16.
    rest = rest
        .strip_prefix(b"\xff\xfe")
        .or(rest.strip_prefix(b"\xfe\xff"))
        .unwrap_or(rest);
    let is_xml = rest.starts_with(b"<?xml");
    loop {
        let blanks = rest.iter().take_while(|&&byte| is_blank(byte)).count();
        rest = &rest[blanks..];
        let skip = |end: &[u8]| {
            memchr::memmem::find(rest, end).map_or(&b""[..], |at| &rest[at + end.len()..])
        };
        if rest.starts_with(b"<!--") {
            rest = skip(b"-->");
        } else if rest.starts_with(b"<?") {
            rest = skip(b">");
        } else if is_tag(rest, b"!doctype html") {
            return Some(Kind::Html);
        } else if rest.starts_with(b"<!") {
            // A document type may contain declarations in brackets.
            let end = memchr::memchr2(b'[', b'>', rest);
            let declares = end.is_some_and(|at| rest[at] == b'[');
            rest = skip(if declares { b"]" } else { b">" });
            if declares {
                rest = memchr::memchr(b'>', rest).map_or(b"", |at| &rest[at + 1..]);
            }
        } else {
            return root(rest).or(is_xml.then_some(Kind::Xml));
        }
    }
}

fn root(rest: &[u8]) -> Option<Kind> {
    let name = rest.strip_prefix(b"<")?;
    let end = name
        .iter()
        .position(|&byte| is_blank(byte) || byte == b'>' || byte == b'/')?;
    let name = &name[..end];
    let local = name.rsplit(|&byte| byte == b':').next().unwrap_or(name);
    match local {
        b"urlset" | b"sitemapindex" | b"rss" | b"feed" | b"RDF" => Some(Kind::Feed),
        b"svg" => Some(Kind::Xhtml),
        _ => HTML_TAGS
            .iter()
            .any(|tag| is_tag(rest, tag))
            .then_some(Kind::Html),
    }
}

fn is_tag(rest: &[u8], tag: &[u8]) -> bool {
    let Some(after) = rest.get(1 + tag.len()) else {
        return false;
    };
    rest[0] == b'<'
        && rest[1..=tag.len()].eq_ignore_ascii_case(tag)
        && (is_blank(*after) || *after == b'>')
}
