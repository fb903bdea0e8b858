//! Splits the text of a file into blocks of whole lines, for any number of threads.

use std::io::{self, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::random_access::Input;
use super::ranges::Ranges;
use super::{Damage, Source, is_compressed};

/// Text per block. A line that crosses a block boundary is copied once.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

const PAGE_BYTES: usize = 4096;

/// Whole lines of a file.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The index of the block in the file, from 0.
    pub(crate) index: u64,
    /// The offset of its first line in the text.
    pub(crate) offset: u64,
    /// Memory for the lines, which is never cleared, and the part of it that is in use.
    buffer: Vec<u8>,
    begin: usize,
    length: usize,
}

impl Block {
    pub(crate) fn text(&self) -> &[u8] {
        &self.buffer[self.begin..self.length]
    }

    pub(super) fn clear(&mut self) {
        self.begin = 0;
        self.length = 0;
    }

    /// Empties the block and aligns its start with a page, as in the file. Measured: copying to some other alignments,
    /// such as an offset of 16 bytes, takes three times as long, because processors compare only the last twelve bits
    /// of a memory address to detect a dependency on an earlier write (4K aliasing).
    pub(super) fn clear_page_aligned(&mut self, expected: usize) {
        let enough = expected + PAGE_BYTES;
        if self.buffer.len() < enough {
            self.buffer.resize(enough, 0);
        }
        self.begin = self
            .buffer
            .as_ptr()
            .align_offset(PAGE_BYTES)
            .min(PAGE_BYTES);
        self.length = self.begin;
    }

    /// Drops the first bytes of the text.
    pub(super) fn skip(&mut self, count: usize) {
        self.begin += count;
    }

    /// Drops everything after the first bytes of the text.
    pub(super) fn truncate(&mut self, count: usize) {
        self.length = self.begin + count;
    }

    /// Adds bytes that were read into the spare capacity.
    pub(super) fn extend(&mut self, count: usize) {
        self.length += count;
    }

    /// Reserves memory for more bytes after the text, and returns it.
    pub(super) fn spare_capacity(&mut self, count: usize) -> &mut [u8] {
        let end = self.length + count;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        &mut self.buffer[self.length..end]
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.spare_capacity(bytes.len()).copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

/// Hands out the blocks of a file in order. The calling thread reads and inflates, while the others process their
/// blocks.
pub(crate) struct Blocks<R: Read> {
    mode: ReadMode<R>,
    limit: usize,
    block_bytes: usize,
}

enum ReadMode<R: Read> {
    /// The thread that reads a block blocks the others.
    InOrder(Mutex<State<R>>),
    RandomAccess(Ranges<R>),
}

struct State<R: Read> {
    source: Source<R>,
    /// The beginning of the next block: the bytes after the last line end.
    carry: Vec<u8>,
    index: u64,
    offset: u64,
    at_end: bool,
    /// Whether the text ends within a line, which is dropped.
    is_cut: bool,
}

impl<R: Input> Blocks<R> {
    /// A line of more than `limit` bytes is cut to slightly more than that.
    pub(crate) fn new(file: R, limit: usize, block_bytes: usize) -> io::Result<Self> {
        if let Some(length) = file.length() {
            let mut magic = [0; 4];
            let read = file.read_at(&mut magic, 0)?;
            if !is_compressed(&magic[..read]) {
                return Ok(Self {
                    mode: ReadMode::RandomAccess(Ranges::new(file, length)),
                    limit,
                    block_bytes,
                });
            }
        }
        let source = Source::new(file)?;
        let state = State {
            source,
            carry: Vec::new(),
            index: 0,
            offset: 0,
            at_end: false,
            is_cut: false,
        };
        Ok(Self {
            mode: ReadMode::InOrder(Mutex::new(state)),
            limit,
            block_bytes,
        })
    }

    /// Fills a block with the next lines. Returns false at the end.
    pub(crate) fn next(&self, block: &mut Block) -> io::Result<bool> {
        match &self.mode {
            ReadMode::InOrder(state) => lock(state).next(block, self.block_bytes, self.limit),
            ReadMode::RandomAccess(ranges) => ranges.next(block, self.block_bytes, self.limit),
        }
    }

    /// Whether the text has to be inflated, which is done by one thread.
    pub(super) fn is_inflated(&self) -> bool {
        match &self.mode {
            ReadMode::InOrder(state) => lock(state).source.is_compressed(),
            ReadMode::RandomAccess(_) => false,
        }
    }

    /// The index of the next block, from 0.
    pub(crate) fn next_index(&self) -> u64 {
        match &self.mode {
            ReadMode::InOrder(state) => lock(state).index,
            ReadMode::RandomAccess(ranges) => ranges.next_index(),
        }
    }

    /// What truncated the text. Valid once the last block was read.
    pub(crate) fn damage(&self) -> Option<Damage> {
        match &self.mode {
            ReadMode::InOrder(state) => lock(state).source.damage(),
            ReadMode::RandomAccess(_) => None,
        }
    }

    /// Whether the damage cut a line. The cut line is in no block: its key might be that of a page that never existed.
    pub(crate) fn is_cut(&self) -> bool {
        match &self.mode {
            ReadMode::InOrder(state) => lock(state).is_cut,
            ReadMode::RandomAccess(_) => false,
        }
    }
}

fn lock<R: Read>(state: &Mutex<State<R>>) -> MutexGuard<'_, State<R>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: Read> State<R> {
    fn next(&mut self, block: &mut Block, block_bytes: usize, limit: usize) -> io::Result<bool> {
        block.clear();
        block.push(&self.carry);
        self.carry.clear();
        block.index = self.index;
        block.offset = self.offset;
        let (mut skipped, mut start) = (0, 0);
        loop {
            if !self.at_end {
                self.read_more(block, block_bytes)?;
            }
            // A line whose middle was skipped ends its block, so that offsets within blocks stay valid.
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
                // Another call returns nothing, which is not a cut line.
                self.is_cut |= block.length > 0 && damage.is_some_and(Damage::cuts_text);
                if block.length == 0 || self.is_cut {
                    return Ok(false);
                }
                block.push(b"\n");
                break;
            }
            // Still inside one line: its beginning shows that it is too long, and the rest is not needed. The lines
            // before it are not lost, since blocks begin at lines.
            if block.length > limit.saturating_add(block_bytes) {
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
        let room = block.spare_capacity(count);
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
    use std::io::Cursor;

    use super::*;

    type Collected = Vec<(u64, Vec<u8>)>;

    fn collect_blocks(blocks: &Blocks<impl Input>) -> Collected {
        let mut collected = Vec::new();
        let mut block = Block::default();
        while blocks.next(&mut block).expect("memory") {
            assert_eq!(block.index + 1, blocks.next_index());
            if !block.text().is_empty() {
                collected.push((block.offset, block.text().to_vec()));
            }
        }
        collected
    }

    /// The blocks of a text that is read in order, and of one with random access.
    fn blocks(text: &[u8], limit: usize, block_bytes: usize) -> [Collected; 2] {
        let in_order = Blocks::new(text, limit, block_bytes).expect("memory");
        let anywhere = Blocks::new(Cursor::new(text), limit, block_bytes).expect("memory");
        [collect_blocks(&in_order), collect_blocks(&anywhere)]
    }

    #[test]
    fn blocks_end_at_line_ends() {
        let text: Vec<u8> = (0..1000)
            .flat_map(|i| format!("line {i}\n{}", "\n".repeat(i % 3)).into_bytes())
            .collect();
        for block_bytes in [1, 7, 100, 1 << 20] {
            for (cut, limit) in [(text.len(), 50), (text.len() - 1, usize::MAX)] {
                for collected in blocks(&text[..cut], limit, block_bytes) {
                    let mut offset = 0;
                    let mut whole = Vec::new();
                    for (start, block) in collected {
                        assert_eq!(start, offset);
                        assert_eq!(block.last(), Some(&b'\n'));
                        offset += block.len() as u64;
                        whole.extend(block);
                    }
                    assert_eq!(whole, text, "{block_bytes}");
                }
            }
        }
        assert_eq!(blocks(b"", 50, 7), [const { Vec::new() }; 2]);
        for collected in blocks(b"\n", 50, 7) {
            assert_eq!(collected, [(0, b"\n".to_vec())]);
        }
    }

    #[test]
    fn line_without_end_uses_bounded_memory() {
        let text = [b"ab\n".to_vec(), vec![b'x'; 50_000], b"\ncd\n".to_vec()].concat();
        for (collected, room) in blocks(&text, 100, 10).into_iter().zip([21, 2 * 4096]) {
            let collected: Collected = collected
                .iter()
                .flat_map(|(offset, block)| {
                    let lines = block.split_inclusive(|&byte| byte == b'\n');
                    lines.scan(*offset, |at, line| {
                        let start = *at;
                        *at += line.len() as u64;
                        Some((start, line.to_vec()))
                    })
                })
                .collect();
            assert_eq!(collected[0], (0, b"ab\n".to_vec()));
            let (start, long) = &collected[1];
            assert_eq!(*start, 3);
            assert!(
                long.len() > 100 && long.len() <= 100 + room,
                "{}",
                long.len()
            );
            assert_eq!(collected[2], (50_004, b"cd\n".to_vec()));
            assert_eq!(collected.len(), 3);
        }
    }

    #[test]
    fn truncated_file_ends_at_its_new_length() {
        /// Reports a larger length than it has.
        struct TruncatedFile(Cursor<Vec<u8>>);
        impl Read for TruncatedFile {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.read(buffer)
            }
        }
        impl Input for TruncatedFile {
            fn length(&self) -> Option<u64> {
                Some(1000)
            }
            fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
                self.0.read_at(buffer, offset)
            }
        }
        let text = b"one\ntwo\nthr".to_vec();
        for block_bytes in [1, 3, 5, 100] {
            let blocks = Blocks::new(TruncatedFile(Cursor::new(text.clone())), 50, block_bytes);
            let whole: Vec<u8> = collect_blocks(&blocks.expect("memory"))
                .into_iter()
                .flat_map(|(_, block)| block)
                .collect();
            assert_eq!(whole, b"one\ntwo\nthr\n");
        }
    }
}
