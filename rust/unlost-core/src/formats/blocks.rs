//! A file's text in blocks of whole lines, for any number of threads at once.

use std::io::{self, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Damage, Source};

/// How much text a thread looks at before it asks for more. A line in between is copied once.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// Whole lines of a file.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Which block of the file, from 0.
    pub(crate) index: u64,
    /// Where its first line begins in the text.
    pub(crate) offset: u64,
    /// Memory for the lines, which is never cleared, and how much of it they take.
    buffer: Vec<u8>,
    length: usize,
}

impl Block {
    pub(crate) fn text(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// Makes room for more bytes behind what is there, and returns it.
    fn room(&mut self, count: usize) -> &mut [u8] {
        let end = self.length + count;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        &mut self.buffer[self.length..end]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

/// Hands out the blocks of a file in their order. Whoever asks reads, and inflates, while the others work on theirs.
pub(crate) struct Blocks<R: Read> {
    state: Mutex<State<R>>,
    limit: usize,
    block_bytes: usize,
}

struct State<R: Read> {
    source: Source<R>,
    /// The beginning of the next block: what stood behind the last line end.
    carry: Vec<u8>,
    index: u64,
    offset: u64,
    at_end: bool,
    /// Whether the text ends in the middle of a line, which was left out.
    is_cut: bool,
}

impl<R: Read> Blocks<R> {
    /// A line of more than `limit` bytes comes cut to one byte more than that.
    pub(crate) fn new(source: Source<R>, limit: usize, block_bytes: usize) -> Self {
        // Inflating is what takes longest: the fewer blocks, the less often it waits for the next thread to wake up.
        let block_bytes = block_bytes * if source.is_compressed() { 4 } else { 1 };
        Self {
            state: Mutex::new(State {
                source,
                carry: Vec::new(),
                index: 0,
                offset: 0,
                at_end: false,
                is_cut: false,
            }),
            limit,
            block_bytes,
        }
    }

    /// Fills a block with what comes next; says whether there was anything.
    pub(crate) fn next(&self, block: &mut Block) -> io::Result<bool> {
        self.lock().next(block, self.block_bytes, self.limit)
    }

    /// Which block comes next, from 0.
    pub(crate) fn next_index(&self) -> u64 {
        self.lock().index
    }

    /// What ended the text early, once the last block was read.
    pub(crate) fn damage(&self) -> Option<Damage> {
        self.lock().source.damage()
    }

    /// Whether that left a line without its end. It is in no block: the key of a page that never was, perhaps.
    pub(crate) fn is_cut(&self) -> bool {
        self.lock().is_cut
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Read> State<R> {
    fn next(&mut self, block: &mut Block, block_bytes: usize, limit: usize) -> io::Result<bool> {
        block.length = 0;
        block.push(&self.carry);
        self.carry.clear();
        block.index = self.index;
        block.offset = self.offset;
        let (mut skipped, mut start) = (0, 0);
        loop {
            if !self.at_end {
                self.read_more(block, block_bytes)?;
            }
            // A line whose middle was skipped ends its block, so that offsets within blocks stay true.
            let find = if skipped > 0 {
                memchr::memchr
            } else {
                memchr::memrchr
            };
            if let Some(end) = find(b'\n', &block.text()[start..]) {
                let end = start + end + 1;
                self.carry.extend_from_slice(&block.text()[end..]);
                block.length = end;
                break;
            }
            if self.at_end {
                let damage = self.source.damage();
                // Whoever asks once more gets nothing, which is no cut line.
                self.is_cut |= block.length > 0 && damage.is_some_and(Damage::cuts_text);
                if block.length == 0 || self.is_cut {
                    return Ok(false);
                }
                block.push(b"\n");
                break;
            }
            // Still inside one line: its beginning tells that it is too long, and nobody needs its rest. What came
            // before its end is not lost, since blocks begin at lines.
            if block.length > limit + block_bytes {
                skipped += block.length - (limit + 1);
                block.length = limit + 1;
            }
            start = block.length;
        }
        self.index += 1;
        self.offset += (block.length + skipped) as u64;
        Ok(true)
    }

    fn read_more(&mut self, block: &mut Block, count: usize) -> io::Result<()> {
        let room = block.room(count);
        let mut filled = 0;
        while filled < room.len() {
            match self.source.read(&mut room[filled..]) {
                Ok(0) => {
                    self.at_end = true;
                    break;
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        block.length += filled;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &[u8], limit: usize, block_bytes: usize) -> Vec<(u64, Vec<u8>)> {
        let blocks = Blocks::new(Source::new(text).expect("memory"), limit, block_bytes);
        let mut found = Vec::new();
        let mut block = Block::default();
        while blocks.next(&mut block).expect("memory") {
            assert_eq!(block.index, found.len() as u64);
            found.push((block.offset, block.text().to_vec()));
        }
        found
    }

    #[test]
    fn blocks_end_with_lines() {
        let text: Vec<u8> = (0..1000)
            .flat_map(|i| format!("line {i}\n").into_bytes())
            .collect();
        for block_bytes in [1, 7, 100, 1 << 20] {
            for cut in [text.len(), text.len() - 1] {
                let mut offset = 0;
                let mut whole = Vec::new();
                for (start, block) in blocks(&text[..cut], 50, block_bytes) {
                    assert_eq!(start, offset);
                    assert_eq!(block.last(), Some(&b'\n'));
                    offset += block.len() as u64;
                    whole.extend(block);
                }
                assert_eq!(whole, text, "{block_bytes}");
            }
        }
        assert_eq!(blocks(b"", 50, 7), []);
        assert_eq!(blocks(b"\n", 50, 7), [(0, b"\n".to_vec())]);
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let text = [b"ab\n".to_vec(), vec![b'x'; 10_000], b"\ncd\n".to_vec()].concat();
        let found = blocks(&text, 100, 10);
        assert_eq!(found[0].1, b"ab\n");
        let long = &found[1];
        assert_eq!(long.0, 3);
        assert!(
            long.1.len() > 100 && long.1.len() <= 100 + 21,
            "{}",
            long.1.len()
        );
        assert_eq!(found[2], (10_004, b"cd\n".to_vec()));
    }
}
