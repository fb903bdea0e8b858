//! Detects the encoding of a body.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::memmem;

use super::kind::Kind;
use super::spans::is_blank;

/// The number of leading bytes in which a page may declare its encoding (HTML standard, "prescan a byte stream").
const HEAD_BYTES: usize = 1024;

/// The encoding of a body, and the length of its byte-order mark: from the mark, else `label`, else the document
/// itself; else UTF-8 if it is valid, else windows-1252.
pub fn encoding(body: &[u8], label: Option<&str>, kind: Kind) -> (&'static Encoding, usize) {
    Encoding::for_bom(body).unwrap_or_else(|| (declared_or_guessed(body, label, kind), 0))
}

/// The text of a body without its byte-order mark.
pub fn text<'b>(body: &'b [u8], encoding: &'static Encoding) -> Cow<'b, str> {
    // Fast path: the decoder produces the same text, but decodes non-ASCII text character by character.
    if encoding == UTF_8
        && let Ok(text) = simdutf8::basic::from_utf8(body)
    {
        return Cow::Borrowed(text);
    }
    encoding.decode_without_bom_handling(body).0
}

fn declared_or_guessed(body: &[u8], label: Option<&str>, kind: Kind) -> &'static Encoding {
    label
        .and_then(encoding_for_label)
        .or_else(|| declared(&body[..body.len().min(HEAD_BYTES)], kind))
        .unwrap_or_else(|| guess(body))
}

fn encoding_for_label(label: impl AsRef<[u8]>) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label.as_ref())
}

fn guess(body: &[u8]) -> &'static Encoding {
    match simdutf8::compat::from_utf8(body) {
        Err(error) if error.error_len().is_some() => WINDOWS_1252,
        // An incomplete character at the end is not an error.
        _ => UTF_8,
    }
}

fn declared(head: &[u8], kind: Kind) -> Option<&'static Encoding> {
    if head.starts_with(b"<\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<") {
        return Some(UTF_16BE);
    }
    let declared_encoding = match kind {
        Kind::Html => by_meta(head).or_else(|| by_declaration(head)),
        Kind::Xhtml | Kind::Feed | Kind::Xml => by_declaration(head).or_else(|| by_meta(head)),
        Kind::Css => encoding_for_label(
            head.strip_prefix(b"@charset \"")?
                .split(|&b| b == b'"')
                .next()?,
        ),
        Kind::Robots | Kind::UrlList | Kind::Text => None,
    };
    // A declaration that is readable as ASCII is not UTF-16.
    declared_encoding.map(|encoding| match encoding {
        _ if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        _ if encoding == X_USER_DEFINED => WINDOWS_1252,
        _ => encoding,
    })
}

/// By `<?xml version="1.0" encoding="…"?>`.
fn by_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    encoding_for_label(after(declaration, b"encoding")?)
}

/// By `<meta charset=…>`, or `<meta http-equiv=content-type content="text/html; charset=…">`, outside comments.
fn by_meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut rest = head;
    loop {
        rest = &rest[memchr::memchr(b'<', rest)?..];
        if rest.starts_with(b"<!--") {
            // `<!-->` is a comment, too: its end may overlap its beginning.
            rest = &rest[2..];
            rest = &rest[memmem::find(rest, b"-->")?..];
        } else if rest.len() > 5 && rest[..5].eq_ignore_ascii_case(b"<meta") {
            let end = memchr::memchr(b'>', rest).unwrap_or(rest.len());
            if let Some(encoding) = after(&rest[5..end], b"charset").and_then(encoding_for_label) {
                return Some(encoding);
            }
            rest = &rest[end..];
        } else {
            rest = &rest[1..];
        }
    }
}

/// The unquoted text after a word and `=`.
fn after<'h>(text: &'h [u8], word: &[u8]) -> Option<&'h [u8]> {
    let mut rest = text;
    loop {
        let at = rest
            .windows(word.len())
            .position(|each| each.eq_ignore_ascii_case(word))?;
        rest = &rest[at + word.len()..];
        let value = trim(rest);
        if let Some(value) = value.strip_prefix(b"=") {
            let value = trim(value);
            let quoted = matches!(value.first(), Some(b'"' | b'\''));
            let value = if quoted { &value[1..] } else { value };
            let end = value
                .iter()
                .position(|&b| is_blank(b) || matches!(b, b'"' | b'\'' | b';' | b'>' | b'/'));
            return Some(&value[..end.unwrap_or(value.len())]);
        }
    }
}

fn trim(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| is_blank(byte)).count();
    &text[blanks..]
}
