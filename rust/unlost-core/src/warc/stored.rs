//! One record with its body, as read for replay.

use std::io::{Read, Result, Seek, SeekFrom};

use super::arc;
use super::fields::{self, Fields};
use super::head::{Block, HeadResult, begins_warc_record, read_head, read_http, read_line};
use super::problem::Problem;
use super::record::Record;
use super::text::Text;
use super::window::Window;
use super::zstd;
use crate::warc::coding::{Body, BodyDecoder, BodyOptions, codings_of};

/// A record whose header was read and whose body follows.
pub struct StoredRecord<R> {
    text: Text<R>,
    block: Block,
    offset: u64,
    /// Whether its HTTP header, if it has one, is that of a web response.
    is_response: bool,
    /// The fields of its header in order; for an ARC, the corresponding WARC fields.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The HTTP header with its empty line, if the block is an HTTP message.
    pub http_head: Option<Vec<u8>>,
}

impl<R: Read + Seek> StoredRecord<R> {
    /// Opens the record at an offset, after `skip` bytes of its member's text; None if there is none.
    pub fn open(mut source: R, offset: u64, skip: u64) -> Result<Option<Self>> {
        source.seek(SeekFrom::Start(0))?;
        let dictionary = zstd::read_dictionary(&mut Window::new(&mut source, 0))?;
        source.seek(SeekFrom::Start(offset))?;
        let mut text = Text::new(source, offset, begins_warc_record, Some(&dictionary))?;
        if !text.next_member()? || text.offset() != offset || !skip_text(&mut text, skip)? {
            return Ok(None);
        }
        while matches!(text.peek(1)?, [b'\r' | b'\n', ..]) {
            text.consume(1);
        }
        let mut head = Vec::new();
        if begins_warc_record(text.peek(6)?) {
            if read_head(&mut text, &mut head)? != HeadResult::Whole {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', &head).unwrap_or(head.len());
            let fields = Fields::read(&head[end..]);
            let mut record = Record::of_warc(&fields);
            record.offset = offset;
            return Self::with_http(text, fields.into_pairs(), &record);
        }
        text.set_begins_record(arc::begins_record);
        read_line(&mut text, &mut head)?;
        let Some(line) = arc::parse_line(&head) else {
            return Ok(None);
        };
        let fields = [
            ("WARC-Target-URI", line.uri.clone()),
            ("WARC-Date", line.date.clone()),
            ("Content-Type", line.media_type.clone()),
            ("Content-Length", line.len.to_string()),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.into_bytes()));
        let mut record = Record::of_arc(line);
        record.offset = offset;
        Self::with_http(text, fields.into(), &record)
    }

    fn with_http(
        mut text: Text<R>,
        fields: Vec<(String, Vec<u8>)>,
        record: &Record,
    ) -> Result<Option<Self>> {
        let length = fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("Content-Length"))
            .and_then(|(_, value)| fields::number(value));
        let Some(left) = length else {
            return Ok(None);
        };
        let mut block = Block {
            left,
            is_cut: false,
        };
        let is_http = record.has_response_head()
            || record
                .content_type
                .as_deref()
                .is_some_and(|value| value.starts_with("application/http"));
        let mut http_head = None;
        if is_http && block.available(&mut text)? > 0 {
            let is_response = text.peek(5)?.starts_with(b"HTTP/");
            if is_response || !record.has_response_head() {
                let head = http_head.insert(Vec::new());
                read_http(&mut text, &mut block, head)?;
            }
        }
        Ok(Some(Self {
            offset: record.offset,
            is_response: record.has_response_head(),
            text,
            block,
            fields,
            http_head,
        }))
    }

    /// The next bytes of the body, at most `count`; none at its end, or where it is truncated.
    pub fn read(&mut self, count: usize) -> Result<Vec<u8>> {
        let available = self.block.available(&mut self.text)?.min(count);
        let bytes = self.text.available()[..available].to_vec();
        self.block.consume(&mut self.text, available);
        Ok(bytes)
    }

    /// The rest of the body, decoded if possible: its first `max_bytes` bytes, and whether there are more.
    pub fn read_decoded(&mut self, max_bytes: usize) -> Result<(Body, bool)> {
        let body_options = BodyOptions {
            with_digest: false,
            head: max_bytes,
            limit: max_bytes as u64,
        };
        let head = self.http_head.as_deref().unwrap_or_default();
        let (codings, start) = if self.is_response {
            let end = memchr::memchr(b'\n', head).unwrap_or(head.len());
            let fields = Fields::read(&head[end..]);
            (codings_of(|| fields.pairs()), &[][..])
        } else {
            (Vec::new(), head) // bytes parsed as a header belong to the body
        };
        let mut body_decoder = BodyDecoder::new(&codings, body_options);
        body_decoder.feed(start);
        while !body_decoder.has_enough() {
            let available = self.block.available(&mut self.text)?;
            if available == 0 {
                break;
            }
            body_decoder.feed(&self.text.available()[..available]);
            self.block.consume(&mut self.text, available);
        }
        Ok(body_decoder.finish_with_head())
    }

    /// Its offset in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of missing bytes of the block, after it was read to its end.
    pub fn missing(&self) -> u64 {
        if self.block.is_cut {
            self.block.left
        } else {
            0
        }
    }

    /// The problems found so far.
    pub fn problems(&self) -> &[Problem] {
        &self.text.problems
    }
}

/// Skips the text before a record in its member.
fn skip_text<R: Read>(text: &mut Text<R>, skip: u64) -> Result<bool> {
    let mut left = skip;
    while left > 0 {
        let available = text
            .peek(1)?
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        if available == 0 {
            return Ok(false);
        }
        text.consume(available);
        left -= available as u64;
    }
    Ok(true)
}
