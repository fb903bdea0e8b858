//! Finds the end of a record's header, and how much of the text is its block.

use std::io::{Read, Result};

use super::arc;
use super::fields;
use super::text::Text;

/// The maximum length of a record's header. Our limit, with room for the longest URL that has a key, 2 MiB.
pub const MAX_HEADER: usize = 3 << 20;

/// The maximum length of an HTTP header. Our limit; Chromium and Firefox reject headers of more than 256 KiB to 384
/// KiB.
pub const MAX_HTTP_HEAD: usize = 1 << 20;

/// Bytes that are searched at once for the end of a header: more than most headers have, and few compared with their
/// bodies, which need not be copied to find it.
const HEAD_STEP: usize = 1 << 10;

pub fn begins_warc_record(text: &[u8]) -> bool {
    text.starts_with(b"WARC/") && text.get(5).is_some_and(u8::is_ascii_digit)
}

/// The unread part of a record's block.
pub struct Block {
    pub left: u64,
    pub is_cut: bool,
}

impl Block {
    /// How many bytes of the available text belong to the block; 0 at its end, or where it is truncated.
    pub fn available<R: Read>(&mut self, text: &mut Text<R>) -> Result<usize> {
        if self.left == 0 || self.is_cut {
            return Ok(0);
        }
        if !text.more()? {
            self.is_cut = true;
            return Ok(0);
        }
        Ok(text
            .available()
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX)))
    }

    pub fn consume<R: Read>(&mut self, text: &mut Text<R>, count: usize) {
        text.consume(count);
        self.left -= count as u64;
    }
}

/// The result of reading a header.
#[derive(PartialEq, Eq)]
pub enum HeadResult {
    Whole,
    Cut,
    TooLong,
}

/// Reads a header up to its empty line.
pub fn read_head<R: Read>(text: &mut Text<R>, head: &mut Vec<u8>) -> Result<HeadResult> {
    let mut block = Block {
        left: u64::MAX,
        is_cut: false,
    };
    read_lines(text, &mut block, head, MAX_HEADER)
}

/// Reads an HTTP header up to its empty line, or to the end of the block.
pub fn read_http<R: Read>(
    text: &mut Text<R>,
    block: &mut Block,
    head: &mut Vec<u8>,
) -> Result<HeadResult> {
    read_lines(text, block, head, MAX_HTTP_HEAD)
}

fn read_lines<R: Read>(
    text: &mut Text<R>,
    block: &mut Block,
    head: &mut Vec<u8>,
    limit: usize,
) -> Result<HeadResult> {
    while head.len() <= limit {
        let available = block
            .available(text)?
            .min(limit + 1 - head.len())
            .min(HEAD_STEP);
        if available == 0 {
            return Ok(HeadResult::Cut);
        }
        let before = head.len();
        head.extend_from_slice(&text.available()[..available]);
        if let Some(end) = fields::end_of_head(head, before) {
            head.truncate(end);
            block.consume(text, end - before);
            return Ok(HeadResult::Whole);
        }
        block.consume(text, available);
    }
    Ok(HeadResult::TooLong)
}

/// Reads the line that begins an ARC record, which must be present.
pub fn read_line<R: Read>(text: &mut Text<R>, line: &mut Vec<u8>) -> Result<HeadResult> {
    let available = text.peek(arc::MAX_LINE)?;
    let Some(end) = memchr::memchr(b'\n', available) else {
        return Ok(HeadResult::Cut);
    };
    line.extend_from_slice(&available[..end]);
    text.consume(end + 1);
    Ok(HeadResult::Whole)
}
