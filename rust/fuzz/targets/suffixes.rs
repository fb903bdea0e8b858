//! Parses any bytes as a Public Suffix List and a host; never a panic, and never more labels than there are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::uri::{Section, Suffixes};

fuzz_target!(|input: &[u8]| {
    let (host, list) = match input.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &b""[..]),
    };
    let labels: Vec<&[u8]> = host.split(|&byte| byte == b',').collect();
    for section in [Section::All, Section::Icann] {
        let Ok(suffixes) = Suffixes::read(list, section) else {
            continue;
        };
        let registered = suffixes.registered_len(&labels);
        assert!((1..=labels.len()).contains(&registered));
    }
});
