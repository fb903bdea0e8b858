//! Merges profiles of one policy.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::Write;

use super::line::{Holding, ProfileReader};
use crate::mementomap::merge_heads::{Keyed, SmallestFirst};
use crate::mementomap::spill_buffer::SpillBuffer;
use crate::mementomap::{HoldingsError, Progress};

/// The maximum number of profiles that are read at once: each takes an open file, a read-ahead thread and its buffers.
const MAX_OPEN_PROFILES: usize = 64;

/// Memory for the intermediate result while more profiles are pending.
const SPILL_BYTES: usize = 16 << 20;

/// Lines of the intermediate result are as long as their inputs, plus a few digits.
const SPILL_LINE_LIMIT: usize = usize::MAX / 4;

impl Keyed for ProfileReader {
    fn key(&self) -> &[u8] {
        self.row().0
    }
}

/// Merges the lines of profiles: frequency and spread of equal keys are added. Profiles are opened as needed, up to a
/// maximum at once.
pub fn merge_profiles(
    profiles: impl IntoIterator<Item = Result<ProfileReader, HoldingsError>>,
    out: &mut impl Write,
    progress: &Progress,
) -> Result<(), HoldingsError> {
    let mut remaining = profiles.into_iter().peekable();
    let mut merged: Option<ProfileReader> = None;
    loop {
        let mut heads = BinaryHeap::new();
        let ours = merged.take().map(Ok);
        for reader in ours
            .into_iter()
            .chain(remaining.by_ref().take(MAX_OPEN_PROFILES - 1))
        {
            let mut reader = reader?;
            if reader.advance()? {
                heads.push(SmallestFirst(reader));
            }
        }
        if remaining.peek().is_none() {
            let mut line = Vec::new();
            return merge(heads, progress, |key, holding| {
                line.clear();
                holding.write(key, &mut line);
                Ok(out.write_all(&line)?)
            });
        }
        let mut spool = SpillBuffer::new(SPILL_BYTES);
        merge(heads, progress, |key, holding| {
            Ok(spool.append(|text| holding.write(key, text))?)
        })?;
        let text = spool.into_reader()?;
        merged = Some(ProfileReader::new(
            text,
            "what was merged".to_owned(),
            SPILL_LINE_LIMIT,
        )?);
    }
}

fn merge(
    mut heads: BinaryHeap<SmallestFirst<ProfileReader>>,
    progress: &Progress,
    mut write: impl FnMut(&[u8], &Holding) -> Result<(), HoldingsError>,
) -> Result<(), HoldingsError> {
    let mut key = Vec::new();
    let mut sum = Holding::default();
    loop {
        progress.check_cancelled()?;
        let Some(mut first) = heads.peek_mut() else {
            return Ok(());
        };
        let (first_key, holding) = first.0.row();
        key.clear();
        key.extend_from_slice(first_key);
        sum.clone_from(holding);
        if first.0.advance()? {
            drop(first);
        } else {
            PeekMut::pop(first);
        }
        while let Some(mut next) = heads.peek_mut() {
            if next.0.key() != key {
                break;
            }
            if !sum.add(next.0.row().1) {
                return Err(HoldingsError::Overflow { key });
            }
            if !next.0.advance()? {
                PeekMut::pop(next);
            }
        }
        write(&key, &sum)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn merged(profiles: Vec<String>) -> Result<String, HoldingsError> {
        let readers = profiles
            .into_iter()
            .map(|text| ProfileReader::new(std::io::Cursor::new(text), "x".to_owned(), 1000));
        let mut out = Vec::new();
        merge_profiles(readers, &mut out, &Progress::default())?;
        Ok(String::from_utf8(out).expect("ascii"))
    }

    #[test]
    fn more_profiles_than_the_open_limit_merge_into_one() {
        let profile = |i: u64| {
            let mut text = format!("a {{\"frequency\": {i}, \"spread\": 2}}\n");
            let _ = writeln!(text, "b{i:03} {{\"frequency\": 1, \"spread\": 1}}");
            text
        };
        let text = merged((0..200).map(profile).collect()).expect("sorted");
        assert!(text.starts_with("a {\"frequency\": 19900, \"spread\": 400}\nb000 "));
        assert_eq!(text.lines().count(), 201);
        assert_eq!(merged(Vec::new()).expect("nothing"), "");
    }

    #[test]
    fn overflowing_sum_is_an_error() {
        let large = "a {\"frequency\": 999999999999999999, \"spread\": 1}\n".to_owned();
        let error = merged(vec![large.clone(), large]).expect_err("too much");
        assert!(error.to_string().contains("under a"), "{error}");
    }
}
