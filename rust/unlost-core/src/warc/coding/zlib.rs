//! Deflate in its three containers. Gzip may have any number of members.

use flate2::{Decompress, FlushDecompress, Status};

use super::BLOCK_BYTES;
use super::decoder::{ByteSink, DAMAGED, DecodeError, TRUNCATED};

const GZIP: [u8; 2] = [0x1f, 0x8b];

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Container {
    Gzip,
    Zlib,
    Raw,
}

impl Container {
    fn stream(self) -> Decompress {
        match self {
            Self::Gzip => Decompress::new_gzip(15),
            Self::Zlib => Decompress::new(true),
            Self::Raw => Decompress::new(false),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Within the stream.
    InStream,
    /// After its end, where another member may begin.
    AfterEnd,
    /// After its end and the first byte of a possible next member.
    HalfMagic,
    /// After all members: zeros and other garbage, which every reader ignores.
    TrailingGarbage,
}

pub struct Zlib {
    container: Container,
    stream: Decompress,
    state: State,
    has_output: bool,
    buffer: Vec<u8>,
}

impl Zlib {
    pub fn new(container: Container) -> Self {
        Self {
            container,
            stream: container.stream(),
            state: State::InStream,
            has_output: false,
            buffer: vec![0; BLOCK_BYTES],
        }
    }

    pub fn is_gzip(&self) -> bool {
        self.container == Container::Gzip
    }

    pub fn feed(&mut self, data: &[u8], take: &mut ByteSink) -> Result<(), DecodeError> {
        let joined;
        let mut data = data;
        if self.state == State::HalfMagic && !data.is_empty() {
            self.state = State::AfterEnd;
            joined = [&GZIP[..1], data].concat();
            data = &joined;
        }
        let mut is_full = false;
        while !data.is_empty() || is_full {
            if self.state != State::InStream {
                let known = data.len().min(GZIP.len());
                let may_begin = self.is_gzip() && data[..known] == GZIP[..known];
                if self.state == State::TrailingGarbage || !may_begin {
                    self.state = State::TrailingGarbage;
                    return Ok(());
                }
                if known < GZIP.len() {
                    self.state = State::HalfMagic;
                    return Ok(());
                }
                self.stream = self.container.stream();
                self.state = State::InStream;
            }
            // Data with a zlib header that is then invalid is not deflate, unless there was output before. The first
            // byte of output is therefore awaited in the smallest steps.
            let is_doubtful = self.container == Container::Zlib && !self.has_output;
            let input = if is_doubtful {
                &data[..data.len().min(1)]
            } else {
                data
            };
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            let outcome = self
                .stream
                .decompress(input, &mut self.buffer, FlushDecompress::None);
            let read = usize::try_from(self.stream.total_in() - read).unwrap_or(0);
            let written = usize::try_from(self.stream.total_out() - written).unwrap_or(0);
            let Ok(status) = outcome else {
                // Data without a header is accepted as deflate once a block of output came without an error.
                if self.has_output || self.is_gzip() {
                    take(&self.buffer[..written]);
                }
                return Err(DAMAGED);
            };
            let is_over = status == Status::StreamEnd;
            if is_over {
                self.state = State::AfterEnd;
            }
            is_full = written == BLOCK_BYTES && !is_over;
            data = &data[read..];
            if written > 0 {
                self.has_output = true;
                if !take(&self.buffer[..written]) {
                    return Ok(());
                }
            } else if read == 0 && !is_over {
                return Err(DAMAGED); // it requires a dictionary, which is not available
            }
        }
        Ok(())
    }

    pub fn end(&self) -> Result<(), DecodeError> {
        if self.state == State::InStream {
            Err(TRUNCATED)
        } else {
            Ok(())
        }
    }
}
