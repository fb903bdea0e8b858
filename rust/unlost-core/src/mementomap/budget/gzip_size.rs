//! The size of a file after compression for publication.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::super::{HoldingsError, Progress};

/// Bytes per read.
const BLOCK: usize = 256 << 10;

/// Counts written bytes and discards them.
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

/// The size of a text as gzip of a level. Reproducible: the compressor is pinned.
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
