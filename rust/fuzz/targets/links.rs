//! Finds links in any bytes as a page: absolute web URLs, unique by kind.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use unlost_core::html::{self, MAX_URL_BYTES, spans};

const TYPES: [Option<&str>; 6] = [
    None,
    Some("text/html"),
    Some("text/html; charset=shift_jis"),
    Some("application/xhtml+xml"),
    Some("text/css"),
    Some("text/xml"),
];

/// The URL determines the kind without a type: a URL list, robots.txt.
const BASES: [&str; 3] = [
    "http://h.example/d/",
    "http://h.example/robots.txt",
    "http://h.example/sitemap.txt",
];

fuzz_target!(|body: &[u8]| {
    // The first byte selects the type and base.
    let Some((first, body)) = body.split_first() else {
        return;
    };
    let mime = TYPES[usize::from(*first) % TYPES.len()];
    let base = BASES[usize::from(*first) / TYPES.len() % BASES.len()];
    let page_links = html::find(body, mime, base, None);
    let mut seen = HashSet::new();
    for link in &page_links.links {
        assert!(link.0.starts_with("http://") || link.0.starts_with("https://"));
        assert!(!link.0.contains('#') && link.0.is_ascii() && link.0.len() <= MAX_URL_BYTES);
        assert!(seen.insert(link));
    }
    assert!(!page_links.cut || body.starts_with(b"\x1f\x8b"));
    let text = String::from_utf8_lossy(body);
    for span in spans::srcset::urls(&text) {
        assert!(!text[span].is_empty());
    }
    if let Some(span) = spans::refresh::url(&text) {
        assert!(!text[span].is_empty());
    }
    let mut end = 0;
    spans::css::urls(&text, |url| {
        assert!(end <= url.span.start && url.span.start < url.span.end);
        assert!(text.get(url.span.clone()).is_some());
        end = url.span.end;
    });
});
