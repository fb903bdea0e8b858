//! Rewrites any bytes as a page: unchanged without replacements; otherwise it has exactly the replaced links.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unlost_core::html;
use unlost_core::html::rewriting::{self, Options};

const TYPES: [Option<&str>; 8] = [
    None,
    Some("text/html"),
    Some("text/html; charset=shift_jis"),
    Some("text/html; charset=gb18030"),
    Some("text/html; charset=utf-16le"),
    Some("application/xhtml+xml"),
    Some("text/css"),
    Some("text/css; charset=big5"),
];
const BASE: &str = "http://h.example/d/";

fuzz_target!(|body: &[u8]| {
    // The first byte selects the type and the options.
    let Some((first, body)) = body.split_first() else {
        return;
    };
    let mime = TYPES[usize::from(*first) % TYPES.len()];
    let document = rewriting::find(body, mime, BASE, None, Options::default());
    let nothing = vec![None::<String>; document.links().count()];
    assert!(document.splice(body, &nothing).body.is_none());
    if document.encoding.is_some() {
        let page_links = html::find(body, mime, BASE, None);
        let known = page_links.links.iter().map(|(uri, kind)| (&**uri, *kind));
        assert!(document.links().eq(known));
    }
    let replacements: Vec<_> = (0..document.links().count())
        .map(|nth| Some(format!("http://new.example/{nth}?&(,)")))
        .collect();
    let done = document.splice(body, &replacements);
    assert_eq!(done.not_replaced, document.not_replaced());
    if let Some(new) = &done.body
        && done.not_replaced == 0
    {
        let charset = document.transcoded.then_some("utf-8");
        let links = html::find(new, mime, BASE, charset).links;
        let kinds = document.links().map(|(_, kind)| kind);
        let expected = replacements
            .into_iter()
            .flatten()
            .zip(kinds)
            .collect::<Vec<_>>();
        if links != expected {
            // Compressed bodies lose their type, and the header in which a charset is declared moves.
            assert!(document.unpacked || may_declare_charset(body));
        }
    }
    let options = Options {
        drop_base: first & 32 != 0,
        drop_integrity: first & 64 != 0,
        drop_policy: first & 128 != 0,
        candidates: true,
    };
    let document = rewriting::find(body, mime, BASE, None, options);
    let some = (0..document.links().count()).map(|nth| (nth % 2 == 0).then(|| "y".to_owned()));
    let some: Vec<_> = some.collect();
    let links: Vec<_> = document.links().map(|_| None::<String>).collect();
    let candidates: Vec<_> = document
        .candidates()
        .map(|_| Some("/n'.html".to_owned()))
        .collect();
    let _ = document.splice_all(body, &some, &candidates);
    // URLs that scripts may use are not links of the page.
    let done = document.splice_all(body, &links, &candidates);
    assert!(done.body.is_some() || candidates.is_empty() || done.changed == 0);
    let _ = html::page_candidates(body, mime, BASE, None);
    let _ = html::script_candidates(body, BASE);
});

/// Whether a body may declare its charset itself.
fn may_declare_charset(body: &[u8]) -> bool {
    let lower = body.to_ascii_lowercase();
    [&b"charset"[..], b"encoding"]
        .iter()
        .any(|word| lower.windows(word.len()).any(|each| each == *word))
}
