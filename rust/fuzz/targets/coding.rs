//! Decodes any bytes in any codings: the limit holds, and the result does not depend on how the input is split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::warc::coding::{Body, BodyDecoder, BodyOptions, codings_of};

const LIMIT: u64 = 1 << 16;
const NAMES: [&str; 8] = [
    "chunked",
    "gzip",
    "deflate",
    "br",
    "zstd",
    "compress",
    "identity",
    "chunked, gzip",
];

fn decode_body(codings: &[String], data: &[u8], piece: usize) -> Body {
    let body_options = BodyOptions {
        with_digest: true,
        head: 1 << 10,
        limit: LIMIT,
    };
    let mut body_decoder = BodyDecoder::new(codings, body_options);
    for part in data.chunks(piece) {
        body_decoder.feed(part);
    }
    body_decoder.finish()
}

fuzz_target!(|data: &[u8]| {
    // The first byte selects two codings of a header; a line before the body, if there is one, names others.
    let Some((&first, data)) = data.split_first() else {
        return;
    };
    let (outer, inner) = (usize::from(first) % 8, usize::from(first) / 8 % 8);
    let (header_value, body) = match data.iter().position(|&byte| byte == b'\n') {
        Some(end) if first >= 128 => data.split_at(end),
        _ => (&b""[..], data),
    };
    let fields = [
        ("Transfer-Encoding", NAMES[outer].as_bytes()),
        ("content-encoding", NAMES[inner].as_bytes()),
        ("Content-Encoding", header_value),
    ];
    let fields = &fields[..if header_value.is_empty() { 2 } else { 3 }];
    let codings = codings_of(|| fields.iter().copied());
    let whole = decode_body(&codings, body, usize::MAX);
    assert!(whole.not_decoded.is_some() || whole.len <= LIMIT);
    assert!(whole.head.len() <= 1 << 10 && whole.head.len() as u64 <= whole.len);
    assert_eq!(
        whole,
        decode_body(&codings, body, 1 + usize::from(first) % 7)
    );
});
