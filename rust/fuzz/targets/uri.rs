//! Parses any bytes as a URL: an idempotent SURT and name, or an error; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::uri::{RuleSet, WebUrl, canonical, name, surt, surt_of_uri, unsurt};

fuzz_target!(|text: &[u8]| {
    // The fast path for plain URLs ends where the parser ends: a scheme in capitals is not plain. After a bracket it is
    // the long form of a SURT, which is never written in capitals.
    if let Some(rest) = text
        .strip_prefix(b"http://")
        .filter(|rest| !rest.starts_with(b"("))
    {
        let spelled = [b"HTTP://", rest].concat();
        let forms = [text, &spelled].map(|text| {
            let mut out = Vec::new();
            surt_of_uri(text, RuleSet::Wayback, &mut out).map(|()| out)
        });
        assert_eq!(forms[0], forms[1]);
    }
    let Ok(url) = WebUrl::read(text) else {
        return;
    };
    let mut named = b"http://".to_vec();
    if name(&url, &mut named).is_ok() {
        assert!(named.iter().all(u8::is_ascii_graphic));
        let url = WebUrl::read(&named).expect("a name is a URL without its scheme");
        let mut again = b"http://".to_vec();
        name(&url, &mut again).expect("a name has one");
        assert_eq!(named, again);
    }
    for rules in RuleSet::ALL {
        let mut first = Vec::new();
        if surt(&url, rules, &mut first).is_err() {
            continue;
        }
        assert!(first.iter().all(u8::is_ascii_graphic));
        let mut again = Vec::new();
        surt_of_uri(&first, rules, &mut again).expect("a SURT is one");
        assert_eq!(first, again);
        let mut unsurted = Vec::new();
        unsurt(&first, rules, &mut unsurted).expect("the SURT of a URL converts back");
        again.clear();
        surt_of_uri(&unsurted, rules, &mut again).expect("an unsurted SURT is a URL");
        assert_eq!(first, again);
        let mut form = Vec::new();
        canonical(&url, rules, &mut form).expect("what has a SURT has a canonical form");
        again.clear();
        surt_of_uri(&form, rules, &mut again).expect("a canonical form is a URL");
        assert_eq!(first, again);
    }
});
