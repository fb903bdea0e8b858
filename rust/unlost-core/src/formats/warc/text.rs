//! The text of an archive file, member by member: plain files are one member, compressed ones have many.
//!
//! After damage it goes on at the next member whose text begins a record.

use std::io::{Read, Result};

use memchr::memmem;

use super::gzip::{Damage, Inflater, Start, Step};
use super::problem::Problem;
use super::window::{MAX_STEP_BACK, Window};
use super::zstd::{self, FrameDecoder};

/// Text per step, and the most that can be looked at in one piece.
pub const PEEK_BYTES: usize = 1 << 16;

/// How much text tells whether a member begins a record: the longest line that begins one in an ARC.
const PROBE: usize = 4096;

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
    /// In a member of which nothing more will come, but some may be left to be seen.
    Over(Option<Damage>),
    /// Behind the last member.
    End,
}

/// The text of a file. What was wrong with the members piles up in `problems`.
pub struct Text<R> {
    window: Window<R>,
    coding: Coding,
    begins_record: fn(&[u8]) -> bool,
    state: State,
    /// Text that was decompressed; that of a plain file is seen in the window.
    decoded: Vec<u8>,
    /// For a step of decompression.
    step_buffer: Vec<u8>,
    next: usize,
    member: u64,
    position: u64,
    end: Option<u64>,
    end_before: Option<u64>,
    stepped_back: u64,
    /// How many records this member holds something of, so far.
    pub records: u64,
    /// What was found since it was last looked at.
    pub problems: Vec<Problem>,
}

impl<R: Read> Text<R> {
    /// The text of a file, of which `source` gives what comes from `offset` on. `begins_record` tells the text of a
    /// member that begins a record, which is how the place to go on after damage is found. `dictionary` is that of the
    /// file if it was read before; else the source must begin with it.
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

    /// Where in the file a record is that begins here: its own place, or that of its member.
    pub fn offset(&self) -> u64 {
        if self.is_plain() {
            self.member + self.position
        } else {
            self.member
        }
    }

    /// How much of a member's text comes before what is there at [`Text::offset`]; none in plain files.
    pub fn skip(&self) -> u64 {
        if self.is_plain() { 0 } else { self.position }
    }

    /// How much of the member's text came before.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Where what was read so far ends in the file: the end of this member, or at its very beginning that of the one
    /// before. None if nobody knows.
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

    /// Tell records by other marks from now on.
    pub fn set_begins_record(&mut self, begins_record: fn(&[u8]) -> bool) {
        self.begins_record = begins_record;
    }

    /// What has been decompressed and not yet consumed.
    pub fn available(&self) -> &[u8] {
        if self.is_plain() {
            // It needs no room of its own: what is in the window is the text.
            match self.state {
                State::Open | State::Over(_) => self.window.available(),
                State::Between | State::End => &[],
            }
        } else {
            &self.decoded[self.next..]
        }
    }

    /// The text to come in this member: at least `count` bytes (at most [`PEEK_BYTES`]) unless it ends before.
    pub fn peek(&mut self, count: usize) -> Result<&[u8]> {
        while self.available().len() < count && self.state == State::Open {
            self.decompress(count)?;
        }
        Ok(self.available())
    }

    /// Step over text that was seen.
    pub fn consume(&mut self, count: usize) {
        if self.is_plain() {
            self.window.consume(count);
        } else {
            self.next += count;
        }
        self.position += count as u64;
    }

    /// Whether there is more to see of what is being read: in this member, or in the next one if it goes on there.
    ///
    /// It does not go on behind damage, nor in a member that begins a record of its own.
    pub fn more(&mut self) -> Result<bool> {
        loop {
            if !self.peek(1)?.is_empty() {
                return Ok(true);
            }
            if self.state != State::Over(None) || self.is_plain() {
                return Ok(false);
            }
            let found = self.problems.len();
            self.next_member()?;
            if self.state == State::End || self.problems.len() > found {
                return Ok(false);
            }
            let begins_record = self.begins_record;
            if begins_record(self.peek(PROBE)?) {
                return Ok(false);
            }
            // The record that goes on here is one of those that the member holds.
            self.records = 1;
        }
    }

    /// Go to the next member; false if there is none.
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

    /// Make more text to be seen: of a plain file so much as is asked for.
    fn decompress(&mut self, count: usize) -> Result<()> {
        if self.next > 0 {
            self.decoded.drain(..self.next);
            self.next = 0;
        }
        let step = match &mut self.coding {
            Coding::Gzip(inflater) => inflater.step(&mut self.window, &mut self.step_buffer)?,
            Coding::Zstd(unpacker) => unpacker.step(&mut self.window, &mut self.step_buffer)?,
            Coding::Plain => {
                // Nobody goes back in a plain file: what was consumed need not be kept.
                self.window.retain_from(self.window.offset());
                if self.window.peek(count)?.len() < count {
                    self.close(None);
                }
                return Ok(());
            }
        };
        match step {
            // By way of a room of its own: room at the end of what is seen would have to be cleared for each step.
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

    /// Go back to where the damaged member began, since a damaged one may seem to reach into the next,
    /// and even to end where that ends.
    fn go_back(&mut self) {
        let here = self.window.offset();
        // What is read twice is no more than what is read once, or else input made for it would take for ever.
        if self.stepped_back + MAX_STEP_BACK.min(here - self.member) > here + 16 * MAX_STEP_BACK {
            return;
        }
        self.window.step_back(self.member + 1);
        self.stepped_back += here - self.window.offset();
    }

    /// Go to the next place where a member begins whose text begins a record, or to the end.
    fn find_next_member(&mut self) -> Result<()> {
        let magic: &[u8] = match self.coding {
            Coding::Plain => return Ok(()),
            Coding::Gzip(_) => &[0x1f, 0x8b, 8],
            Coding::Zstd(_) => &zstd::MAGIC,
        };
        let mut text = [0; PROBE];
        loop {
            self.window.retain_from(self.window.offset());
            let bytes = self.window.peek(2 * PEEK_BYTES)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let Some(found) = memmem::find(bytes, magic) else {
                // The magic number may lie across the end of what is in the window.
                let passed = (bytes.len() + 1).saturating_sub(magic.len()).max(1);
                self.window.consume(passed);
                continue;
            };
            self.window.consume(found);
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
