//! One coding: looks at the first bytes to see what it has before it, and goes by that.

use super::unpacker::{Broken, Unpacker};
use super::{Outcome, PIECE, Stage, names};

/// Bytes that tell whether a body is text.
const HEAD: usize = 512;

/// Nothing that long comes to nothing by mistake.
const DOUBT: usize = 1 << 16;

pub struct Layer {
    coding: String,
    next: Stage,
    /// What came since the last whole block.
    block: Vec<u8>,
    has_begun: bool,
    /// None if what comes passes as it is.
    unpacker: Option<Unpacker>,
    /// What was unpacked so far, while it may turn out not to be in the coding.
    given: Option<Vec<u8>>,
    /// How many bytes it may still give; None if it gave more. What comes of them at last may be nothing, however many.
    room: Option<u64>,
    is_broken: bool,
    is_refused: bool,
}

impl Layer {
    /// limit: the longest that the body behind all layers may be, in bytes.
    pub fn new(coding: String, next: Stage, limit: u64) -> Self {
        Self {
            coding,
            next,
            room: Some(limit.saturating_add(limit / 8).saturating_add(PIECE as u64)),
            block: Vec::new(),
            has_begun: false,
            unpacker: None,
            given: Some(Vec::new()),
            is_broken: false,
            is_refused: false,
        }
    }

    pub fn feed(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let (part, rest) = data.split_at(data.len().min(PIECE - self.block.len()));
            data = rest;
            if self.block.is_empty() && part.len() == PIECE {
                self.take_block(part, false);
                continue;
            }
            self.block.extend_from_slice(part);
            if self.block.len() == PIECE {
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
        if let Some(unpacker) = &self.unpacker
            && !self.is_broken
            && !self.is_over()
        {
            let end = unpacker.end();
            self.judge(end);
        }
        self.next.end();
    }

    pub fn is_over(&self) -> bool {
        self.room.is_none() || self.next.is_over()
    }

    pub fn outcome(self) -> Outcome {
        let behind = self.next.outcome();
        Outcome {
            output: behind.output,
            is_broken: self.is_broken || behind.is_broken,
            is_refused: self.is_refused || behind.is_refused,
            is_too_long: self.room.is_none() || behind.is_too_long,
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
        let Some(unpacker) = &mut self.unpacker else {
            self.next.feed(block);
            return;
        };
        if let Some(given) = &mut self.given {
            given.extend_from_slice(block);
        }
        let (next, given, room) = (&mut self.next, &mut self.given, &mut self.room);
        let outcome = unpacker.feed(block, &mut |piece| {
            *given = None;
            *room = room.and_then(|left| left.checked_sub(piece.len() as u64));
            next.feed(piece);
            room.is_some() && !next.is_over()
        });
        self.judge(outcome);
        if self.given.as_ref().is_some_and(|given| given.len() > DOUBT) {
            self.given = None;
        }
    }

    /// What breaks before anything came of it was not in the coding, unless all of it is the beginning of something.
    fn judge(&mut self, outcome: Result<(), Broken>) {
        let Err(broken) = outcome else {
            return;
        };
        match self.given.take() {
            Some(given) if !broken.is_beginning => {
                self.unpacker = None;
                self.next.feed(&given);
            }
            _ => self.is_broken = true,
        }
    }

    fn open(&mut self, head: &[u8], is_all: bool) {
        let is_text = !head[..head.len().min(HEAD)].iter().copied().any(is_control);
        if !names::UNDONE.contains(&self.coding.as_str()) {
            self.is_refused = !is_text && names::is_real(&self.coding);
            return;
        }
        self.unpacker = Unpacker::of(&self.coding, head).filter(|found| {
            // Text that says that it is packed: it is text, unless all of it happens to be something packed.
            !is_text || found.is_certain() || (is_all && is_whole(&self.coding, head))
        });
        if self.unpacker.as_ref().is_none_or(Unpacker::is_certain) {
            self.given = None;
        }
    }
}

/// Whether data is packed from its beginning to its end; what gives much is believed without its end.
fn is_whole(coding: &str, data: &[u8]) -> bool {
    let Some(mut unpacker) = Unpacker::of(coding, data) else {
        return false;
    };
    let mut has_much = false;
    let outcome = unpacker.feed(data, &mut |piece| {
        has_much = piece.len() >= PIECE;
        !has_much
    });
    has_much || (outcome.is_ok() && unpacker.end().is_ok())
}

fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1f | 0x7f)
}
