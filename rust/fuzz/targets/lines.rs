//! Reads any bytes as an index file, after a byte for the maximum line length: the lines are those of the text, the key
//! column is that of the lines; never a panic.
#![no_main]

use std::io::{Cursor, Read};

use libfuzzer_sys::fuzz_target;
use unlost_core::index::is_header;
use unlost_core::index::read_key_column;
use unlost_core::input::Damage;
use unlost_core::input::Lines;
use unlost_core::input::Source;

fuzz_target!(|input: &[u8]| {
    let Some((&limit, file)) = input.split_first() else {
        return;
    };
    let limit = usize::from(limit);
    // A few bytes of a frame may expand to gigabytes of text: only its beginning is compared.
    let mut source = Source::new(file).expect("memory does not fail");
    let mut text = Vec::new();
    let max_bytes = 1 << 20;
    source
        .by_ref()
        .take(max_bytes)
        .read_to_end(&mut text)
        .expect("memory does not fail");
    if text.len() as u64 == max_bytes {
        return;
    }

    let owned = file.to_vec();
    let again = Source::new(Cursor::new(owned.clone())).expect("memory does not fail");
    let mut lines = Lines::new(again, limit);
    let (mut at, mut count) = (0, 0);
    let (mut rows, mut skipped, mut keys, mut last) = (0, 0, 0, None);
    while let Some(line) = lines.next_line().expect("memory does not fail") {
        count += 1;
        assert_eq!((line.number, line.offset), (count, at as u64));
        let end = text[at..].iter().position(|&byte| byte == b'\n');
        let whole = &text[at..end.map_or(text.len(), |end| at + end)];
        at += whole.len() + usize::from(end.is_some());
        let whole = whole.strip_suffix(b"\r").unwrap_or(whole);
        assert_eq!(line.text, &whole[..whole.len().min(limit)]);
        assert_eq!(line.too_long, whole.len() > limit);
        let is_damaged = source.damage().is_some_and(Damage::cuts_text);
        assert_eq!(line.is_cut, end.is_none() && is_damaged);
        if line.too_long || line.is_cut {
            skipped += 1;
            continue;
        }
        let line = match line.text.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if count == 1 => rest,
            _ => line.text,
        };
        if !is_header(line) && !line.trim_ascii().is_empty() {
            let key = line.split(|&byte| byte == b' ').next().map(<[u8]>::to_vec);
            rows += 1;
            keys += u64::from(key != last);
            last = key;
        }
    }
    assert_eq!(at, text.len());
    assert_eq!(lines.damage(), source.damage());

    let column = read_key_column(Cursor::new(owned), limit).expect("memory does not fail");
    assert_eq!(
        (column.rows, column.skipped, column.keys),
        (rows, skipped, keys)
    );
    assert_eq!(column.damage, source.damage());
});
