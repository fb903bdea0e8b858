//! Parses any bytes as an index: rows whose fields are slices of their lines, members of objects that every access
//! method finds; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::index::Layout;
use unlost_core::index::RowShape;
use unlost_core::index::is_header;
use unlost_core::index::member;

fuzz_target!(|text: &[u8]| {
    let detected = Layout::detect(text);
    let layouts = [
        detected,
        Some(Layout::Cdxj),
        Some(Layout::Urls { column: None }),
        Some(Layout::Urls { column: Some(1) }),
    ];
    for layout in layouts.iter().flatten() {
        let mut shape = RowShape::default();
        for line in text.split(|&byte| byte == b'\n') {
            let _ = layout.is_changed_by(line);
            let _ = layout.is_certainly_web(line);
            let _ = is_header(line);
            let row = layout.row(line, &mut shape);
            // The structure of earlier rows does not affect the result.
            assert_eq!(row, layout.row(line, &mut RowShape::default()));
            if let Some(row) = row {
                let parts = [
                    row.key,
                    row.date,
                    &row.url,
                    &row.mime,
                    &row.status,
                    &row.size,
                ];
                assert!(parts.iter().all(|part| part.len() <= line.len()));
            }
        }
    }
    let one = member(text, &[b"url"]);
    let other = member(text, &[b"no such name"]);
    let either = member(text, &[b"url", b"no such name"]);
    assert!(one.is_none() || other.is_some() || one == either);
});
