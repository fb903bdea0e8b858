//! Output of lines: in order or shuffled, plain or compressed.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use zstd::stream::write::Encoder;

use super::random::Random;

/// How the file is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Plain.
    Plain,
    /// Gzip, one member.
    Gzip,
    /// Zstd, one frame.
    Zstd,
}

const BUFFER_BYTES: usize = 1 << 20;

/// The number of lines in the shuffle pool: about 84 MB.
const POOL_LINES: usize = 1 << 18;

enum Packer<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(Encoder<'static, W>),
}

pub(super) struct Output<W: Write> {
    packer: Packer<W>,
    /// Whole lines and the beginning of the current one.
    buffer: Vec<u8>,
    shuffle: Option<Shuffle>,
}

/// Each new line replaces a random one in the pool, which is written. Lines move by a quarter of a million lines on
/// average, some much further, and memory is bounded.
struct Shuffle {
    random: Random,
    pool: Vec<Vec<u8>>,
    /// Replaced lines.
    ready: Vec<u8>,
}

impl<W: Write> Output<W> {
    /// Lines come out in order, or shuffled by a seed.
    pub(super) fn new(out: W, packing: Packing, shuffle: Option<u64>) -> io::Result<Self> {
        let packer = match packing {
            Packing::Plain => Packer::Plain(out),
            Packing::Gzip => Packer::Gzip(GzEncoder::new(out, Compression::default())),
            Packing::Zstd => Packer::Zstd(Encoder::new(out, 0)?),
        };
        Ok(Self {
            packer,
            buffer: Vec::with_capacity(BUFFER_BYTES + (1 << 16)),
            shuffle: shuffle.map(|seed| Shuffle {
                random: Random::new(seed),
                pool: Vec::new(),
                ready: Vec::new(),
            }),
        })
    }

    /// The buffer that a line is appended to, before `end_line`.
    pub(super) fn line(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if self.shuffle.is_some() {
            self.swap_line()
        } else if self.buffer.len() >= BUFFER_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn swap_line(&mut self) -> io::Result<()> {
        let Some(Shuffle {
            random,
            pool,
            ready,
        }) = &mut self.shuffle
        else {
            return Ok(());
        };
        if pool.len() < POOL_LINES {
            pool.push(self.buffer.clone());
        } else {
            let place = &mut pool[index(random, POOL_LINES)];
            ready.extend_from_slice(place);
            place.clear();
            place.extend_from_slice(&self.buffer);
            if ready.len() >= BUFFER_BYTES {
                self.packer.write_all(ready)?;
                ready.clear();
            }
        }
        self.buffer.clear();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.packer.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the pool, and the end of the compressed stream.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        if let Some(Shuffle {
            mut random,
            mut pool,
            mut ready,
        }) = self.shuffle.take()
        {
            while !pool.is_empty() {
                let place = index(&mut random, pool.len());
                ready.extend_from_slice(&pool.swap_remove(place));
                if ready.len() >= BUFFER_BYTES {
                    self.packer.write_all(&ready)?;
                    ready.clear();
                }
            }
            self.packer.write_all(&ready)?;
        }
        match self.packer {
            Packer::Plain(mut out) => out.flush(),
            Packer::Gzip(encoder) => encoder.finish()?.flush(),
            Packer::Zstd(encoder) => encoder.finish()?.flush(),
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // below a length
fn index(random: &mut Random, length: usize) -> usize {
    random.below(length as u64) as usize
}

impl<W: Write> Packer<W> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }
}
