//! Queries filters for one or many pages.

use std::thread;

use super::file::{Filter, FilterError};
use super::hash::xxh64;
use super::hashes::joined;
use super::header::KeyKind;
use crate::mementomap::key_lines::{key_lines, shares};
use crate::uri::{RuleSet, UriError, alternative_keys, key_of_uri};

/// The minimum number of hashes per thread: starting a thread costs as much as some thousand of them.
const MIN_HASHES: usize = 16_384;

/// Bytes of keys that correspond to that many hashes.
const MIN_BYTES: usize = MIN_HASHES * 32;

/// The minimum number of URLs per thread.
const MIN_URIS: usize = 512;

impl KeyKind {
    /// The hash of a normalized key, which ends at the first white space.
    #[must_use]
    pub fn hash_key(self, key: &[u8]) -> u64 {
        let end = key.iter().position(|&byte| byte <= b' ');
        self.hash_normal(&key[..end.unwrap_or(key.len())])
    }

    fn hash_normal(self, key: &[u8]) -> u64 {
        match memchr::memchr(b'?', key) {
            Some(query) if self == Self::Hxpx => xxh64(&key[..query]),
            _ => xxh64(key),
        }
    }

    /// The hash of the key of a URL, or of a SURT. `key_buffer` is reused memory.
    pub fn hash_uri(
        self,
        uri: &[u8],
        rules: RuleSet,
        key_buffer: &mut Vec<u8>,
    ) -> Result<u64, UriError> {
        key_buffer.clear();
        key_of_uri(uri, rules, key_buffer)?;
        Ok(self.hash_normal(key_buffer))
    }
}

/// Whether a filter contains the page of a URL, by its own key or by one that other tools derive. The error is that of
/// an invalid URL. `key_buffer` is reused memory.
pub fn contains_uri<B: AsRef<[u8]>>(
    filter: &Filter<B>,
    uri: &[u8],
    key_buffer: &mut Vec<u8>,
) -> Result<Result<bool, UriError>, FilterError> {
    let (kind, rules) = (filter.kind(), filter.rules());
    let hash = match kind.hash_uri(uri, rules, key_buffer) {
        Ok(hash) => hash,
        Err(error) => return Ok(Err(error)),
    };
    let mut is_held = filter.has(hash)?;
    if !is_held {
        for key in alternative_keys(uri, rules) {
            is_held = is_held || filter.has(kind.hash_normal(&key))?;
        }
    }
    Ok(Ok(is_held))
}

/// One result per hash, in order.
pub fn contains_each<B: AsRef<[u8]> + Sync>(
    filter: &Filter<B>,
    hashes: &[u64],
    threads: usize,
) -> Result<Vec<bool>, FilterError> {
    let share = hashes.len().div_ceil(threads.max(1)).max(MIN_HASHES);
    let query = |part: &[u64]| part.iter().map(|&hash| filter.has(hash)).collect();
    if hashes.len() <= share {
        return query(hashes);
    }
    concat_results(hashes.chunks(share).map(|part| move || query(part)))
}

/// One result per line of a text, which begins with a normalized key, in order.
pub fn contains_each_line<B: AsRef<[u8]> + Sync>(
    filter: &Filter<B>,
    text: &[u8],
    threads: usize,
) -> Result<Vec<bool>, FilterError> {
    let kind = filter.kind();
    let share = text.len().div_ceil(threads.max(1)).max(MIN_BYTES);
    let query = |part: &[u8]| {
        key_lines(part)
            .map(|key| filter.has(kind.hash_key(key)))
            .collect()
    };
    if text.len() <= share {
        return query(text);
    }
    concat_results(shares(text, share).map(|part| move || query(part)))
}

/// One result per URL, or the error of an invalid one, in order.
pub fn contains_each_uri<B: AsRef<[u8]> + Sync, Q: AsRef<[u8]> + Sync>(
    filter: &Filter<B>,
    queries: &[Q],
    threads: usize,
) -> Result<Vec<Result<bool, UriError>>, FilterError> {
    let share = queries.len().div_ceil(threads.max(1)).max(MIN_URIS);
    let query = |part: &[Q]| {
        let mut key_buffer = Vec::new();
        part.iter()
            .map(|uri| contains_uri(filter, uri.as_ref(), &mut key_buffer))
            .collect()
    };
    if queries.len() <= share {
        return query(queries);
    }
    concat_results(queries.chunks(share).map(|part| move || query(part)))
}

/// Concatenates the results of all tasks; each has a thread.
fn concat_results<T: Send>(
    pieces: impl Iterator<Item = impl FnOnce() -> Result<Vec<T>, FilterError> + Send>,
) -> Result<Vec<T>, FilterError> {
    thread::scope(|scope| {
        let workers: Vec<_> = pieces.map(|piece| scope.spawn(piece)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.append(&mut joined(worker)?);
        }
        Ok(all)
    })
}
