//! Detects bodies that are not text, whatever their declared type.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use super::kind::Kind;

/// Signatures of files that servers send as text by default. From the MIME Sniffing standard and the descriptions of
/// the formats.
const SIGNATURES: [&[u8]; 19] = [
    b"%PDF-",
    b"%!PS-Adobe-",
    b"\x89PNG\r\n\x1a\n",
    b"GIF87a",
    b"GIF89a",
    b"\xff\xd8\xff",
    b"RIFF",
    b"II*\0",
    b"MM\0*",
    b"\0\0\x01\0",
    b"PK\x03\x04",
    b"Rar!\x1a\x07",
    b"\x1f\x8b",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"ID3",
    b"OggS",
    b"FWS",
    b"CWS",
    b"wOF",
];

/// The number of leading bytes that are inspected: the resource header of the MIME Sniffing standard, 5.2.
const HEAD_BYTES: usize = 1445;

/// In random binary data, one byte in ten is such a control character (26 of 256 values). Some old texts contain one or
/// two, such as the SUB at the end of DOS files.
const CONTROLS_ALLOWED: usize = 2;
const BYTES_PER_CONTROL: usize = 50;

/// Whether a body contains no text. Markup is parsed even if it contains control characters.
pub fn is_binary(body: &[u8], label: Option<&str>, kind: Kind) -> bool {
    if SIGNATURES.iter().any(|start| is_signed(body, start)) {
        return true;
    }
    if kind != Kind::Text || Encoding::for_bom(body).is_some() {
        return false;
    }
    let label_encoding = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    if label_encoding.is_some_and(|encoding| encoding == UTF_16LE || encoding == UTF_16BE) {
        return false;
    }
    let head = &body[..body.len().min(HEAD_BYTES)];
    let controls = head.iter().filter(|&&byte| is_control(byte)).count();
    memchr::memchr(0, head).is_some()
        || (controls > CONTROLS_ALLOWED && controls * BYTES_PER_CONTROL > head.len())
}

fn is_signed(body: &[u8], start: &[u8]) -> bool {
    // A text may begin like a signature, such as `ID3`; a file of that format contains a control byte soon after it.
    body.starts_with(start)
        && (!start.iter().all(u8::is_ascii_alphanumeric)
            || start.starts_with(b"GIF")
            || memchr::memchr(0, &body[..body.len().min(HEAD_BYTES)]).is_some())
}

/// Characters that are neither printable nor white space. Excludes escapes, which occur in Japanese text, and
/// backspaces, which occur in manual pages.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=7 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)
}
