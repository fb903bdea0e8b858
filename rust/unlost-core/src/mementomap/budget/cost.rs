//! Estimates the size of a line in a compressed file.
//!
//! Deflate (RFC 1951) writes text that occurred within the last 32 KiB as a reference, and everything else byte by
//! byte. This simplified model, without the search for the best reference and without entropy codes, is accurate enough
//! to rank lines.

use super::super::tree_key::common_len;

/// The window of deflate and the maximum length of a reference (RFC 1951, 2).
const WINDOW: usize = 32 << 10;
const MAX_MATCH: usize = 258;
/// Text is collected up to this size, then trimmed to the window.
const MAX_TEXT_BYTES: usize = 1 << 20;
const HASH_BITS: u32 = 15;

/// In bits, fitted to the output of gzip for maps of two real URL lists: a literal byte, a reference without its
/// distance, and each doubling of the distance.
const LITERAL_BITS: f32 = 6.0;
const REFERENCE_BITS: f32 = 5.0;
const DOUBLING_BITS: f32 = 1.0;
/// Of two prefixes within one match, the shorter one is slightly better.
const LONGER_BITS: f32 = 0.02;
/// The end of a wildcard line (`/* 123`) without the digits, and each digit.
const WILDCARD_BITS: f32 = 12.0;
const DIGIT_BITS: f32 = 3.5;
/// The minimum cost of a wildcard as a share of the line that it replaces, if nothing better is known.
const MIN_WILDCARD_SHARE: f32 = 0.9;

/// Estimates the cost of lines in order, in bits.
pub(super) struct LineCost {
    text: Vec<u8>,
    /// By hash of four bytes: the last position, from 1.
    last_seen: Vec<u32>,
    /// Of the last line: where each match ends, and the cost up to there.
    pieces: Vec<(usize, f32)>,
}

impl LineCost {
    pub(super) fn new() -> Self {
        Self {
            text: Vec::new(),
            last_seen: vec![0; 1 << HASH_BITS],
            pieces: Vec::new(),
        }
    }

    /// The cost of the next line. `write` appends it to its argument.
    pub(super) fn line_cost(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> f32 {
        if self.text.len() > MAX_TEXT_BYTES {
            self.cut_back();
        }
        let start = self.text.len();
        write(&mut self.text);
        self.pieces.clear();
        let mut at = start;
        let mut bits = 0.0;
        while at < self.text.len() {
            let (length, cost) = self.next_match(at);
            at += length;
            bits += cost;
            self.pieces.push((at - start, bits));
        }
        bits
    }

    /// The cost of the first `length` bytes of the last line.
    pub(super) fn prefix_cost(&self, length: usize) -> f32 {
        let at = self.pieces.partition_point(|&(end, _)| end < length);
        let piece = self.pieces.get(at).or(self.pieces.last());
        // Lengths of lines.
        #[allow(clippy::cast_precision_loss)]
        let longer = length as f32 * LONGER_BITS;
        piece.map_or(0.0, |&(_, bits)| bits) + longer
    }

    /// The maximum cost of a wildcard that replaces the last line and shares its first `length` bytes: slightly less
    /// than that line, and the less, the shorter it is.
    pub(super) fn max_wildcard_cost(&self, length: usize) -> f32 {
        let &(whole, bits) = self.pieces.last().unwrap_or(&(1, 0.0));
        // Lengths of lines.
        #[allow(clippy::cast_precision_loss)]
        let part = length as f32 / whole.max(1) as f32;
        bits * (MIN_WILDCARD_SHARE + (1.0 - MIN_WILDCARD_SHARE) * part)
    }

    /// The cost of a wildcard line with the given prefix cost over `keys` keys.
    pub(super) fn wildcard_cost(beginning: f32, max_wildcard: f32, keys: u32) -> f32 {
        // Logarithms of small numbers.
        #[allow(clippy::cast_precision_loss)]
        let digits = keys.max(1).ilog10() as f32 + 1.0;
        (beginning + WILDCARD_BITS + DIGIT_BITS * digits).min(max_wildcard)
    }

    /// Length and cost of the next literal or reference.
    fn next_match(&mut self, at: usize) -> (usize, f32) {
        let Some(four) = self.text.get(at..at + 4) else {
            return (1, LITERAL_BITS);
        };
        let word = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        let hash = (word.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize;
        // Texts are trimmed long before their length overflows.
        #[allow(clippy::cast_possible_truncation)]
        let before = std::mem::replace(&mut self.last_seen[hash], at as u32 + 1) as usize;
        if before == 0 || at + 1 - before > WINDOW {
            return (1, LITERAL_BITS);
        }
        let rest = &self.text[at..self.text.len().min(at + MAX_MATCH)];
        let length = common_len(&self.text[before - 1..], rest);
        if length < 4 {
            return (1, LITERAL_BITS);
        }
        // At most the window.
        #[allow(clippy::cast_precision_loss)]
        let doublings = (at + 1 - before).ilog2() as f32;
        (length, REFERENCE_BITS + DOUBLING_BITS * doublings)
    }

    fn cut_back(&mut self) {
        let excess = self.text.len() - WINDOW;
        self.text.drain(..excess);
        for position in &mut self.last_seen {
            // Far below the size of a text.
            #[allow(clippy::cast_possible_truncation)]
            let excess = excess as u32;
            *position = position.saturating_sub(excess);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_text_is_cheap() {
        let mut cost = LineCost::new();
        let mut line =
            |text: &str| cost.line_cost(|out: &mut Vec<u8>| out.extend_from_slice(text.as_bytes()));
        let new = line("com,example)/a/long/way/down 1\n");
        let same_folder = line("com,example)/a/long/way/up 1\n");
        let another = line("org,different)/quite/another/place 1\n");
        assert!(same_folder < new / 2.0, "{same_folder} {new}");
        assert!(another > same_folder * 2.0, "{another} {same_folder}");
        assert!(cost.prefix_cost(4) < cost.prefix_cost(20));
    }

    #[test]
    fn long_text_is_trimmed_to_the_window() {
        let mut cost = LineCost::new();
        for number in 0..100_000 {
            let line = format!("com,example)/page/{number} 1\n");
            cost.line_cost(|out| out.extend_from_slice(line.as_bytes()));
        }
        assert!(cost.text.len() <= MAX_TEXT_BYTES + 100);
        let again = cost.line_cost(|out| out.extend_from_slice(b"com,example)/page/99999 1\n"));
        assert!(again < 40.0, "{again}");
    }
}
