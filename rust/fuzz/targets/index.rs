//! Counts and describes any bytes as an index: the map covers the pages of the rows, statistics count the same rows;
//! never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::index::Layout as Columns;
use unlost_core::mementomap::lookup::{Layout, QueryKind, SearchableMap, TextMap, with_workers};
use unlost_core::mementomap::stats::{Estimator, StatisticsCollector};
use unlost_core::mementomap::{BuildOptions, Builder, Excluded, Progress, RowFilter};
use unlost_core::uri::RuleSet;

fn build_options(block_bytes: usize) -> BuildOptions {
    BuildOptions {
        threads: 1,
        memory: 1 << 12,
        line_limit: 300,
        block_bytes,
    }
}

fuzz_target!(|data: &[u8]| {
    // The first byte selects the row filter and the block size.
    let Some((&first, text)) = data.split_first() else {
        return;
    };
    let layout = (first & 1 > 0).then_some(Columns::Urls { column: None });
    let row_filter = RowFilter {
        by_year: first & 2 > 0,
        status: if first & 4 > 0 {
            vec![b"200".to_vec()]
        } else {
            Vec::new()
        },
        exclude: if first & 8 > 0 {
            vec![Excluded::Robots, Excluded::Sitemaps]
        } else {
            Vec::new()
        },
        ..RowFilter::default()
    };
    let block = 1 + usize::from(first >> 4) * 16;
    let progress = Progress::default();
    let mut collector = StatisticsCollector::new(RowFilter::default(), build_options(block));
    if collector.add_file(text, layout.clone(), &progress).is_ok() {
        let _ = collector.finish();
    }
    let mut estimator = Estimator::new(RowFilter::default(), build_options(block), None);
    if estimator.add_file(text, layout.clone(), &progress).is_ok() {
        let found = estimator.finish();
        let (about, low, high) = found.uris.estimate();
        assert!(low <= about && about <= high);
    }
    let written = [block, 1 << 16].map(|block| {
        let mut builder = Builder::new(row_filter.clone(), build_options(block), false);
        let (line_stats, _) = builder.add_file(text, layout.clone(), &progress).ok()?;
        let mut out = Vec::new();
        builder
            .finish(&progress)
            .ok()?
            .write(None, &mut out, &progress)
            .ok()?;
        Some((line_stats, out))
    });
    // Block boundaries do not matter, except for a first block too short to detect the layout.
    let [Some(first_made), Some((line_stats, map))] = &written else {
        return;
    };
    assert_eq!((&first_made.0, &first_made.1), (line_stats, map));
    let known: u64 = line_stats
        .problems
        .values()
        .map(|problem| problem.count)
        .sum();
    assert!(
        line_stats.counted + line_stats.foreign + line_stats.filtered + known
            <= 2 * line_stats.lines
    );
    if first & 15 != 1 {
        return;
    }
    // A URL list: everything counted is held.
    let map_layout = Layout {
        frequency: Some(1),
        is_rolled_up: false,
    };
    let form = SearchableMap::Text(TextMap::new(map.as_slice(), map_layout));
    for line in text.split(|&byte| byte == b'\n') {
        let results = with_workers(&form, QueryKind::Uris(RuleSet::Wayback), 1, |mut pool| {
            pool.submit(std::iter::once(line).collect());
            pool.finish()
        });
        let results = results.expect("a map is in order");
        let mut alone = Builder::new(row_filter.clone(), build_options(1 << 16), false);
        let counted = alone
            .add_file(line, layout.clone(), &progress)
            .is_ok_and(|(line_stats, _)| line_stats.counted > 0);
        if counted && !text.starts_with(b"\x1f\x8b") && !text.starts_with(b"\x28\xb5\x2f\xfd") {
            assert!(
                results
                    .iter()
                    .all(|answer| answer.get(0).is_ok_and(|answer| answer.matched.is_some()))
            );
        }
    }
});
