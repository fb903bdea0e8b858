//! Any bytes as an address: a SURT that is its own SURT, or an error; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::uri::{Address, RuleSet, canonical, surt, surt_of_uri, unsurt};

fuzz_target!(|text: &[u8]| {
    for rules in RuleSet::ALL {
        let Ok(address) = Address::read(text) else {
            return;
        };
        let mut first = Vec::new();
        if surt(&address, rules, &mut first).is_err() {
            continue;
        }
        assert!(first.iter().all(u8::is_ascii_graphic));
        let mut again = Vec::new();
        surt_of_uri(&first, rules, &mut again).expect("a SURT is one");
        assert_eq!(first, again);
        let mut way_back = Vec::new();
        unsurt(&first, &mut way_back);
        again.clear();
        surt_of_uri(&way_back, rules, &mut again).expect("the way back leads to an address");
        assert_eq!(first, again);
        let mut form = Vec::new();
        canonical(&address, rules, &mut form).expect("what has a SURT has a canonical form");
        again.clear();
        surt_of_uri(&form, rules, &mut again).expect("a canonical form is an address");
        assert_eq!(first, again);
    }
});
