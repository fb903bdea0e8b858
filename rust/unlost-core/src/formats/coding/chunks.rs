//! The chunks of a transfer. Crawlers write bodies without them whose headers say that they are there.
//!
//! To be in chunks, the first one must end where it says, with the next one behind it. Until that is known, which may be
//! after megabytes, both readings are followed.

use super::{Outcome, Stage};

/// The longest line with the size of a chunk.
const MAX_LINE: usize = 4096;

enum Place {
    /// In the line with the size of a chunk, of which this was seen.
    Size(Vec<u8>),
    /// In a chunk, before so many bytes of it.
    Chunk(u64),
    /// Behind a chunk; whether a CR was seen.
    End { has_cr: bool },
    /// Behind the last chunk.
    Over,
}

pub struct Chunks {
    place: Place,
    /// How many chunks were read to their ends.
    count: u64,
    /// What the chunks hold; None if there are none.
    inside: Option<Stage>,
    /// All of it as it is; None once it is known to be in chunks.
    whole: Option<Stage>,
    is_broken: bool,
}

enum Wrong {
    NotChunked,
    Broken,
}

impl Chunks {
    pub fn new(inside: Stage, whole: Stage) -> Self {
        Self {
            place: Place::Size(Vec::new()),
            count: 0,
            inside: Some(inside),
            whole: Some(whole),
            is_broken: false,
        }
    }

    pub fn feed(&mut self, data: &[u8]) {
        if let Some(whole) = &mut self.whole {
            whole.feed(data);
        }
        let mut left = data;
        while !left.is_empty() && !self.is_settled() {
            match self.step(left) {
                Ok(rest) => left = rest,
                Err(wrong) => self.give_up(&wrong),
            }
        }
    }

    pub fn end(&mut self) {
        if !self.is_settled() {
            let is_none = match &self.place {
                Place::Size(line) => self.count == 0 || (self.count == 1 && !line.is_empty()),
                Place::End { has_cr } => *has_cr && self.count == 0,
                _ => false,
            };
            let wrong = if is_none {
                Wrong::NotChunked
            } else {
                Wrong::Broken
            };
            self.give_up(&wrong);
        }
        if let Some(stage) = self.inside.as_mut().or(self.whole.as_mut()) {
            stage.end();
        }
    }

    pub fn is_over(&self) -> bool {
        let is_known = self.inside.is_none() || self.whole.is_none();
        let stage = self.inside.as_ref().or(self.whole.as_ref());
        is_known && stage.is_some_and(Stage::is_over)
    }

    pub fn outcome(self) -> Outcome {
        match self.inside.or(self.whole) {
            Some(stage) => {
                let behind = stage.outcome();
                Outcome {
                    is_broken: self.is_broken || behind.is_broken,
                    ..behind
                }
            }
            None => unreachable!("one of both readings is always there"),
        }
    }

    /// Whether nothing of what comes belongs to a chunk.
    fn is_settled(&self) -> bool {
        self.inside.is_none() || self.is_broken || matches!(self.place, Place::Over)
    }

    fn give_up(&mut self, wrong: &Wrong) {
        match wrong {
            Wrong::NotChunked => self.inside = None,
            Wrong::Broken => {
                self.is_broken = true;
                self.whole = None;
            }
        }
    }

    fn step<'a>(&mut self, data: &'a [u8]) -> Result<&'a [u8], Wrong> {
        match &mut self.place {
            Place::Size(line) => {
                let end = memchr::memchr(b'\n', data).map_or(data.len(), |at| at + 1);
                let taken = end.min(MAX_LINE - line.len());
                line.extend_from_slice(&data[..taken]);
                if line.ends_with(b"\n") || line.len() == MAX_LINE {
                    let size = size_in(line).ok_or(if self.count < 2 {
                        Wrong::NotChunked
                    } else {
                        Wrong::Broken
                    })?;
                    self.place = if size == 0 {
                        Place::Over
                    } else {
                        Place::Chunk(size)
                    };
                    if size == 0 || self.count > 0 {
                        self.whole = None;
                    }
                }
                Ok(&data[taken..])
            }
            Place::Chunk(left) => {
                let taken = data.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                if *left == 0 {
                    self.place = Place::End { has_cr: false };
                }
                if let Some(inside) = &mut self.inside {
                    inside.feed(&data[..taken]);
                }
                Ok(&data[taken..])
            }
            Place::End { has_cr } => {
                match data[0] {
                    b'\n' => {
                        self.place = Place::Size(Vec::new());
                        self.count += 1;
                    }
                    b'\r' if !*has_cr => *has_cr = true,
                    _ if self.count == 0 => return Err(Wrong::NotChunked),
                    _ => return Err(Wrong::Broken),
                }
                Ok(&data[1..])
            }
            Place::Over => Ok(&[]),
        }
    }
}

/// The number in a line: hexadecimal digits, at most 15, perhaps with blanks around and an extension behind.
fn size_in(line: &[u8]) -> Option<u64> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let text = line.strip_suffix(b"\n")?;
    let text = match memchr::memchr(b';', text) {
        Some(at) => &text[..at],
        None => text.strip_suffix(b"\r").unwrap_or(text),
    };
    let begin = text.iter().position(|byte| !is_blank(byte))?;
    let end = text.iter().rposition(|byte| !is_blank(byte))? + 1;
    let digits = &text[begin..end];
    if digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
