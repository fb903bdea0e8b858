//! Pairs any bytes as the visits of a log: pairs of actual visits, counts that add up, shares between 0 and 1; never a
//! panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::refresh::{CELLS, Fields, GROUPS, Learned, Visit, VisitPairer, cell_of_visits};

/// A visit from a line: a number gives time and status, words the headers.
fn visit(line: &[u8]) -> Visit<'_> {
    let mut words = line.split(|&byte| byte == b'\t');
    let mut next = || words.next().filter(|word| !word.is_empty());
    let number = |word: Option<&[u8]>| std::str::from_utf8(word?).ok()?.trim().parse::<i64>().ok();
    Visit {
        uri: next().unwrap_or_default(),
        time: number(next()).unwrap_or_default(),
        status: number(next()).unwrap_or(200),
        digest: next(),
        etag: next(),
        last_modified: next(),
        date: next(),
        cache_control: next(),
        expires: next(),
        age: number(next()),
        content_length: number(next()),
        weight: number(next()),
        server: next(),
        text_digest: next(),
        repr_digest: next(),
    }
}

fuzz_target!(|data: &[u8]| {
    let lines: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
    let mut pairer = VisitPairer::new(160);
    for line in &lines {
        pairer.add(&visit(line)).expect("the disk has room");
    }
    for pair in lines.windows(2) {
        assert!(cell_of_visits(&visit(pair[0]), &visit(pair[1])) < CELLS);
    }
    let history = pairer.finish().expect("the disk has room");
    let visit_stats = history.visit_stats();
    let all = visit_stats.successful
        + visit_stats.not_modified
        + visit_stats.failed
        + visit_stats.without_digest
        + visit_stats.without_host;
    assert_eq!(all, lines.len() as u64);
    assert!(
        history.len() as u64 + visit_stats.pages + visit_stats.duplicate == visit_stats.successful
    );
    for by_text in [false, true] {
        let matrix = history.matrix(by_text);
        let of_hosts = (0..history.hosts().len()).map(|host| history.host_cells(host, by_text));
        let mut sum = [(0, 0); 9];
        for cells in of_hosts {
            for (sum, cell) in sum.iter_mut().zip(cells) {
                *sum = (sum.0 + cell.0, sum.1 + cell.1);
            }
        }
        assert_eq!(sum.to_vec(), matrix.to_vec());
        let _ = history.lying_hosts(by_text);
        let _ = history.spread(by_text, Fields(u8::MAX));
        let splits = history.splits(4);
        let means = vec![vec![0.5; CELLS]; splits.len() + 1];
        let strengths = vec![1.0; GROUPS];
        let learned = Learned {
            means: &means,
            strengths: &strengths,
            fields: Fields(u8::MAX),
            by_text,
            splits: &splits,
        };
        let replay = history.replay(&learned);
        assert!(replay.changed >= 0.0 && replay.unchanged >= 0.0);
    }
});
