//! What a line costs in a file that is published compressed.
//!
//! Deflate writes what it has seen within the last 32 KiB as a reference, and everything else byte by byte. Doing that
//! without the search for the best reference and without the codes tells well enough which lines are dear.

use super::super::order::common_len;

/// How far back deflate looks, and how long a reference may be.
const WINDOW: usize = 32 << 10;
const LONGEST: usize = 258;
/// Text is kept up to here, then cut back to the window.
const KEPT: usize = 1 << 20;
const HASH_BITS: u32 = 15;

/// In bits, fitted to gzip over the maps of both real URL lists: a byte by itself, a reference without its distance,
/// and each doubling of the distance.
const LITERAL: f32 = 6.0;
const REFERENCE: f32 = 5.0;
const DOUBLING: f32 = 1.0;
/// Of two beginnings within one piece the shorter is a little better.
const LONGER: f32 = 0.02;
/// What ends a wildcard line (`/* 123`) beside the digits, and each digit.
const WILDCARD: f32 = 12.0;
const DIGIT: f32 = 3.5;
/// Of the line that it stands for, a wildcard costs this part at least where nothing better is known.
const SHORTEST: f32 = 0.9;

/// Reads lines in their order, and says what each costs, in bits.
pub(super) struct LineCost {
    text: Vec<u8>,
    /// By hash of four bytes: where they were seen last, from 1.
    places: Vec<u32>,
    /// Of the last line: where each piece ends, and what everything up to there costs.
    pieces: Vec<(usize, f32)>,
}

impl LineCost {
    pub(super) fn new() -> Self {
        Self {
            text: Vec::new(),
            places: vec![0; 1 << HASH_BITS],
            pieces: Vec::new(),
        }
    }

    /// What the next line costs. `write` appends it to what it is given.
    pub(super) fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> f32 {
        if self.text.len() > KEPT {
            self.cut_back();
        }
        let start = self.text.len();
        write(&mut self.text);
        self.pieces.clear();
        let mut at = start;
        let mut bits = 0.0;
        while at < self.text.len() {
            let (length, cost) = self.piece(at);
            at += length;
            bits += cost;
            self.pieces.push((at - start, bits));
        }
        bits
    }

    /// What the first so many bytes of the last line cost.
    pub(super) fn beginning(&self, length: usize) -> f32 {
        let at = self.pieces.partition_point(|&(end, _)| end < length);
        let piece = self.pieces.get(at).or(self.pieces.last());
        // Lengths of lines.
        #[allow(clippy::cast_precision_loss)]
        let longer = length as f32 * LONGER;
        piece.map_or(0.0, |&(_, bits)| bits) + longer
    }

    /// What a wildcard costs at most that stands for the last line, of which it has the first so many bytes: a little
    /// less than that line, and the less, the shorter it is.
    pub(super) fn most(&self, length: usize) -> f32 {
        let &(whole, bits) = self.pieces.last().unwrap_or(&(1, 0.0));
        // Lengths of lines.
        #[allow(clippy::cast_precision_loss)]
        let part = length as f32 / whole.max(1) as f32;
        bits * (SHORTEST + (1.0 - SHORTEST) * part)
    }

    /// What a wildcard line costs whose beginning costs so much, over so many keys.
    pub(super) fn wildcard(beginning: f32, most: f32, keys: u32) -> f32 {
        // Logarithms of small numbers.
        #[allow(clippy::cast_precision_loss)]
        let digits = keys.max(1).ilog10() as f32 + 1.0;
        (beginning + WILDCARD + DIGIT * digits).min(most)
    }

    /// Length and cost of what deflate would write next.
    fn piece(&mut self, at: usize) -> (usize, f32) {
        let Some(four) = self.text.get(at..at + 4) else {
            return (1, LITERAL);
        };
        let word = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        let hash = (word.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize;
        // Texts are cut back long before their length overflows.
        #[allow(clippy::cast_possible_truncation)]
        let before = std::mem::replace(&mut self.places[hash], at as u32 + 1) as usize;
        if before == 0 || at + 1 - before > WINDOW {
            return (1, LITERAL);
        }
        let rest = &self.text[at..self.text.len().min(at + LONGEST)];
        let length = common_len(&self.text[before - 1..], rest);
        if length < 4 {
            return (1, LITERAL);
        }
        // At most the window's.
        #[allow(clippy::cast_precision_loss)]
        let doublings = (at + 1 - before).ilog2() as f32;
        (length, REFERENCE + DOUBLING * doublings)
    }

    fn cut_back(&mut self) {
        let gone = self.text.len() - WINDOW;
        self.text.drain(..gone);
        for place in &mut self.places {
            // Far below the size of a text.
            #[allow(clippy::cast_possible_truncation)]
            let gone = gone as u32;
            *place = place.saturating_sub(gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_before_is_cheap() {
        let mut cost = LineCost::new();
        let mut line =
            |text: &str| cost.line(|out: &mut Vec<u8>| out.extend_from_slice(text.as_bytes()));
        let new = line("com,example)/a/long/way/down 1\n");
        let same_folder = line("com,example)/a/long/way/up 1\n");
        let another = line("org,different)/quite/another/place 1\n");
        assert!(same_folder < new / 2.0, "{same_folder} {new}");
        assert!(another > same_folder * 2.0, "{another} {same_folder}");
        assert!(cost.beginning(4) < cost.beginning(20));
    }

    #[test]
    fn a_long_text_is_cut_back() {
        let mut cost = LineCost::new();
        for number in 0..100_000 {
            let line = format!("com,example)/page/{number} 1\n");
            cost.line(|out| out.extend_from_slice(line.as_bytes()));
        }
        assert!(cost.text.len() <= KEPT + 100);
        let again = cost.line(|out| out.extend_from_slice(b"com,example)/page/99999 1\n"));
        assert!(again < 40.0, "{again}");
    }
}
