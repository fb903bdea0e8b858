//! From text to records: parses headers, skips blocks, and reports everything else.

mod block;

use std::collections::VecDeque;
use std::io::{Read, Result};

use memchr::memmem;

use super::arc;
use super::fields::Fields;
use super::head::{Block, HeadResult, MAX_HEADER, begins_warc_record, read_head, read_line};
use super::problem::Problem;
use super::record::Record;
use super::text::{PEEK_BYTES, Text};

/// A record or problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A record, possibly a short one.
    Record(Box<Record>),
    /// A problem.
    Problem(Problem),
}

/// Reads an archive file sequentially, in bounded memory.
#[allow(clippy::struct_excessive_bools)] // two of them are options
pub struct Scanner<R> {
    text: Text<R>,
    has_begun: bool,
    is_arc: bool,
    with_digests: bool,
    with_bodies: bool,
    /// The last member that was reported as shared.
    shared: Option<u64>,
    events: VecDeque<Event>,
}

impl<R: Read> Scanner<R> {
    /// Creates a scanner. With `with_digests`, the SHA-1 of payloads without a digest is computed.
    pub fn new(source: R, with_digests: bool) -> Result<Self> {
        Ok(Self {
            text: Text::new(source, 0, begins_warc_record, None)?,
            has_begun: false,
            is_arc: false,
            with_digests,
            with_bodies: false,
            shared: None,
            events: VecDeque::new(),
        })
    }

    /// Also reads the bodies of pages, and fills in their [`Details`](super::record::Details).
    #[must_use]
    pub fn with_bodies(mut self) -> Self {
        self.with_bodies = true;
        self
    }

    /// The next record or problem, None at the end of the file. Fails only if the source fails.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if !self.advance()? && self.events.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Reads one record or one run of garbage; false at the end.
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
        self.events
            .extend(self.text.problems.drain(..).map(Event::Problem));
    }

    fn report(&mut self, kind: &'static str, offset: u64, message: impl Into<String>) {
        self.events
            .push_back(Event::Problem(Problem::new(kind, offset, message)));
    }

    fn at_record(&mut self) -> Result<bool> {
        let enough = if self.is_arc { arc::MAX_LINE } else { 6 };
        self.text.peek(enough)?;
        Ok(self.text.begins_record(self.text.available()))
    }

    fn skip_line_ends(&mut self) -> Result<()> {
        loop {
            let available = self.text.peek(1)?;
            let ends = available
                .iter()
                .take_while(|&&byte| matches!(byte, b'\r' | b'\n'))
                .count();
            if ends == 0 {
                return Ok(());
            }
            self.text.consume(ends);
        }
    }

    /// Skips garbage, up to the next line that begins a record or the end of the member.
    fn skip_garbage(&mut self) -> Result<()> {
        let from = self.text.offset();
        let len = self.skip_to_record()?;
        self.events
            .push_back(Event::Problem(Problem::garbage(from, len)));
        Ok(())
    }

    fn skip_to_record(&mut self) -> Result<u64> {
        let from = self.text.position();
        let is_arc = self.is_arc;
        loop {
            let available = self.text.peek(PEEK_BYTES)?;
            let is_last = available.len() < PEEK_BYTES;
            let record_start = if is_arc {
                find_arc_record(available)
            } else {
                find_warc_record(available)
            };
            // Retain bytes that may be the incomplete first line of a record.
            let retained = if is_last {
                0
            } else if is_arc {
                arc::MAX_LINE + 1
            } else {
                6
            };
            let skipped = record_start.unwrap_or(available.len() - retained);
            self.text.consume(skipped);
            if record_start.is_some() || is_last {
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
        if read != HeadResult::Whole {
            match read {
                HeadResult::TooLong => {
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
        let Some((mut record, len, block_digest)) = self.parse_header(&head, offset) else {
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
        self.events.push_back(Event::Record(Box::new(record)));
        Ok(())
    }

    /// The record that a header describes, the length of its block, and the block's digest.
    fn parse_header(&mut self, head: &[u8], offset: u64) -> Option<(Record, u64, Option<String>)> {
        if self.is_arc {
            let line = arc::parse_line(head)?;
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

    /// The stored length of the record, after its block was skipped.
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
