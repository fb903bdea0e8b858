//! The metadata of a record.

use super::arc::Line;
use super::fields::{self, Fields};
use crate::warc::coding::codings_of;

/// One record of an archive file. Unknown values are None.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its offset in a plain file, that of its member in a compressed one.
    pub offset: u64,
    /// The length of the member's text before it.
    pub skip: u64,
    /// The stored length in bytes: of the member, or in plain files up to the end of the block. None if the member has
    /// more than this record, or its end is not known.
    pub length: Option<u64>,
    /// `response`, `revisit`, `warcinfo` …, in lower case. ARC records are responses, except the first.
    pub kind: String,
    /// The URL, without brackets, escaped for use in an index.
    pub uri: Option<String>,
    /// The date, verbatim: ISO 8601 in WARCs, digits in ARCs, mostly 14.
    pub date: Option<String>,
    /// Whether it is from an ARC.
    pub is_arc: bool,
    /// The media type of the block, with parameters.
    pub content_type: Option<String>,
    /// The digest of the payload: from the header, else computed if requested.
    pub digest: Option<String>,
    /// The status of the HTTP response.
    pub status: Option<u16>,
    /// The media type of the payload in lower case, without parameters.
    pub mime: Option<String>,
    /// The redirect target of the HTTP response.
    pub location: Option<String>,
    /// The URL of the record that a revisit refers to.
    pub refers_to_uri: Option<String>,
    /// The date of the record that a revisit refers to.
    pub refers_to_date: Option<String>,
    /// The record's id.
    pub id: Option<String>,
    /// Whether the writer marked it as truncated.
    pub is_truncated: bool,
    /// Whether the block is shorter than the declared length.
    pub is_short: bool,
    /// Details of pages and their assets, if requested.
    pub details: Option<Box<Details>>,
}

/// Details of a page that require its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The SHA-1 of the decoded body, or of the encoded one if it cannot be decoded; None if the body is incomplete.
    pub body_digest: Option<[u8; 20]>,
    /// The length of that body in bytes.
    pub body_len: u64,
    /// Whether the body is truncated within its codings.
    pub is_broken: bool,
    /// The `Last-Modified` header.
    pub last_modified: Option<String>,
    /// The media type of the payload with its parameters.
    pub payload_type: Option<String>,
    /// The codings of the body, in the order in which they are removed.
    pub(super) codings: Vec<String>,
}

impl Record {
    pub(super) fn of_warc(fields: &Fields) -> Self {
        let escaped_uri = |name| {
            let found = fields.get(name).map(fields::escaped_uri);
            found.filter(|text| !text.is_empty())
        };
        Self {
            kind: fields
                .text("WARC-Type")
                .unwrap_or_default()
                .to_ascii_lowercase(),
            uri: escaped_uri("WARC-Target-URI"),
            date: fields.text("WARC-Date"),
            content_type: fields.text("Content-Type"),
            digest: fields.text("WARC-Payload-Digest"),
            refers_to_uri: escaped_uri("WARC-Refers-To-Target-URI"),
            refers_to_date: fields.text("WARC-Refers-To-Date"),
            id: escaped_uri("WARC-Record-ID"),
            is_truncated: fields.get("WARC-Truncated").is_some(),
            ..Self::default()
        }
    }

    pub(super) fn of_arc(line: Line) -> Self {
        let is_first = line.uri.starts_with("filedesc:");
        Self {
            kind: if is_first { "warcinfo" } else { "response" }.to_owned(),
            uri: Some(line.uri),
            date: Some(line.date),
            is_arc: true,
            content_type: Some(line.media_type),
            ..Self::default()
        }
    }

    /// Whether the block is an HTTP response with its head.
    pub(super) fn has_response_head(&self) -> bool {
        let of_web = |uri: &String| {
            let scheme = uri.as_bytes().first_chunk::<5>();
            scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"http:"))
                || uri
                    .as_bytes()
                    .get(..6)
                    .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https:"))
        };
        match self.kind.as_str() {
            "response" | "revisit" => self.uri.as_ref().is_some_and(of_web),
            _ => false,
        }
    }

    /// Sets the fields from the header of an HTTP response, including `details` if there are any.
    pub(super) fn add_http(&mut self, head: &[u8]) -> bool {
        let end = memchr::memchr(b'\n', head).unwrap_or(head.len());
        let mut words = head[..end]
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let is_http = words.next().is_some_and(|word| word.starts_with(b"HTTP/"));
        if is_http {
            let status = words.next().filter(|word| word.len() == 3);
            self.status = status
                .and_then(fields::number)
                .and_then(|status| status.try_into().ok());
            let fields = Fields::read(&head[end..]);
            self.mime = fields.get("Content-Type").and_then(fields::media_type);
            self.location = fields.get("Location").map(fields::escaped_uri);
            if let Some(details) = &mut self.details {
                details.last_modified = fields.text("Last-Modified");
                details.payload_type = fields.text("Content-Type");
                details.codings = codings_of(|| fields.pairs());
            }
        }
        is_http && self.status.is_some()
    }
}

/// The digest of a payload in the format of WARCs.
pub(super) fn sha1_digest(hash: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::from("sha1:");
    let (mut bits, mut held) = (0_u32, 0_u32);
    for &byte in hash {
        held = held << 8 | u32::from(byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(LETTERS[(held >> bits & 31) as usize]));
        }
        held &= 31;
    }
    text
}
