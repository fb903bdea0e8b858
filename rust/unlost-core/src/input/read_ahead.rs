//! Read-ahead: a second thread reads and inflates the file while the first one processes chunks.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Damage, Source};

/// Chunks of this size stay in a core's cache between the thread that writes them and the thread that reads them.
/// Fuzzing uses small chunks, so that its input crosses chunk boundaries.
const CHUNK_BYTES: usize = if cfg!(fuzzing) { 64 } else { 256 << 10 };

/// Chunks in flight: one being filled, one queued, one being read.
const CHUNKS: usize = 3;

type Chunk = io::Result<Vec<u8>>;

/// The text of a file in chunks, read by a background thread. Memory is bounded by a few chunks.
pub(super) struct ReadAhead {
    filled: Receiver<Chunk>,
    used: Sender<Vec<u8>>,
    reader: Option<JoinHandle<Option<Damage>>>,
    damage: Option<Damage>,
}

impl ReadAhead {
    pub(super) fn new<R: Read + Send + 'static>(source: Source<R>) -> Self {
        let (used, empty) = channel();
        let (fill, filled) = sync_channel(CHUNKS);
        for _ in 0..CHUNKS {
            // Cannot fail: the other end of the channel is in this function.
            let _ = used.send(vec![0; CHUNK_BYTES]);
        }
        Self {
            filled,
            used,
            reader: Some(thread::spawn(move || read_all(source, &empty, &fill))),
            damage: None,
        }
    }

    /// Returns a used chunk and takes the next one; `None` at the end. Chunks are never empty.
    pub(super) fn next(&mut self, used: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        // If the reader thread has ended, the buffer is not needed any more.
        let _ = self.used.send(used);
        if let Ok(chunk) = self.filled.recv() {
            return chunk.map(Some);
        }
        if let Some(reader) = self.reader.take() {
            self.damage = reader
                .join()
                .map_err(|_| io::Error::other("the reading thread failed"))?;
        }
        Ok(None)
    }

    /// What truncated the text. Valid once the end was read.
    pub(super) fn damage(&self) -> Option<Damage> {
        self.damage
    }
}

fn read_all<R: Read>(
    mut source: Source<R>,
    empty: &Receiver<Vec<u8>>,
    fill: &SyncSender<Chunk>,
) -> Option<Damage> {
    // Ends with the file, or when the consumer has dropped its end of the channel.
    while let Ok(mut chunk) = empty.recv() {
        chunk.resize(CHUNK_BYTES, 0);
        let result = read_full(&mut source, &mut chunk).map(|length| {
            chunk.truncate(length);
            chunk
        });
        let is_last = result.as_ref().map_or(true, Vec::is_empty);
        if result.as_ref().is_ok_and(Vec::is_empty) || fill.send(result).is_err() || is_last {
            break;
        }
    }
    source.damage()
}

fn read_full<R: Read>(source: &mut Source<R>, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match source.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
