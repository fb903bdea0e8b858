//! One coding. The first bytes decide whether the data is in that coding.

use super::decoder::{CodingDecoder, DecodeError};
use super::{BLOCK_BYTES, Outcome, Stage, names};

/// The number of leading bytes that are inspected to detect text.
const SNIFF_BYTES: usize = 512;

/// Our limit: longer input without any decoded output is an error, not plain data.
const MAX_UNDECIDED_BYTES: usize = 1 << 16;

pub struct Layer {
    coding: String,
    next: Stage,
    /// Input since the last full block.
    block: Vec<u8>,
    has_begun: bool,
    /// None if the input passes unchanged.
    decoder: Option<CodingDecoder>,
    /// The input so far, while it may still turn out not to be in the coding.
    undecided: Option<Vec<u8>>,
    /// Bytes that it may still produce; None if it exceeded the limit. Later layers may reduce any amount of output to
    /// nothing.
    remaining: Option<u64>,
    is_broken: bool,
    is_refused: bool,
}

impl Layer {
    /// limit: the maximum length in bytes of the body after all layers.
    pub fn new(coding: String, next: Stage, limit: u64) -> Self {
        Self {
            coding,
            next,
            remaining: Some(
                limit
                    .saturating_add(limit / 8)
                    .saturating_add(BLOCK_BYTES as u64),
            ),
            block: Vec::new(),
            has_begun: false,
            decoder: None,
            undecided: Some(Vec::new()),
            is_broken: false,
            is_refused: false,
        }
    }

    pub fn feed(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let (part, rest) = data.split_at(data.len().min(BLOCK_BYTES - self.block.len()));
            data = rest;
            if self.block.is_empty() && part.len() == BLOCK_BYTES {
                self.take_block(part, false);
                continue;
            }
            self.block.extend_from_slice(part);
            if self.block.len() == BLOCK_BYTES {
                let block = std::mem::take(&mut self.block);
                self.take_block(&block, false);
                self.block = block;
                self.block.clear();
            }
        }
    }

    pub fn end(&mut self) {
        let block = std::mem::take(&mut self.block);
        if !block.is_empty() {
            let is_all = !self.has_begun;
            self.take_block(&block, is_all);
        }
        if let Some(decoder) = &self.decoder
            && !self.is_broken
            && !self.is_over()
        {
            let end = decoder.end();
            self.handle_result(end);
        }
        self.next.end();
    }

    pub fn is_over(&self) -> bool {
        self.remaining.is_none() || self.next.is_over()
    }

    pub fn outcome(self) -> Outcome {
        let inner = self.next.outcome();
        Outcome {
            output: inner.output,
            is_broken: self.is_broken || inner.is_broken,
            is_refused: self.is_refused || inner.is_refused,
            is_too_long: self.remaining.is_none() || inner.is_too_long,
        }
    }

    fn take_block(&mut self, block: &[u8], is_all: bool) {
        if !self.has_begun {
            self.has_begun = true;
            self.open(block, is_all);
        }
        if self.is_broken || self.is_refused || self.is_over() {
            return;
        }
        let Some(decoder) = &mut self.decoder else {
            self.next.feed(block);
            return;
        };
        if let Some(undecided) = &mut self.undecided {
            undecided.extend_from_slice(block);
        }
        let (next, undecided, remaining) =
            (&mut self.next, &mut self.undecided, &mut self.remaining);
        let outcome = decoder.feed(block, &mut |piece| {
            *undecided = None;
            *remaining = remaining.and_then(|left| left.checked_sub(piece.len() as u64));
            next.feed(piece);
            remaining.is_some() && !next.is_over()
        });
        self.handle_result(outcome);
        if self
            .undecided
            .as_ref()
            .is_some_and(|undecided| undecided.len() > MAX_UNDECIDED_BYTES)
        {
            self.undecided = None;
        }
    }

    /// An error before any output means that the data is not in the coding, unless all of it is the beginning of a
    /// valid stream.
    fn handle_result(&mut self, outcome: Result<(), DecodeError>) {
        let Err(broken) = outcome else {
            return;
        };
        match self.undecided.take() {
            Some(undecided) if !broken.is_truncated => {
                self.decoder = None;
                self.next.feed(&undecided);
            }
            _ => self.is_broken = true,
        }
    }

    fn open(&mut self, head: &[u8], is_all: bool) {
        let is_text = !head[..head.len().min(SNIFF_BYTES)]
            .iter()
            .copied()
            .any(is_control);
        if !names::SUPPORTED.contains(&self.coding.as_str()) {
            self.is_refused = !is_text && names::is_unsupported(&self.coding);
            return;
        }
        self.decoder = CodingDecoder::of(&self.coding, head).filter(|detected| {
            // Text with a coding header is plain text, unless all of it is validly encoded.
            !is_text || detected.is_certain() || (is_all && is_whole(&self.coding, head))
        });
        if self.decoder.as_ref().is_none_or(CodingDecoder::is_certain) {
            self.undecided = None;
        }
    }
}

/// Whether the data is encoded from its beginning to its end. Data that decodes to much is accepted without its end.
fn is_whole(coding: &str, data: &[u8]) -> bool {
    let Some(mut decoder) = CodingDecoder::of(coding, data) else {
        return false;
    };
    let mut has_much = false;
    let outcome = decoder.feed(data, &mut |piece| {
        has_much = piece.len() >= BLOCK_BYTES;
        !has_much
    });
    has_much || (outcome.is_ok() && decoder.end().is_ok())
}

fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1f | 0x7f)
}
