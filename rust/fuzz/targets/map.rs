//! Parses, sorts, compacts, splits and merges any bytes as a map: pages that were held stay held; never a panic.
#![no_main]

use std::collections::HashSet;
use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use unlost_core::mementomap::lookup::{
    Layout, NotSorted, QueryKind, SearchableMap, TextMap, header_end, query_one,
};
use unlost_core::mementomap::{
    self, BuildOptions, Builder, Compaction, Curve, Entry, Frequency, MapReader, Progress,
    RowFilter, Source, add_totals, compact, merge_maps, read_map_lines, split_lines,
};

const LINE: usize = 300;
/// The output may be longer than the input: a byte of a key can become three.
const WRITTEN: usize = LINE * 4;

fn compaction(weight: f64) -> Compaction {
    let curve = |depth| Curve {
        a: 3.0,
        k: 0.5,
        weight,
        depth,
    };
    Compaction {
        host: curve(4),
        path: curve(5),
        forced_keys: HashSet::new(),
    }
}

/// The sorted map, as `map build` makes it of another.
fn rebuilt(text: &[u8], line_limit: usize) -> Option<Vec<u8>> {
    let build_options = BuildOptions {
        threads: 1,
        memory: 1 << 16,
        line_limit,
        block_bytes: 1 << 16,
    };
    let progress = Progress::default();
    let mut builder = Builder::new(RowFilter::default(), build_options, false);
    let mut reader = MapReader::new(Cursor::new(text.to_vec()), 1, line_limit).ok()?;
    reader.any_order = true;
    builder.add_map(&mut reader, true, &progress).ok()?;
    let mut out = Vec::new();
    let counts = builder.finish(&progress).ok()?;
    counts.write(None, &mut out, &progress).ok()?;
    Some(out)
}

const LAYOUT: Layout = Layout {
    frequency: Some(1),
    is_rolled_up: false,
};

fn is_held(map: &[u8], key: &[u8]) -> Option<bool> {
    let form = SearchableMap::Text(TextMap::new(&map[header_end(map)..], LAYOUT));
    let results = query_one(&form, key, QueryKind::Keys).ok()?;
    let found = results.get(0).ok()?.matched;
    Some(found.is_some_and(|(_, frequency)| frequency.is_held()))
}

struct InMemory(TextMap<Vec<u8>>);

impl mementomap::KeyLookup for InMemory {
    fn look_up(&mut self, key: &[u8]) -> Result<Option<Frequency>, NotSorted> {
        self.0.seeker(1)?.seek(key, &mut Vec::new())
    }
}

fn merged(maps: &[Vec<u8>]) -> Option<Vec<u8>> {
    let source = |map: &Vec<u8>| Source {
        name: "a map".to_owned(),
        reader: MapReader::new(Cursor::new(map.clone()), 1, WRITTEN).expect("it is in memory"),
        lookup: Box::new(InMemory(TextMap::new(map.clone(), LAYOUT))),
    };
    let mut out = Vec::new();
    merge_maps(
        maps.iter().map(source).collect(),
        1 << 16,
        &mut out,
        &Progress::default(),
    )
    .ok()?;
    Some(out)
}

/// A page held by one map is not denied by the other.
fn assert_none_denied(before: &[u8], after: &[u8]) {
    for line in before.split(|&byte| byte == b'\n') {
        let Some((entry, _)) = Entry::read(line, 1) else {
            continue;
        };
        if entry.frequency.is_held()
            && !entry.key.contains(&b'*')
            && is_held(before, entry.key) == Some(true)
        {
            assert_ne!(is_held(after, entry.key), Some(false));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    for fields in [1, 2] {
        if let Ok(map_lines) = read_map_lines(data.to_vec(), fields, LINE) {
            let _ = add_totals(&map_lines.totals, fields);
            let parts = split_lines(
                &map_lines.lines,
                &[b"com,".to_vec(), b"org,".to_vec()],
                fields == 2,
            );
            let size: usize = parts.iter().map(|(_, text)| text.len()).sum();
            assert_eq!(size, map_lines.lines.len());
            // The output is read again unchanged.
            let again =
                read_map_lines(map_lines.lines.clone(), fields, WRITTEN).expect("it was in order");
            assert_eq!(again.lines, map_lines.lines);
        }
    }
    let Some(map) = rebuilt(data, LINE) else {
        return;
    };
    assert_eq!(rebuilt(&map, WRITTEN).as_ref(), Some(&map));
    for weight in [0.2, 1.0] {
        let mut reader =
            MapReader::new(Cursor::new(map.clone()), 1, WRITTEN).expect("it is in memory");
        let mut small = Vec::new();
        let progress = Progress::default();
        if compact(
            &mut reader,
            1,
            &compaction(weight),
            1 << 16,
            &mut small,
            &progress,
        )
        .is_err()
        {
            return;
        }
        assert_none_denied(&map, &small);
    }
    // Every second line, and the others.
    let lines: Vec<&[u8]> = map.split_inclusive(|&byte| byte == b'\n').collect();
    let halves = [0, 1].map(|first| {
        let every_second = lines.iter().skip(first).step_by(2);
        every_second.copied().collect::<Vec<_>>().concat()
    });
    if let Some(whole) = merged(&halves) {
        for half in &halves {
            assert_none_denied(half, &whole);
        }
    }
});
