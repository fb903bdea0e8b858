//! The erasure code: Reed-Solomon over GF(2^16), in rows of bytes.
//!
//! Always the low-rate variant of the crate: a spare row depends only on its source rows and its own number, not on the
//! number of spare rows. More can therefore be made later, and the format needs only one rule for independent decoders.

use std::fmt;

use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{LowRateDecoder, LowRateEncoder, RateDecoder, RateEncoder};

/// The maximum number of rows of one code, needed and spare ones, as in `docs/vault-format.md`. GF(2^16) allows 65,536.
pub const MAX_BLOCKS: usize = 30_000;

/// The code processes 32 numbers of two bytes at once.
const UNIT: usize = 64;

/// Bytes of all rows that are coded at once: more than twice as fast as rows of 50 KB at once.
const CACHED: usize = 16 << 20;

/// The errors of coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeError {
    /// No row is needed, the count is below the needed rows, or above the maximum.
    Counts,
    /// Empty rows, of unequal length, or of a length that is not a multiple of 64.
    Width,
    /// Repeated rows, invalid row numbers, or too few rows.
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

/// The size of the spare rows, `count - needed` of them, for `needed` rows concatenated in `rows`.
pub fn spare_bytes(rows: &[u8], needed: usize, count: usize) -> Result<usize, CodeError> {
    let width = width_of(rows, needed, needed, count)?;
    Ok((count - needed) * width)
}

/// Writes the spare rows of `rows`, concatenated, to `out`, which must have the size of `spare_bytes`.
pub fn encode(rows: &[u8], needed: usize, count: usize, out: &mut [u8]) -> Result<(), CodeError> {
    let width = width_of(rows, needed, needed, count)?;
    let spare = count - needed;
    if out.len() != spare * width {
        return Err(CodeError::Width);
    }
    if spare == 0 {
        return Ok(());
    }
    let engine = DefaultEngine::new();
    let first = column(width, count);
    let mut encoder =
        LowRateEncoder::new(needed, spare, first, engine, None).map_err(|_| CodeError::Counts)?;
    for (start, wide) in columns(width, count) {
        if wide != first {
            encoder
                .reset(needed, spare, wide)
                .map_err(|_| CodeError::Counts)?;
        }
        for row in rows.chunks_exact(width) {
            encoder
                .add_original_shard(&row[start..start + wide])
                .map_err(|_| CodeError::Rows)?;
        }
        let result = encoder.encode().map_err(|_| CodeError::Rows)?;
        for (row, target) in result.recovery_iter().zip(out.chunks_exact_mut(width)) {
            target[start..start + wide].copy_from_slice(row);
        }
    }
    Ok(())
}

/// Reconstructs the `needed` source rows, concatenated, in `out`, from as many rows of any number; `indices` has the
/// numbers. `out` is as long as `rows`.
pub fn decode(
    rows: &[u8],
    indices: &[usize],
    needed: usize,
    count: usize,
    out: &mut [u8],
) -> Result<(), CodeError> {
    let width = width_of(rows, indices.len(), needed, count)?;
    let mut seen = vec![false; count];
    for &index in indices {
        if index >= count || std::mem::replace(&mut seen[index], true) {
            return Err(CodeError::Rows);
        }
    }
    if indices.len() != needed || out.len() != rows.len() {
        return Err(CodeError::Rows);
    }
    let provided = || indices.iter().copied().zip(rows.chunks_exact(width));
    for (index, row) in provided().filter(|&(index, _)| index < needed) {
        out[index * width..][..width].copy_from_slice(row);
    }
    if seen[..needed].iter().all(|&is_there| is_there) {
        return Ok(());
    }
    let spare = count - needed;
    let engine = DefaultEngine::new();
    let first = column(width, count);
    let mut decoder =
        LowRateDecoder::new(needed, spare, first, engine, None).map_err(|_| CodeError::Counts)?;
    for (start, wide) in columns(width, count) {
        if wide != first {
            decoder
                .reset(needed, spare, wide)
                .map_err(|_| CodeError::Counts)?;
        }
        for (index, row) in provided() {
            let piece = &row[start..start + wide];
            let taken = if index < needed {
                decoder.add_original_shard(index, piece)
            } else {
                decoder.add_recovery_shard(index - needed, piece)
            };
            taken.map_err(|_| CodeError::Rows)?;
        }
        let result = decoder.decode().map_err(|_| CodeError::Rows)?;
        for (index, row) in result.restored_original_iter() {
            out[index * width + start..][..wide].copy_from_slice(row);
        }
    }
    Ok(())
}

/// The width of a column of which all rows together fit into the cache of a processor.
fn column(width: usize, count: usize) -> usize {
    (CACHED / count / UNIT * UNIT).clamp(UNIT, width)
}

/// The offsets and widths of columns.
fn columns(width: usize, count: usize) -> impl Iterator<Item = (usize, usize)> {
    let step = column(width, count);
    (0..width)
        .step_by(step)
        .map(move |start| (start, step.min(width - start)))
}

fn width_of(rows: &[u8], provided: usize, needed: usize, count: usize) -> Result<usize, CodeError> {
    if needed == 0 || needed > count || count > MAX_BLOCKS {
        return Err(CodeError::Counts);
    }
    if provided == 0 {
        return Err(CodeError::Rows);
    }
    let width = rows.len() / provided;
    if width == 0 || rows.len() % provided != 0 || width % UNIT != 0 {
        return Err(CodeError::Width);
    }
    Ok(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(rows: &[u8], needed: usize, count: usize) -> Result<Vec<u8>, CodeError> {
        let mut out = vec![0; spare_bytes(rows, needed, count)?];
        super::encode(rows, needed, count, &mut out).map(|()| out)
    }

    fn decode(
        rows: &[u8],
        indices: &[usize],
        needed: usize,
        count: usize,
    ) -> Result<Vec<u8>, CodeError> {
        let mut out = vec![0; rows.len()];
        super::decode(rows, indices, needed, count, &mut out).map(|()| out)
    }

    fn rows(count: usize, width: usize) -> Vec<u8> {
        (0..count * width)
            .map(|place| u8::try_from(place * 31 % 251).unwrap())
            .collect()
    }

    #[test]
    fn any_sufficient_rows_decode() {
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
            let provided: Vec<u8> = last.iter().flat_map(|&index| all[index].clone()).collect();
            assert_eq!(decode(&provided, &last, needed, count).unwrap(), content);
        }
    }

    #[test]
    fn column_width_does_not_change_the_code() {
        // 512 bytes of a row fit for this many.
        let (needed, count) = (3, 30_000);
        let content = rows(needed, 1152);
        let spare = encode(&content, needed, count).unwrap();
        for part in 0..18 {
            let narrow: Vec<u8> = content
                .chunks(1152)
                .flat_map(|row| row[part * 64..][..64].to_vec())
                .collect();
            let out = encode(&narrow, needed, count).unwrap();
            assert_eq!(out[..64], spare[part * 64..][..64]);
        }
        let last: Vec<_> = (count - needed..count).collect();
        let provided = &spare[spare.len() - needed * 1152..];
        assert_eq!(decode(provided, &last, needed, count).unwrap(), content);
    }

    #[test]
    fn spare_rows_do_not_depend_on_their_number() {
        let content = rows(5, 64);
        let few = encode(&content, 5, 9).unwrap();
        let many = encode(&content, 5, 400).unwrap();
        assert_eq!(few, many[..few.len()]);
    }

    #[test]
    fn invalid_codes_are_rejected() {
        assert_eq!(encode(&rows(2, 64), 2, 1), Err(CodeError::Counts));
        assert_eq!(encode(&rows(2, 64), 0, 1), Err(CodeError::Counts));
        assert_eq!(encode(&rows(2, 64), 2, 30_001), Err(CodeError::Counts));
        assert_eq!(encode(&rows(2, 32), 2, 4), Err(CodeError::Width));
        assert_eq!(encode(&[], 2, 4), Err(CodeError::Width));
        let two = rows(2, 64);
        for indices in [&[0, 0][..], &[0, 9], &[1]] {
            let provided = &two[..indices.len() * 64];
            assert_eq!(decode(provided, indices, 2, 4), Err(CodeError::Rows));
        }
        assert_eq!(decode(&[], &[], 2, 4), Err(CodeError::Rows));
    }
}
