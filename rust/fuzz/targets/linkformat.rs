//! Parses any bytes as a `TimeMap`: valid dates, URLs that fit between brackets, every entry accounted for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::memento::httpdate;
use unlost_core::memento::link_format;

fuzz_target!(|text: &[u8]| {
    let timemap = link_format::read(text);
    for memento in &timemap.mementos {
        assert_eq!(
            httpdate::from_digits(&memento.datetime),
            Some(memento.datetime)
        );
        assert!(!memento.uri.is_empty() && !memento.uri.contains(['<', '\n', '\r', '\0']));
    }
    let faults: usize = timemap.faults.iter().map(|(times, _)| times).sum();
    let brackets = text.iter().filter(|&&byte| byte == b'<').count();
    assert!(timemap.mementos.len() + timemap.timemaps.len() + timemap.other_links <= 2 * brackets);
    assert!(faults <= brackets + 1);
    for (times, first) in timemap.faults {
        assert!(times == 0 || first < text.len());
    }
});
