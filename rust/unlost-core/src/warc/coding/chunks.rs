//! Chunked transfer coding (RFC 9112, 7.1). Some crawlers store dechunked bodies under headers that still declare
//! `chunked`.
//!
//! In a chunked body, the first chunk ends at its declared size and is followed by another chunk. Until that is
//! certain, which may take megabytes, both interpretations are processed.

use super::{Outcome, Stage};

/// The maximum length of a line with a chunk size and extensions. Our limit; RFC 9112, 7.1.1 recommends one, but gives
/// no number.
const MAX_LINE: usize = 4096;

enum State {
    /// In the line with a chunk size; the bytes of the line so far.
    Size(Vec<u8>),
    /// In a chunk; the bytes left of it.
    Chunk(u64),
    /// After a chunk; whether a CR was seen.
    End { has_cr: bool },
    /// After the last chunk.
    Done,
}

pub struct Chunks {
    state: State,
    /// The number of complete chunks.
    count: u64,
    /// The content of the chunks; None if the body is not chunked.
    decoded: Option<Stage>,
    /// The body unchanged; None once it is known to be chunked.
    raw: Option<Stage>,
    is_broken: bool,
}

enum ChunkError {
    NotChunked,
    DecodeError,
}

impl Chunks {
    pub fn new(decoded: Stage, raw: Stage) -> Self {
        Self {
            state: State::Size(Vec::new()),
            count: 0,
            decoded: Some(decoded),
            raw: Some(raw),
            is_broken: false,
        }
    }

    pub fn feed(&mut self, data: &[u8]) {
        if let Some(raw) = &mut self.raw {
            raw.feed(data);
        }
        let mut left = data;
        while !left.is_empty() && !self.is_done() {
            match self.step(left) {
                Ok(rest) => left = rest,
                Err(error) => self.fail(&error),
            }
        }
    }

    pub fn end(&mut self) {
        if !self.is_done() {
            let is_none = match &self.state {
                State::Size(line) => self.count == 0 || (self.count == 1 && !line.is_empty()),
                State::End { has_cr } => *has_cr && self.count == 0,
                _ => false,
            };
            let error = if is_none {
                ChunkError::NotChunked
            } else {
                ChunkError::DecodeError
            };
            self.fail(&error);
        }
        if let Some(stage) = self.decoded.as_mut().or(self.raw.as_mut()) {
            stage.end();
        }
    }

    pub fn is_over(&self) -> bool {
        let is_known = self.decoded.is_none() || self.raw.is_none();
        let stage = self.decoded.as_ref().or(self.raw.as_ref());
        is_known && stage.is_some_and(Stage::is_over)
    }

    pub fn outcome(self) -> Outcome {
        match self.decoded.or(self.raw) {
            Some(stage) => {
                let inner = stage.outcome();
                Outcome {
                    is_broken: self.is_broken || inner.is_broken,
                    ..inner
                }
            }
            None => unreachable!("one of both readings is always there"),
        }
    }

    /// Whether the remaining bytes belong to no chunk.
    fn is_done(&self) -> bool {
        self.decoded.is_none() || self.is_broken || matches!(self.state, State::Done)
    }

    fn fail(&mut self, error: &ChunkError) {
        match error {
            ChunkError::NotChunked => self.decoded = None,
            ChunkError::DecodeError => {
                self.is_broken = true;
                self.raw = None;
            }
        }
    }

    fn step<'a>(&mut self, data: &'a [u8]) -> Result<&'a [u8], ChunkError> {
        match &mut self.state {
            State::Size(line) => {
                let end = memchr::memchr(b'\n', data).map_or(data.len(), |at| at + 1);
                let taken = end.min(MAX_LINE - line.len());
                line.extend_from_slice(&data[..taken]);
                if line.ends_with(b"\n") || line.len() == MAX_LINE {
                    let size = parse_chunk_size(line).ok_or(if self.count < 2 {
                        ChunkError::NotChunked
                    } else {
                        ChunkError::DecodeError
                    })?;
                    self.state = if size == 0 {
                        State::Done
                    } else {
                        State::Chunk(size)
                    };
                    if size == 0 || self.count > 0 {
                        self.raw = None;
                    }
                }
                Ok(&data[taken..])
            }
            State::Chunk(left) => {
                let taken = data.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                if *left == 0 {
                    self.state = State::End { has_cr: false };
                }
                if let Some(decoded) = &mut self.decoded {
                    decoded.feed(&data[..taken]);
                }
                Ok(&data[taken..])
            }
            State::End { has_cr } => {
                match data[0] {
                    b'\n' => {
                        self.state = State::Size(Vec::new());
                        self.count += 1;
                    }
                    b'\r' if !*has_cr => *has_cr = true,
                    _ if self.count == 0 => return Err(ChunkError::NotChunked),
                    _ => return Err(ChunkError::DecodeError),
                }
                Ok(&data[1..])
            }
            State::Done => Ok(&[]),
        }
    }
}

/// Parses a chunk size: at most 15 hexadecimal digits, optionally surrounded by blanks and followed by an extension.
fn parse_chunk_size(line: &[u8]) -> Option<u64> {
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
