//! How large a file is once it is published.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::super::{HoldingsError, Progress};

/// How much is read at a time.
const BLOCK: usize = 256 << 10;

/// Counts what is written, and keeps nothing.
#[derive(Default)]
struct ByteCounter(u64);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many bytes a text has as gzip of a level. Always the same: the compressor is pinned.
pub fn gzip_size(
    file: &mut impl Read,
    level: u32,
    progress: &Progress,
) -> Result<u64, HoldingsError> {
    let mut gzip = GzEncoder::new(ByteCounter::default(), Compression::new(level.min(9)));
    let mut block = vec![0; BLOCK];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok(gzip.finish()?.0);
        }
        gzip.write_all(&block[..read])?;
        progress.check_cancelled()?;
    }
}
