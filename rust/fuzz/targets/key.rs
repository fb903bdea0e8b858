//! Normalizes any bytes as an index row's key and URL: an idempotent key, or an error; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::uri::{
    ALL_POLICIES, Policy, RuleSet, Section, Segments, Suffixes, key_of_row, normal_key, plain_uri,
    spellings,
};

fuzz_target!(|row: &[u8]| {
    // Policy names are parsed from the same bytes: a valid one round-trips to the same policy.
    if let Some(policy) = std::str::from_utf8(row)
        .ok()
        .and_then(|name| name.parse::<Policy>().ok())
    {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let (key, uri) = match row.iter().position(|&byte| byte == b' ') {
        Some(space) => (&row[..space], &row[space + 1..]),
        None => (row, &b""[..]),
    };
    let suffixes = Suffixes::built_in(Section::All);
    for rules in RuleSet::ALL {
        // The fast path gives the same result, if any.
        if let Some(plain) = plain_uri(key, 0) {
            let mut normal = Vec::new();
            normal_key(key, rules, &mut normal).expect("a plain key is a key");
            assert_eq!(plain, normal);
        }
        let mut first = Vec::new();
        if key_of_row(key, uri, rules, &mut first).is_err() {
            continue;
        }
        let mut again = Vec::new();
        normal_key(&first, rules, &mut again).expect("a normal key is a key");
        assert_eq!(first, again);
        assert!(!first.contains(&b'*') && !first.contains(&b' ') && first.contains(&b')'));
        assert_eq!(spellings(&first).len() % 2, 0);
        for policy in ALL_POLICIES {
            let policy: Policy = policy.parse().expect("a policy");
            let mut cut = Vec::new();
            policy.write_key(&Segments::of(&first), &suffixes, &mut cut);
            assert!(cut.contains(&b')'));
        }
    }
});
