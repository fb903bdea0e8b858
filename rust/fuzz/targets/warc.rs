//! Scans any bytes as an archive file: records within the file in order, never a panic, and each one can be opened
//! again.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use unlost_core::warc::{Event, Scanner, StoredRecord};

fuzz_target!(|file: &[u8]| {
    let size = file.len() as u64;
    let mut scanner = Scanner::new(file, true).expect("memory does not fail");
    let mut last = 0;
    while let Some(event) = scanner.next_event().expect("memory does not fail") {
        match event {
            Event::Problem(problem) => assert!(problem.offset <= size),
            Event::Record(record) => {
                assert!(last <= record.offset && record.offset < size);
                assert!(
                    record
                        .length
                        .is_none_or(|length| record.offset + length <= size)
                );
                last = record.offset;
                let stored = StoredRecord::open(Cursor::new(file), record.offset, record.skip);
                let mut stored = stored.expect("memory does not fail").expect("a record");
                while !stored
                    .read(1 << 16)
                    .expect("memory does not fail")
                    .is_empty()
                {}
                assert_eq!(stored.missing() > 0, record.is_short);
            }
        }
    }
});
