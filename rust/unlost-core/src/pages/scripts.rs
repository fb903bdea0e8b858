//! Addresses in the strings of scripts: nobody knows what a script does with them, but some of them it asks for.

use url::Url;

use super::found::Bases;
use super::references::References;
use super::{MAX_BODY_BYTES, Use};

/// Candidates of one script: more are data, not a program.
const MAX_CANDIDATES: usize = 10_000;

/// Names of things, not addresses, begin with these hosts, unless they are the site itself.
const NAMES: [&str; 6] = [
    "www.w3.org",
    "schema.org",
    "ogp.me",
    "purl.org",
    "xmlns.com",
    "ns.adobe.com",
];

/// What files of websites end in.
const ENDINGS: [&str; 58] = [
    "html", "htm", "shtml", "xhtml", "php", "php3", "asp", "aspx", "jsp", "cgi", "pl", "cfm",
    "css", "js", "mjs", "json", "xml", "rss", "atom", "txt", "pdf", "png", "jpg", "jpeg", "gif",
    "webp", "svg", "ico", "bmp", "avif", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4", "m4a",
    "ogg", "ogv", "webm", "wav", "swf", "flv", "mov", "avi", "mpg", "mpeg", "doc", "docx", "xls",
    "xlsx", "ppt", "pptx", "rtf", "zip", "gz", "tar",
];

/// Addresses of http and https that whole strings of a script are, in the order of appearance, each once: those with a host,
/// of those without one what begins with `/` and ends like a file or a folder, and of all others what ends like a file. Parts
/// that are put together with others by `+` are none. `base` is the address of the page that the script runs in.
#[must_use]
pub fn candidates(body: &[u8], base: &str) -> Vec<String> {
    let body = &body[..body.len().min(MAX_BODY_BYTES)];
    let own = Url::parse(base).ok();
    let host = own.as_ref().and_then(Url::host_str).unwrap_or_default();
    let mut references = References::default();
    for start in memchr::memchr3_iter(b'"', b'\'', b'`', body) {
        if references.len() == MAX_CANDIDATES {
            break;
        }
        if let Some(text) = string(body, start)
            && is_candidate(&text, host)
        {
            references.add(&text, Use::Page);
        }
    }
    let resolved = Bases::of(&references, base, encoding_rs::UTF_8).resolved(&references);
    resolved
        .links
        .iter()
        .map(|(uri, _)| uri.to_owned())
        .collect()
}

/// The string that begins here, if all of it may be an address and it stands alone.
fn string(body: &[u8], start: usize) -> Option<String> {
    let quote = body[start];
    // Only what begins like an address is read on.
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
            // As JSON often has it.
            b'\\' if body.get(at + 1) == Some(&b'/') => {}
            byte if byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&*+,;=%".contains(&byte) => {
                text.push(char::from(byte));
            }
            _ => return None,
        }
        at += 1;
    }
    (!is_joined(body[at + 1..].iter())).then_some(text)
}

/// Whether a `+` is next.
fn is_joined<'b>(mut bytes: impl Iterator<Item = &'b u8>) -> bool {
    // Who writes more blanks than this before it, does not write programs.
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
    host == own_host || (is_host(&host) && !NAMES.contains(&host.as_str()))
}

fn is_host(host: &str) -> bool {
    host.split('.').count() > 1
        && host
            .split('.')
            .all(|label| label.bytes().any(|byte| byte.is_ascii_alphanumeric()))
}

/// Whether it is the name of a file, perhaps in folders, without a root.
fn is_file_nearby(text: &str) -> bool {
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    !path.contains([':', '*']) && !path.contains("//") && is_file(name)
}

/// Whether a name ends as files do, and has something before that.
fn is_file(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, ending)| {
        stem.bytes().any(|byte| byte.is_ascii_alphanumeric())
            && ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
    })
}

/// Whether a path ends as files and folders do, and has a name that is longer than a letter.
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
        !stem.is_empty() && ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
    })
}
