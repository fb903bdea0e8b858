//! From text to records: headers are read, blocks are passed over, and what is neither is told.

use std::collections::VecDeque;
use std::io::{Read, Result};

use memchr::memmem;
use sha1::{Digest, Sha1};

use super::arc;
use super::fields::{self, Fields};
use super::head::{
    Block, Head, MAX_HEADER, MAX_HTTP_HEAD, begins_warc_record, read_head, read_http, read_line,
};
use super::problem::Problem;
use super::record::{Details, Record, sha1_digest};
use super::text::{LOOK, Text};
use crate::formats::coding::{Body, Refusal, Undoing, Wanted};

/// The longest body that is made by undoing codings, in bytes: beyond it, it is a bomb.
const MAX_BODY: u64 = 1 << 32;

/// How many times as long as it is stored a body may become: what deflate can do at most, and a little more.
const MAX_RATIO: u64 = 1100;

/// How long it may become however short it is stored: Brotli packs a megabyte of nothing into some bytes.
const ALWAYS: u64 = 1 << 20;

/// One thing found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A record, perhaps a short one.
    Record(Box<Record>),
    /// Something that is not as it should be.
    Problem(Problem),
}

/// Reads an archive file from its beginning to its end, in bounded memory.
#[allow(clippy::struct_excessive_bools)] // two of them are what was asked for
pub struct Scanner<R> {
    text: Text<R>,
    has_begun: bool,
    is_arc: bool,
    with_digests: bool,
    with_bodies: bool,
    /// The last member that was told to be shared.
    shared: Option<u64>,
    found: VecDeque<Event>,
}

/// What is known of a payload when the head before it has been read.
#[derive(Default)]
struct Payload {
    has_bad_head: bool,
    /// What of it was read with the head.
    start: Vec<u8>,
    /// Whether nobody knows where it begins.
    is_lost: bool,
}

impl<R: Read> Scanner<R> {
    /// A scanner of a file. With `with_digests`, the SHA-1 of payloads that come without a digest is computed.
    pub fn new(source: R, with_digests: bool) -> Result<Self> {
        Ok(Self {
            text: Text::new(source, 0, begins_warc_record, None)?,
            has_begun: false,
            is_arc: false,
            with_digests,
            with_bodies: false,
            shared: None,
            found: VecDeque::new(),
        })
    }

    /// Also look at the bodies of pages, and tell their [`Details`].
    #[must_use]
    pub fn with_bodies(mut self) -> Self {
        self.with_bodies = true;
        self
    }

    /// The next record or problem, None at the end of the file. Fails only if the source does.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.found.pop_front() {
                return Ok(Some(event));
            }
            if !self.advance()? && self.found.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Read one record or one run of something else; false at the end.
    fn advance(&mut self) -> Result<bool> {
        self.skip_line_ends()?;
        if self.text.peek(1)?.is_empty() {
            let more = self.text.next_member()?;
            self.take_problems();
            if more && !self.has_begun {
                self.has_begun = true;
                self.is_arc = arc::begins_record(self.text.peek(arc::MAX_LINE)?);
                if self.is_arc {
                    self.text.set_begins_record(arc::begins_record);
                }
            }
            return Ok(more);
        }
        if self.at_record()? {
            self.read_record()?;
        } else {
            self.skip_garbage()?;
        }
        self.take_problems();
        Ok(true)
    }

    fn take_problems(&mut self) {
        self.found
            .extend(self.text.problems.drain(..).map(Event::Problem));
    }

    fn report(&mut self, kind: &'static str, offset: u64, message: impl Into<String>) {
        self.found
            .push_back(Event::Problem(Problem::new(kind, offset, message)));
    }

    fn at_record(&mut self) -> Result<bool> {
        let enough = if self.is_arc { arc::MAX_LINE } else { 6 };
        self.text.peek(enough)?;
        Ok(self.text.begins_record(self.text.seen()))
    }

    fn skip_line_ends(&mut self) -> Result<()> {
        loop {
            let seen = self.text.peek(1)?;
            let ends = seen
                .iter()
                .take_while(|&&byte| matches!(byte, b'\r' | b'\n'))
                .count();
            if ends == 0 {
                return Ok(());
            }
            self.text.consume(ends);
        }
    }

    /// Pass over what is no record, up to the next line that begins one or the end of the member.
    fn skip_garbage(&mut self) -> Result<()> {
        let from = self.text.offset();
        let len = self.skip_to_record()?;
        self.found
            .push_back(Event::Problem(Problem::garbage(from, len)));
        Ok(())
    }

    fn skip_to_record(&mut self) -> Result<u64> {
        let from = self.text.position();
        let is_arc = self.is_arc;
        loop {
            let seen = self.text.peek(LOOK)?;
            let is_last = seen.len() < LOOK;
            let found = if is_arc {
                find_arc_record(seen)
            } else {
                find_warc_record(seen)
            };
            // Keep what may begin a record whose line is not yet to be seen whole.
            let kept = if is_last {
                0
            } else if is_arc {
                arc::MAX_LINE + 1
            } else {
                6
            };
            let passed = found.unwrap_or(seen.len() - kept);
            self.text.consume(passed);
            if found.is_some() || is_last {
                return Ok(self.text.position() - from);
            }
        }
    }

    fn read_record(&mut self) -> Result<()> {
        let (offset, skip) = (self.text.offset(), self.text.skip());
        let is_alone = self.text.records == 0;
        self.text.records += 1;
        let mut head = Vec::new();
        let read = if self.is_arc {
            read_line(&mut self.text, &mut head)?
        } else {
            read_head(&mut self.text, &mut head)?
        };
        if read != Head::Whole {
            match read {
                Head::TooLong => {
                    self.report(
                        "header-too-long",
                        offset,
                        format!("a header has more than {MAX_HEADER} bytes"),
                    );
                    self.skip_to_record()?;
                }
                _ => self.report("short-header", offset, "a header has no end"),
            }
            return Ok(());
        }
        let Some((mut record, len, block_digest)) = self.understand(&head, offset) else {
            self.skip_line_ends()?;
            if !self.at_record()? {
                self.skip_to_record()?;
            }
            return Ok(());
        };
        (record.offset, record.skip) = (offset, skip);
        let mut block = Block {
            left: len,
            is_cut: false,
        };
        self.read_block(&mut record, &mut block, block_digest)?;
        if block.is_cut {
            record.is_short = true;
            let there = len - block.left;
            self.report(
                "short-block",
                offset,
                format!("expected a block of {len} bytes, found {there}"),
            );
        }
        record.length = self.stored_length(&block, offset, is_alone)?;
        self.found.push_back(Event::Record(Box::new(record)));
        Ok(())
    }

    /// The record that a header is of, the length of its block, and the block's digest.
    fn understand(&mut self, head: &[u8], offset: u64) -> Option<(Record, u64, Option<String>)> {
        if self.is_arc {
            let line = arc::read(head)?;
            let len = line.len;
            return Some((Record::of_arc(line), len, None));
        }
        let end = memchr::memchr(b'\n', head).unwrap_or(head.len());
        let fields = Fields::read(&head[end..]);
        if fields.bad_lines > 0 {
            let count = fields.bad_lines;
            self.report(
                "bad-header",
                offset,
                format!("expected `name: value`, found {count} other lines in a header"),
            );
        }
        let Some(len) = fields.number("Content-Length") else {
            self.report(
                "no-length",
                offset,
                "expected a Content-Length with a number, found none",
            );
            return None;
        };
        let record = Record::of_warc(&fields);
        if record.kind.is_empty() {
            self.report("no-type", offset, "expected a WARC-Type, found none");
        }
        Some((record, len, fields.text("WARC-Block-Digest")))
    }

    fn read_block(
        &mut self,
        record: &mut Record,
        block: &mut Block,
        block_digest: Option<String>,
    ) -> Result<()> {
        let mut payload = Payload::default();
        if self.with_bodies && matches!(record.kind.as_str(), "response" | "resource" | "revisit") {
            record.details = Some(Box::default());
        }
        if record.has_response_head() {
            payload = self.read_http_head(record, block)?;
        } else {
            record.mime = record
                .content_type
                .as_deref()
                .and_then(|value| fields::media_type(value.as_bytes()));
            if record.kind != "request" {
                record.digest = record.digest.take().or(block_digest);
            }
            if let Some(details) = &mut record.details {
                details.payload_type.clone_from(&record.content_type);
            }
        }
        let mut undoing = match &record.details {
            Some(details) if !payload.is_lost && record.kind != "revisit" => {
                let len = block.left + payload.start.len() as u64;
                let mut undoing = Undoing::new(&details.codings, wanted(len));
                undoing.feed(&payload.start);
                Some(undoing)
            }
            _ => None,
        };
        let computes = self.with_digests
            && !payload.is_lost
            && record.digest.is_none()
            && !matches!(record.kind.as_str(), "revisit" | "request" | "warcinfo");
        let mut hash = computes.then(|| Sha1::new_with_prefix(&payload.start));
        loop {
            let seen = block.seen(&mut self.text)?;
            if seen == 0 {
                break;
            }
            if let Some(hash) = &mut hash {
                hash.update(&self.text.seen()[..seen]);
            }
            if let Some(undoing) = &mut undoing {
                undoing.feed(&self.text.seen()[..seen]);
            }
            block.consume(&mut self.text, seen);
        }
        if block.is_cut {
            // What is wrong with it is that it is short, and the digest of half a payload is that of something else.
            return Ok(());
        }
        if let Some(hash) = hash {
            record.digest = Some(sha1_digest(&hash.finalize()));
        }
        if let (Some(undoing), Some(details)) = (undoing, &mut record.details) {
            let body = undoing.finish();
            add_body(details, &body);
            self.report_body(&body, record.offset);
        }
        if payload.has_bad_head && record.kind == "response" {
            self.report(
                "bad-http",
                record.offset,
                "expected an HTTP response with a status, found something else",
            );
        }
        Ok(())
    }

    fn report_body(&mut self, body: &Body, offset: u64) {
        if body.is_broken {
            let message = "a body breaks off in its transfer or content coding";
            self.report("cut-coding", offset, message);
        }
        match body.refusal {
            Some(Refusal::Coding) => {
                let message =
                    "a body is in a coding that cannot be undone: it is taken as it is stored";
                self.report("bad-coding", offset, message);
            }
            Some(Refusal::TooLong) => {
                let message = "a body is too long without its coding: it is taken as it is stored";
                self.report("coding-too-long", offset, message);
            }
            None => {}
        }
    }

    /// Read the head of the HTTP message in a block.
    fn read_http_head(&mut self, record: &mut Record, block: &mut Block) -> Result<Payload> {
        const MARK: &[u8] = b"HTTP/";
        let mut head = Vec::new();
        while head.len() < MARK.len() {
            let seen = block.seen(&mut self.text)?.min(MARK.len() - head.len());
            if seen == 0 {
                break;
            }
            head.extend_from_slice(&self.text.seen()[..seen]);
            block.consume(&mut self.text, seen);
        }
        if head != MARK {
            return Ok(Payload {
                has_bad_head: !head.is_empty(),
                start: head,
                is_lost: false,
            });
        }
        let is_lost = read_http(&mut self.text, block, &mut head)? == Head::TooLong;
        if is_lost {
            let message = format!("an HTTP head has more than {MAX_HTTP_HEAD} bytes");
            self.report("header-too-long", record.offset, message);
        }
        Ok(Payload {
            has_bad_head: !record.add_http(&head),
            start: Vec::new(),
            is_lost,
        })
    }

    /// The record's length as stored, when its block has been passed.
    fn stored_length(&mut self, block: &Block, offset: u64, is_alone: bool) -> Result<Option<u64>> {
        if self.text.is_plain() {
            return Ok(Some(self.text.offset() - offset));
        }
        if !block.is_cut {
            self.skip_line_ends()?;
            if !self.text.peek(1)?.is_empty() && !self.at_record()? {
                self.skip_garbage()?;
            }
        }
        if is_alone && (block.is_cut || self.text.peek(1)?.is_empty()) {
            return Ok(self.text.end().map(|end| end - offset));
        }
        // A record that was alone where it began shares the member in which it ended.
        let member = if is_alone { self.text.offset() } else { offset };
        if self.shared.replace(member) != Some(member) {
            self.report(
                "shared-member",
                member,
                "a compressed member holds more than one record",
            );
        }
        Ok(None)
    }
}

/// What is wanted of a body that has so many bytes as it is stored.
fn wanted(len: u64) -> Wanted {
    Wanted {
        with_digest: true,
        kept: 0,
        limit: len
            .saturating_mul(MAX_RATIO)
            .saturating_add(ALWAYS)
            .min(MAX_BODY)
            .max(len),
    }
}

fn add_body(details: &mut Details, body: &Body) {
    details.body_digest = body.digest;
    details.body_len = body.len;
    details.is_broken = body.is_broken;
}

fn find_warc_record(text: &[u8]) -> Option<usize> {
    memmem::find_iter(text, b"\nWARC/")
        .map(|at| at + 1)
        .find(|&at| begins_warc_record(&text[at..]))
}

fn find_arc_record(text: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', text)
        .map(|at| at + 1)
        .find(|&at| arc::begins_record(&text[at..]))
}
