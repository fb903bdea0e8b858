//! Any bytes as packed copies, and as a TimeMap of an archive: what comes of them is in order, harmless, and packs and unpacks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::formats::mementos::{self, Ends, Length, Mementos, Room};

fn check(copies: &Mementos) {
    let mut length = Length::default();
    copies.pack(&mut length);
    let mut packed = vec![0; length.0];
    let mut room = Room(&mut packed);
    copies.pack(&mut room);
    assert!(room.0.is_empty());
    assert_eq!(mementos::unpacked(&packed).as_ref(), Ok(copies));
    assert_eq!(Mementos::merged([copies, copies]).as_ref(), Ok(copies));
    let ends = Ends {
        first: true,
        last: true,
    };
    let mut length = Length::default();
    copies.link_entries(&mut length, ends);
    let mut text = vec![0; length.0];
    copies.link_entries(&mut Room(&mut text), ends);
    let entries = text.iter().filter(|&&byte| byte == b'<').count();
    assert_eq!(entries, copies.len());
    for (place, copy) in copies.iter().enumerate() {
        assert!(
            copy.uri
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"<>\"".contains(&byte))
        );
        let closest = copies
            .closest(&copy.datetime)
            .and_then(|place| copies.get(place));
        assert_eq!(closest.map(|found| found.datetime), Some(copy.datetime));
        assert_eq!(copies.slice(place..place + 1).len(), 1);
    }
}

fuzz_target!(|text: &[u8]| {
    if let Ok(copies) = mementos::unpacked(text) {
        check(&copies);
    }
    let found = mementos::read(text, "a", "http://a.org/map/link/http://b/?c");
    check(&found.mementos);
});
