//! Opens any bytes as a filter, also with valid checksums: a result or an error, never a panic; damage found by a query
//! is also found by a check.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::mementomap::filter::{Filter, contains_each, xxh64};

/// The same bytes as a filter of one partition with valid checksums.
fn mended(data: &[u8]) -> Option<Vec<u8>> {
    let text = data.windows(2).position(|pair| pair == b"\n\n")? + 2;
    let mut mended = data.to_vec();
    let (head, rest) = mended.split_at_mut_checked(text + 24)?;
    let (checksum, body) = rest.split_at_mut_checked(8)?;
    head[text..text + 8].copy_from_slice(&xxh64(body).to_le_bytes());
    checksum.copy_from_slice(&xxh64(head).to_le_bytes());
    Some(mended)
}

fn check_filter(data: &[u8]) {
    let Ok(filter) = Filter::open(data) else {
        return;
    };
    let is_sound = filter.check().is_empty();
    for header in filter.headers() {
        assert!((1..=16).contains(&header.bits));
    }
    let hashes: Vec<u64> = (0..100u64).map(|i| xxh64(&i.to_le_bytes())).collect();
    let mut queries = [hashes.as_slice(), &[0, u64::MAX, xxh64(data)]].concat();
    queries.dedup();
    // Opened again: verified partitions are not verified again.
    let again = Filter::open(data).expect("it was opened before");
    match contains_each(&again, &queries, 1) {
        Ok(results) => assert_eq!(results.len(), queries.len()),
        Err(_) => assert!(!is_sound),
    }
}

fuzz_target!(|data: &[u8]| {
    check_filter(data);
    if let Some(mended) = mended(data) {
        check_filter(&mended);
    }
});
