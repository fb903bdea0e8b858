//! The erasure code: Reed-Solomon over GF(2^16), in rows of bytes.
//!
//! Always the crate's low rate: in it a spare row depends on the rows that it is made of and its own number alone, not on
//! how many there are. So more can be made later, and there is one rule to write down for whoever decodes without us.

use std::fmt;

use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{LowRateDecoder, LowRateEncoder, RateDecoder, RateEncoder};

/// Rows of one code: needed ones and spare ones together.
pub const MAX_BLOCKS: usize = 30_000;

/// The code works on 32 numbers of two bytes at once.
const UNIT: usize = 64;

/// Why nothing was coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeError {
    /// No row is needed, fewer than needed are made, or more than can be.
    Counts,
    /// Rows of no bytes, of unequal length, or of a length that is no multiple of 64.
    Width,
    /// Rows given twice, with a number that is none, or fewer than needed.
    Rows,
}

impl fmt::Display for CodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Counts => "expected 1 to 30,000 blocks, and no more needed than made",
            Self::Width => "expected rows of one length, a multiple of 64 bytes",
            Self::Rows => "expected as many different rows as are needed",
        })
    }
}

impl std::error::Error for CodeError {}

/// The spare rows, `count - needed` of them, one behind the other, for `needed` rows that stand so in `rows`.
pub fn encode(rows: &[u8], needed: usize, count: usize) -> Result<Vec<u8>, CodeError> {
    let width = width_of(rows, needed, needed, count)?;
    let spare = count - needed;
    let mut made = Vec::with_capacity(spare * width);
    if spare == 0 {
        return Ok(made);
    }
    let mut encoder = LowRateEncoder::new(needed, spare, width, DefaultEngine::new(), None)
        .map_err(|_| CodeError::Counts)?;
    for row in rows.chunks_exact(width) {
        encoder
            .add_original_shard(row)
            .map_err(|_| CodeError::Rows)?;
    }
    let result = encoder.encode().map_err(|_| CodeError::Rows)?;
    for row in result.recovery_iter() {
        made.extend_from_slice(row);
    }
    Ok(made)
}

/// The `needed` rows that were coded, one behind the other, from as many rows of any number; `indices` has the numbers.
pub fn decode(
    rows: &[u8],
    indices: &[usize],
    needed: usize,
    count: usize,
) -> Result<Vec<u8>, CodeError> {
    let width = width_of(rows, indices.len(), needed, count)?;
    let mut seen = vec![false; count];
    for &index in indices {
        if index >= count || std::mem::replace(&mut seen[index], true) {
            return Err(CodeError::Rows);
        }
    }
    if indices.len() != needed {
        return Err(CodeError::Rows);
    }
    let mut made = vec![0; needed * width];
    let given = || indices.iter().copied().zip(rows.chunks_exact(width));
    for (index, row) in given().filter(|&(index, _)| index < needed) {
        made[index * width..][..width].copy_from_slice(row);
    }
    if seen[..needed].iter().all(|&is_there| is_there) {
        return Ok(made);
    }
    let mut decoder =
        LowRateDecoder::new(needed, count - needed, width, DefaultEngine::new(), None)
            .map_err(|_| CodeError::Counts)?;
    for (index, row) in given() {
        let taken = if index < needed {
            decoder.add_original_shard(index, row)
        } else {
            decoder.add_recovery_shard(index - needed, row)
        };
        taken.map_err(|_| CodeError::Rows)?;
    }
    let result = decoder.decode().map_err(|_| CodeError::Rows)?;
    for (index, row) in result.restored_original_iter() {
        made[index * width..][..width].copy_from_slice(row);
    }
    Ok(made)
}

fn width_of(rows: &[u8], given: usize, needed: usize, count: usize) -> Result<usize, CodeError> {
    if needed == 0 || needed > count || count > MAX_BLOCKS {
        return Err(CodeError::Counts);
    }
    if given == 0 {
        return Err(CodeError::Rows);
    }
    let width = rows.len() / given;
    if width == 0 || rows.len() % given != 0 || width % UNIT != 0 {
        return Err(CodeError::Width);
    }
    Ok(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize, width: usize) -> Vec<u8> {
        (0..count * width)
            .map(|place| u8::try_from(place * 31 % 251).unwrap())
            .collect()
    }

    #[test]
    fn any_rows_suffice() {
        for (needed, count) in [(1, 4), (3, 8), (8, 8), (21, 30), (5, 300)] {
            let content = rows(needed, 128);
            let spare = encode(&content, needed, count).unwrap();
            let all: Vec<_> = content
                .chunks(128)
                .chain(spare.chunks(128))
                .map(<[u8]>::to_vec)
                .collect();
            assert_eq!(all.len(), count);
            let last: Vec<_> = (count - needed..count).rev().collect();
            let given: Vec<u8> = last.iter().flat_map(|&index| all[index].clone()).collect();
            assert_eq!(decode(&given, &last, needed, count).unwrap(), content);
        }
    }

    #[test]
    fn spare_rows_do_not_depend_on_how_many_there_are() {
        let content = rows(5, 64);
        let few = encode(&content, 5, 9).unwrap();
        let many = encode(&content, 5, 400).unwrap();
        assert_eq!(few, many[..few.len()]);
    }

    #[test]
    fn what_makes_no_code_is_refused() {
        assert_eq!(encode(&rows(2, 64), 2, 1), Err(CodeError::Counts));
        assert_eq!(encode(&rows(2, 64), 0, 1), Err(CodeError::Counts));
        assert_eq!(encode(&rows(2, 64), 2, 30_001), Err(CodeError::Counts));
        assert_eq!(encode(&rows(2, 32), 2, 4), Err(CodeError::Width));
        assert_eq!(encode(&[], 2, 4), Err(CodeError::Width));
        let two = rows(2, 64);
        for indices in [&[0, 0][..], &[0, 9], &[1]] {
            let given = &two[..indices.len() * 64];
            assert_eq!(decode(given, indices, 2, 4), Err(CodeError::Rows));
        }
        assert_eq!(decode(&[], &[], 2, 4), Err(CodeError::Rows));
    }
}
