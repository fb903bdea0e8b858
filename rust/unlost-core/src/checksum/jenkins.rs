//! Bob Jenkins' hash of 1996 (`lookup2`), with which Firefox checks the files of its cache.
//!
//! It detects torn writes, not tampering.

const GOLDEN_RATIO: u32 = 0x9e37_79b9;

/// The hash of `data`, with the initial value zero.
#[must_use]
pub fn jenkins(data: &[u8]) -> u32 {
    let mut state = [GOLDEN_RATIO, GOLDEN_RATIO, 0];
    let mut chunks = data.chunks_exact(12);
    for chunk in &mut chunks {
        state = mix(state, words(chunk));
    }
    let rest = chunks.remainder();
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    let mut last = words(&last);
    // The lowest byte of the last word is that of the length, which is added modulo 2^32.
    let length = u32::try_from(data.len() & 0xffff_ffff).unwrap_or(0);
    last[2] = (last[2] << 8).wrapping_add(length);
    mix(state, last)[2]
}

fn words(bytes: &[u8]) -> [u32; 3] {
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [word(0), word(4), word(8)]
}

/// Mixes three more words into the state.
fn mix(state: [u32; 3], words: [u32; 3]) -> [u32; 3] {
    let mut a = state[0].wrapping_add(words[0]);
    let mut b = state[1].wrapping_add(words[1]);
    let mut c = state[2].wrapping_add(words[2]);
    for (first, second, third) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> first);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << second);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> third);
    }
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_depends_on_every_byte_and_the_length() {
        let data = [7_u8; 40];
        for length in 0..40 {
            assert_ne!(jenkins(&data[..length]), jenkins(&data[..=length]));
        }
        for place in 0..data.len() {
            let mut other = data;
            other[place] ^= 1;
            assert_ne!(jenkins(&data), jenkins(&other), "{place}");
        }
    }
}
