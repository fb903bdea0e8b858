//! The text of an archive file, member by member: a plain file is one member, compressed files have many.
//!
//! After damage, reading continues at the next member whose text begins a record.

use std::io::{Read, Result};

use memchr::memmem;

use super::gzip::{Damage, Inflater, Start, Step};
use super::problem::Problem;
use super::window::{MAX_STEP_BACK, Window};
use super::zstd::{self, FrameDecoder};

/// Bytes of text per step, and the maximum that can be inspected at once.
pub const PEEK_BYTES: usize = 1 << 16;

/// Bytes of text that decide whether a member begins a record, enough for the first line of nearly all ARC records.
const PROBE_BYTES: usize = 4096;

enum Coding {
    Plain,
    Gzip(Box<Inflater>),
    Zstd(Box<FrameDecoder>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between members.
    Between,
    /// In a member, with more to come.
    Open,
    /// In a member without further input; decoded text may be left.
    Over(Option<Damage>),
    /// After the last member.
    End,
}

/// The text of a file. Problems with members are collected in `problems`.
pub struct Text<R> {
    window: Window<R>,
    coding: Coding,
    begins_record: fn(&[u8]) -> bool,
    state: State,
    /// Decompressed text; that of a plain file is in the window.
    decoded: Vec<u8>,
    /// The output buffer of a decompression step.
    step_buffer: Vec<u8>,
    next: usize,
    member: u64,
    position: u64,
    end: Option<u64>,
    end_before: Option<u64>,
    stepped_back: u64,
    /// The number of records that this member contains parts of, so far.
    pub records: u64,
    /// The problems since the last call.
    pub problems: Vec<Problem>,
}

impl<R: Read> Text<R> {
    /// The text of a file; `source` provides the bytes from `offset` on. `begins_record` detects members that begin a
    /// record, which is where reading resumes after damage. `dictionary` is that of the file if it was read before;
    /// otherwise the source must begin with it.
    pub fn new(
        source: R,
        offset: u64,
        begins_record: fn(&[u8]) -> bool,
        dictionary: Option<&[u8]>,
    ) -> Result<Self> {
        let mut window = Window::new(source, offset);
        let first = window.peek(8)?;
        let coding = if first.starts_with(&[0x1f, 0x8b]) {
            Coding::Gzip(Box::new(Inflater::new()))
        } else if first.starts_with(&zstd::MAGIC) || zstd::skippable(first).is_some() {
            let read = match dictionary {
                Some(_) => Vec::new(),
                None => zstd::read_dictionary(&mut window)?,
            };
            Coding::Zstd(Box::new(FrameDecoder::new(
                dictionary.unwrap_or(&read),
                zstd::WINDOW_LOG,
            )?))
        } else {
            Coding::Plain
        };
        let step_buffer = if matches!(coding, Coding::Plain) {
            0
        } else {
            PEEK_BYTES
        };
        Ok(Self {
            window,
            coding,
            begins_record,
            state: State::Between,
            decoded: Vec::with_capacity(2 * step_buffer),
            step_buffer: vec![0; step_buffer],
            next: 0,
            member: offset,
            position: 0,
            end: None,
            end_before: None,
            stepped_back: 0,
            records: 0,
            problems: Vec::new(),
        })
    }

    pub fn is_plain(&self) -> bool {
        matches!(self.coding, Coding::Plain)
    }

    /// The offset in the file of a record that begins here: its own, or that of its member.
    pub fn offset(&self) -> u64 {
        if self.is_plain() {
            self.member + self.position
        } else {
            self.member
        }
    }

    /// The length of the member's text before [`Text::offset`]; 0 in plain files.
    pub fn skip(&self) -> u64 {
        if self.is_plain() { 0 } else { self.position }
    }

    /// The position in the member's text.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The offset in the file where the text so far ends: the end of this member, or at its very beginning that of the
    /// previous one. None if it is not known.
    pub fn end(&self) -> Option<u64> {
        if self.position == 0 {
            self.end_before
        } else {
            self.end
        }
    }

    pub fn begins_record(&self, text: &[u8]) -> bool {
        (self.begins_record)(text)
    }

    /// Changes how records are detected.
    pub fn set_begins_record(&mut self, begins_record: fn(&[u8]) -> bool) {
        self.begins_record = begins_record;
    }

    /// Text that was decompressed and not consumed.
    pub fn available(&self) -> &[u8] {
        if self.is_plain() {
            // Plain text needs no buffer: it is in the window.
            match self.state {
                State::Open | State::Over(_) => self.window.available(),
                State::Between | State::End => &[],
            }
        } else {
            &self.decoded[self.next..]
        }
    }

    /// The next text of this member: at least `count` bytes (at most [`PEEK_BYTES`]) unless it ends before.
    pub fn peek(&mut self, count: usize) -> Result<&[u8]> {
        while self.available().len() < count && self.state == State::Open {
            self.decompress(count)?;
        }
        Ok(self.available())
    }

    /// Skips available text.
    pub fn consume(&mut self, count: usize) {
        if self.is_plain() {
            self.window.consume(count);
        } else {
            self.next += count;
        }
        self.position += count as u64;
    }

    /// Whether the current record continues: in this member, or in the next one.
    ///
    /// It does not continue after damage, nor in a member that begins a record of its own.
    pub fn more(&mut self) -> Result<bool> {
        loop {
            if !self.peek(1)?.is_empty() {
                return Ok(true);
            }
            if self.state != State::Over(None) || self.is_plain() {
                return Ok(false);
            }
            let problem_count = self.problems.len();
            self.next_member()?;
            if self.state == State::End || self.problems.len() > problem_count {
                return Ok(false);
            }
            let begins_record = self.begins_record;
            if begins_record(self.peek(PROBE_BYTES)?) {
                return Ok(false);
            }
            // The record that continues here counts for this member.
            self.records = 1;
        }
    }

    /// Moves to the next member; false if there is none.
    pub fn next_member(&mut self) -> Result<bool> {
        self.decoded.clear();
        self.next = 0;
        self.position = 0;
        self.end_before = self.end;
        self.records = 0;
        if let State::Over(Some(_)) = self.state {
            self.go_back();
            self.find_next_member()?;
        }
        loop {
            if self.window.peek(1)?.is_empty() {
                if self.window.is_broken() && self.state != State::End {
                    let here = self.window.offset();
                    self.problems.push(Problem::new(
                        "corrupt-member",
                        here,
                        "the rest of the file cannot be decompressed",
                    ));
                }
                self.state = State::End;
                return Ok(false);
            }
            self.member = self.window.offset();
            self.window.retain_from(self.member);
            let start = match &mut self.coding {
                Coding::Plain => Start::Header(0),
                Coding::Gzip(inflater) => inflater.begin(&mut self.window)?,
                Coding::Zstd(unpacker) => unpacker.begin(&mut self.window)?,
            };
            match start {
                Start::Header(len) => {
                    // Skippable frames may have come before.
                    self.member = self.window.offset() - len as u64;
                    self.state = State::Open;
                    return Ok(true);
                }
                Start::Truncated => {
                    let rest = self.window.peek(1)?.len();
                    self.window.consume(rest);
                    self.report(Damage::Truncated);
                }
                // Skippable frames may have been the last ones.
                Start::Other if self.window.peek(1)?.is_empty() => {}
                Start::Other => {
                    let from = self.window.offset();
                    self.find_next_member()?;
                    let len = self.window.offset() - from;
                    self.problems.push(Problem::garbage(from, len));
                }
            }
        }
    }

    /// Decompresses more text; of a plain file as much as requested.
    fn decompress(&mut self, count: usize) -> Result<()> {
        if self.next > 0 {
            self.decoded.drain(..self.next);
            self.next = 0;
        }
        let step = match &mut self.coding {
            Coding::Gzip(inflater) => inflater.step(&mut self.window, &mut self.step_buffer)?,
            Coding::Zstd(unpacker) => unpacker.step(&mut self.window, &mut self.step_buffer)?,
            Coding::Plain => {
                // A plain file is never reread: consumed text need not be retained.
                self.window.retain_from(self.window.offset());
                if self.window.peek(count)?.len() < count {
                    self.close(None);
                }
                return Ok(());
            }
        };
        match step {
            // Through a separate buffer: spare capacity after the decoded text would have to be cleared for each step.
            Step::Text(written) => self.decoded.extend_from_slice(&self.step_buffer[..written]),
            Step::End => self.close(None),
            Step::Damage(damage) => self.close(Some(damage)),
        }
        Ok(())
    }

    fn close(&mut self, damage: Option<Damage>) {
        self.state = State::Over(damage);
        self.end = (damage != Some(Damage::Corrupt)).then(|| self.window.offset());
        if let Some(damage) = damage {
            self.report(damage);
        }
    }

    fn report(&mut self, damage: Damage) {
        let is_gzip = matches!(self.coding, Coding::Gzip(_));
        self.problems
            .push(Problem::damage(self.member, damage, is_gzip));
    }

    /// Moves back to the start of the damaged member: a damaged member may seem to reach into the next one, and even to
    /// end where that ends.
    fn go_back(&mut self) {
        let here = self.window.offset();
        // At most as much is reread as is read, otherwise crafted input could take forever.
        if self.stepped_back + MAX_STEP_BACK.min(here - self.member) > here + 16 * MAX_STEP_BACK {
            return;
        }
        self.window.step_back(self.member + 1);
        self.stepped_back += here - self.window.offset();
    }

    /// Moves to the next position where a member begins whose text begins a record, or to the end.
    fn find_next_member(&mut self) -> Result<()> {
        let magic: &[u8] = match self.coding {
            Coding::Plain => return Ok(()),
            Coding::Gzip(_) => &[0x1f, 0x8b, 8],
            Coding::Zstd(_) => &zstd::MAGIC,
        };
        let mut text = [0; PROBE_BYTES];
        loop {
            self.window.retain_from(self.window.offset());
            let bytes = self.window.peek(2 * PEEK_BYTES)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let Some(match_start) = memmem::find(bytes, magic) else {
                // The magic number may cross the end of the window.
                let passed = (bytes.len() + 1).saturating_sub(magic.len()).max(1);
                self.window.consume(passed);
                continue;
            };
            self.window.consume(match_start);
            let bytes = self.window.peek(PEEK_BYTES)?;
            let written = match &mut self.coding {
                Coding::Plain => 0,
                Coding::Gzip(inflater) => inflater.probe(bytes, &mut text),
                Coding::Zstd(unpacker) => unpacker.probe(bytes, &mut text),
            };
            if (self.begins_record)(&text[..written]) {
                return Ok(());
            }
            self.window.consume(1);
        }
    }
}
