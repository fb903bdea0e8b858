//! Parses any bytes as packed mementos, and as a `TimeMap` of an archive: the result is sorted, sanitized, and
//! round-trips.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::memento::list::{self, LengthCounter, ListEnds, Mementos, SliceWriter};

fn check(mementos: &Mementos) {
    let mut length = LengthCounter::default();
    mementos.pack(&mut length);
    let mut packed = vec![0; length.0];
    let mut room = SliceWriter(&mut packed);
    mementos.pack(&mut room);
    assert!(room.0.is_empty());
    assert_eq!(list::unpack(&packed).as_ref(), Ok(mementos));
    assert_eq!(Mementos::merge([mementos, mementos]).as_ref(), Ok(mementos));
    let ends = ListEnds {
        first: true,
        last: true,
    };
    let mut length = LengthCounter::default();
    mementos.link_entries(&mut length, ends);
    let mut text = vec![0; length.0];
    mementos.link_entries(&mut SliceWriter(&mut text), ends);
    let entries = text.iter().filter(|&&byte| byte == b'<').count();
    assert_eq!(entries, mementos.len());
    for (index, memento) in mementos.iter().enumerate() {
        assert!(
            memento
                .uri
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"<>\"".contains(&byte))
        );
        let closest = mementos
            .closest(&memento.datetime)
            .and_then(|index| mementos.get(index));
        assert_eq!(closest.map(|found| found.datetime), Some(memento.datetime));
        assert_eq!(mementos.slice(index..index + 1).len(), 1);
    }
}

fuzz_target!(|text: &[u8]| {
    if let Ok(mementos) = list::unpack(text) {
        check(&mementos);
    }
    let timemap = list::read(text, "a", "http://a.org/map/link/http://b/?c");
    check(&timemap.mementos);
});
