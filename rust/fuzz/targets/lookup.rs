//! Looks up any key in any bytes as a map: a result or an error, never a panic; in sorted rows, the same result from
//! the file and from memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::mementomap::lookup::{
    Layout, LookupResults, MemoryMapBuilder, NotSorted, QueryKind, SearchableMap, TextMap,
    check_first_row, header_end, with_workers,
};
use unlost_core::uri::RuleSet;

/// The in-memory form; `None` if the rows are not sorted.
fn load(text: &[u8], layout: Layout) -> Option<SearchableMap<Vec<u8>>> {
    let mut builder = MemoryMapBuilder::new(layout);
    for line in text.split(|&byte| byte == b'\n') {
        builder.push(line, 0).ok()?;
    }
    Some(SearchableMap::Memory(builder.finish()))
}

fn query_all<B: AsRef<[u8]> + Sync>(
    map: &SearchableMap<B>,
    queries: &[&[u8]],
    kind: QueryKind,
) -> Result<Vec<LookupResults>, NotSorted> {
    with_workers(map, kind, 1, |mut pool| {
        pool.submit(queries.iter().copied().collect());
        pool.finish()
    })
}

fuzz_target!(|data: &[u8]| {
    // The first byte selects the layout; then queries, one per line, up to an empty one; then the map.
    let Some((&kind, data)) = data.split_first() else {
        return;
    };
    let layout = Layout {
        frequency: (kind & 3 > 0).then_some(usize::from(kind & 3)),
        is_rolled_up: kind & 4 > 0,
    };
    let (query_text, map) = match data.windows(2).position(|pair| pair == b"\n\n") {
        Some(end) => (&data[..end], &data[end + 2..]),
        None => (data, data),
    };
    let end = header_end(map);
    let _ = check_first_row(&map[..end], Some(&map[end..]));
    // Random rows are seldom sorted, so they are also tested after sorting.
    let mut rows: Vec<&[u8]> = map.split(|&byte| byte == b'\n').collect();
    rows.sort_by_key(|row| {
        let row = row.trim_ascii_start();
        row.split(|&byte| byte <= b' ').next().map(<[u8]>::to_vec)
    });
    let sorted = rows.join(&b'\n');
    let queries: Vec<&[u8]> = query_text.split(|&byte| byte == b'\n').collect();
    for kind in [QueryKind::Keys, QueryKind::Uris(RuleSet::Wayback)] {
        for text in [map, &sorted] {
            let in_file = query_all(
                &SearchableMap::Text(TextMap::new(text, layout)),
                &queries,
                kind,
            );
            let Some(memory) = load(text, layout) else {
                continue;
            };
            let in_memory = query_all(&memory, &queries, kind).expect("it was sorted");
            let in_file = in_file.expect("it is sorted");
            for (a, b) in in_file.iter().zip(&in_memory) {
                assert!((0..a.len().max(b.len())).all(|i| a.get(i) == b.get(i)));
            }
        }
    }
});
