//! URLs in the strings of scripts, and in attributes that scripts read. How a script uses them is not known.

use std::ops::Range;

use encoding_rs::Encoding;
use memchr::memmem;
use url::Url;

use super::document::Document;
use super::elements::{Element, LinkSink, Quote, UrlOccurrence};
use super::kind::Kind;
use super::parse_context::ParseContext;
use super::references::References;
use super::resolved_links::Bases;
use super::{LinkKind, MAX_BODY_BYTES, walker, xhtml};

/// The maximum number of candidates of one script. Our limit: a script with more consists of data.
const MAX_CANDIDATES: usize = 10_000;

/// Hosts of XML namespaces. Their URLs are identifiers and are not fetched, unless the site itself is on that host.
const NAMESPACE_HOSTS: [&str; 6] = [
    "www.w3.org",
    "schema.org",
    "ogp.me",
    "purl.org",
    "xmlns.com",
    "ns.adobe.com",
];

/// File extensions of websites.
const FILE_EXTENSIONS: [&str; 58] = [
    "html", "htm", "shtml", "xhtml", "php", "php3", "asp", "aspx", "jsp", "cgi", "pl", "cfm",
    "css", "js", "mjs", "json", "xml", "rss", "atom", "txt", "pdf", "png", "jpg", "jpeg", "gif",
    "webp", "svg", "ico", "bmp", "avif", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4", "m4a",
    "ogg", "ogv", "webm", "wav", "swf", "flv", "mov", "avi", "mpg", "mpeg", "doc", "docx", "xls",
    "xlsx", "ppt", "pptx", "rtf", "zip", "gz", "tar",
];

/// URLs of http and https that are whole strings of a script, unique, in order of appearance: absolute ones;
/// root-relative ones that end like a file or a folder; others that end like a file. Operands of `+` are excluded.
/// `base` is the URL of the page that runs the script.
#[must_use]
pub fn candidates(body: &[u8], base: &str) -> Vec<String> {
    let mut collector = Collector::of(base);
    collector.add_strings(&body[..body.len().min(MAX_BODY_BYTES)]);
    collector.resolve_all(base, encoding_rs::UTF_8)
}

/// URLs that the scripts of a page may request, unique, in order of appearance: those in inline scripts and event
/// handlers, as [`candidates`] finds them, and values of `data-*` attributes that [look like one](looks_like_url) and
/// are not links by themselves; for JSON values, their strings. The arguments are those of [`super::find`].
#[must_use]
pub fn of_page(body: &[u8], mime: Option<&str>, base: &str, charset: Option<&str>) -> Vec<String> {
    let document = Document::of(body, mime, base, charset);
    let Some(kind @ (Kind::Html | Kind::Xhtml)) = document.kind else {
        return Vec::new();
    };
    let (read, encoding) = document.read(kind);
    let mut collector = Collector::of(base);
    let whole = ParseContext::whole(read.text());
    match kind {
        Kind::Html => walker::walk(&whole, read.source(), &mut collector),
        _ => xhtml::walk(&whole, &mut collector),
    }
    collector.resolve_all(base, encoding)
}

/// The host of a URL; empty if it has none.
pub fn host_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.unwrap_or_default().to_owned()
}

/// Collects URLs that scripts of a page may request.
struct Collector {
    references: References,
    /// The host of the page.
    host: String,
}

impl Collector {
    fn of(base: &str) -> Self {
        Self {
            references: References::default(),
            host: host_of(base),
        }
    }

    fn add(&mut self, written: &str) -> bool {
        self.references.add(written, LinkKind::Page);
        self.references.len() < MAX_CANDIDATES
    }

    fn add_strings(&mut self, code: &[u8]) {
        if self.references.len() < MAX_CANDIDATES {
            let host = std::mem::take(&mut self.host);
            literals(code, &host, |literal| self.add(&literal.text));
            self.host = host;
        }
    }

    fn resolve_all(&self, base: &str, encoding: &'static Encoding) -> Vec<String> {
        let bases = Bases::of(&self.references, base, encoding);
        let links = bases.resolve_all(&self.references).links;
        links.iter().map(|(uri, _)| uri.to_owned()).collect()
    }
}

impl LinkSink for Collector {
    fn add(
        &mut self,
        _spot: UrlOccurrence<'_>,
        _written: &str,
        _purpose: LinkKind,
        _within: Option<&str>,
    ) {
    }

    fn add_base(&mut self, element: &Element<'_, '_>, written: &str) {
        self.references.add_base(element, written);
    }

    fn collects_scripts(&self) -> bool {
        true
    }

    fn add_data(&mut self, value: &ParseContext<'_>) {
        let text = value.text.trim_matches(super::references::is_outside);
        if text.starts_with(['{', '[']) {
            self.add_strings(text.as_bytes());
        } else if looks_like_url(text) && self.references.len() < MAX_CANDIDATES {
            self.add(text);
        }
    }

    fn add_handler(&mut self, code: &ParseContext<'_>) {
        self.add_strings(code.text.as_bytes());
    }

    fn add_script(&mut self, code: &ParseContext<'_>) {
        self.add_strings(code.text.as_bytes());
    }
}

/// A string of a script that may be a URL.
pub struct Literal {
    pub text: String,
    /// Its range between its quotes.
    pub span: Range<usize>,
    /// Its quotes; `None` for a template literal.
    pub quote: Option<Quote>,
}

/// Calls `each` with the strings of a script that are nothing but a URL, and [navigation targets](navigations), until
/// it returns `false`. `own_host`: of the page.
pub fn literals(code: &[u8], own_host: &str, mut each: impl FnMut(Literal) -> bool) {
    let mut targets = Vec::new();
    navigations(code, |span, _| targets.push(span));
    for start in memchr::memchr3_iter(b'"', b'\'', b'`', code) {
        let target = targets.binary_search_by_key(&(start + 1), |span| span.start);
        let literal_text = if let Ok(nth) = target {
            let span = targets[nth].clone();
            Some((
                String::from_utf8_lossy(&code[span.clone()]).into(),
                span.end,
            ))
        } else {
            string(code, start).filter(|(text, _)| is_candidate(text, own_host))
        };
        if let Some((text, end)) = literal_text {
            let mark = code[start];
            let literal = Literal {
                text,
                span: start + 1..end,
                quote: (mark != b'`').then(|| Quote::of(mark)),
            };
            if !each(literal) {
                return;
            }
        }
    }
}

/// Calls `each` with the strings that a script navigates to, in order, and their quotes: assigned to `location` or
/// `location.href`, or passed to `location.replace()` or `location.assign()`. A string that is concatenated is
/// excluded, unless the other part is a fragment.
pub fn navigations(code: &[u8], mut each: impl FnMut(Range<usize>, Quote)) {
    let mut end = 0;
    for match_start in memmem::find_iter(code, b"location") {
        let is_longer = match_start.checked_sub(1).is_some_and(
            |before| matches!(code[before], b'_' | b'$' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z'),
        );
        // A match within a string is not code.
        if match_start >= end
            && !is_longer
            && let Some((span, quote)) = navigation(code, match_start + b"location".len())
        {
            end = span.end;
            each(span, quote);
        }
    }
}

/// The navigation target if `location` ends at `at`.
fn navigation(code: &[u8], at: usize) -> Option<(Range<usize>, Quote)> {
    let blanks = |at: usize| {
        let rest = code.get(at..).unwrap_or_default();
        // Our limit: programs do not contain longer runs of blanks.
        let rest = &rest[..rest.len().min(100)];
        at + rest
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count()
    };
    let rest = &code[at..];
    let mut calls = [&b".replace"[..], b".assign"].into_iter();
    let start = if let Some(name) = calls.find(|name| rest.starts_with(name)) {
        let bracket = blanks(at + name.len());
        (code.get(bracket) == Some(&b'(')).then(|| blanks(bracket + 1))?
    } else {
        let sign = blanks(if rest.starts_with(b".href") {
            at + 5
        } else {
            at
        });
        (code.get(sign) == Some(&b'=')).then(|| blanks(sign + 1))?
    };
    let quote = *code
        .get(start)
        .filter(|mark| matches!(mark, b'"' | b'\''))?;
    let inside = start + 1;
    let length = memchr::memchr3(quote, b'\\', b'\n', &code[inside..])?;
    let end = inside + length;
    if code[end] != quote || length == 0 {
        return None;
    }
    let next = blanks(end + 1);
    let is_whole = match code.get(next) {
        Some(b'+') => {
            let added = &code[next + 1..code.len().min(next + 80)];
            let added = added.split(|byte| matches!(byte, b';' | b'\n')).next();
            added.is_some_and(|added| {
                memchr::memchr(b'#', added).is_some() || memmem::find(added, b"hash").is_some()
            })
        }
        Some(b'.' | b'[') => false,
        _ => true,
    };
    is_whole.then(|| (inside..end, Quote::of(quote)))
}

/// Whether the value of a `data-*` attribute looks like a URL: absolute, or a path that has a slash or ends like a
/// file. A single word, a date and a media type do not.
#[must_use]
pub fn looks_like_url(value: &str) -> bool {
    let text = value.trim_matches(super::references::is_outside);
    let is_odd = |character: char| {
        character <= ' '
            || matches!(
                character,
                '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' | '\'' | '('
            )
    };
    if text.is_empty() || text.contains(is_odd) || text.starts_with(['#', '?']) {
        return false;
    }
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    if let Some(scheme) = scheme.filter(|scheme| !scheme.contains(['/', '?', '#'])) {
        return scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    }
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let Some((first, rest)) = path.split_once('/') else {
        return is_file_nearby(text);
    };
    let is_media = MEDIA.contains(&first.to_ascii_lowercase().as_str())
        && !rest.contains('/')
        && !is_file(rest);
    let has_letter = path
        .bytes()
        .any(|byte| byte.is_ascii_alphabetic() || byte >= 0x80);
    has_letter && !is_media && !first.contains(':')
}

/// The top-level media types.
const MEDIA: [&str; 8] = [
    "application",
    "audio",
    "font",
    "image",
    "model",
    "multipart",
    "text",
    "video",
];

/// The string that begins here, and its end, if all of it may be a URL and it is not concatenated.
fn string(body: &[u8], start: usize) -> Option<(String, usize)> {
    let quote = body[start];
    // Strings that do not begin like a URL are skipped.
    if !matches!(body.get(start + 1)?, b'/' | b'\\' | b'.' | b'_' | b'-' | b'~' | b'%' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z')
        || is_joined(body[..start].iter().rev())
    {
        return None;
    }
    let mut text = String::new();
    let mut at = start + 1;
    loop {
        match *body.get(at)? {
            byte if byte == quote => break,
            // Escaped slashes, as in JSON.
            b'\\' if body.get(at + 1) == Some(&b'/') => {}
            byte if byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&*+,;=%".contains(&byte) => {
                text.push(char::from(byte));
            }
            _ => return None,
        }
        at += 1;
    }
    (!is_joined(body[at + 1..].iter())).then_some((text, at))
}

/// Whether a `+` follows.
fn is_joined<'b>(mut bytes: impl Iterator<Item = &'b u8>) -> bool {
    // Our limit: programs do not contain longer runs of blanks before it.
    bytes
        .by_ref()
        .take(100)
        .find(|byte| !byte.is_ascii_whitespace())
        == Some(&b'+')
}

fn is_candidate(text: &str, own_host: &str) -> bool {
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    let rest = if lower.starts_with("http://") {
        &text[7..]
    } else if lower.starts_with("https://") {
        &text[8..]
    } else if let Some(rest) = text.strip_prefix("//") {
        if !looks_like_a_file(rest) {
            return false;
        }
        rest
    } else if text.starts_with('/') {
        return looks_like_a_file(text);
    } else {
        return is_file_nearby(text);
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.to_ascii_lowercase();
    host == own_host || (is_host(&host) && !NAMESPACE_HOSTS.contains(&host.as_str()))
}

fn is_host(host: &str) -> bool {
    host.split('.').count() > 1
        && host
            .split('.')
            .all(|label| label.bytes().any(|byte| byte.is_ascii_alphanumeric()))
}

/// Whether it is a file name, possibly with folders, without a root.
fn is_file_nearby(text: &str) -> bool {
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    !path.contains([':', '*']) && !path.contains("//") && is_file(name)
}

/// Whether a name has a file extension, and something before it.
fn is_file(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, ending)| {
        stem.bytes().any(|byte| byte.is_ascii_alphanumeric())
            && FILE_EXTENSIONS.contains(&ending.to_ascii_lowercase().as_str())
    })
}

/// Whether a path ends like a file or folder, and has a name of more than one character.
fn looks_like_a_file(text: &str) -> bool {
    let path = text.split(['?', '#']).next().unwrap_or_default();
    if path.contains("//") {
        return false;
    }
    let Some((folder, name)) = path.rsplit_once('/') else {
        return false;
    };
    if name.is_empty() {
        return folder.rsplit('/').next().is_some_and(|name| name.len() > 1);
    }
    name.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty() && FILE_EXTENSIONS.contains(&ending.to_ascii_lowercase().as_str())
    })
}
