//! The keys of a map that may cover a page.

use crate::uri::{Segments, spellings};

/// A key that covers the page if the map has it: a prefix of the page's key, and a suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The length of the prefix.
    pub stem: usize,
    pub tail: &'static [u8],
    /// Whether it is the wildcard of the page itself: `/a/*` covers `/a` for holdings, but does not exclude it.
    pub is_own: bool,
}

impl Candidate {
    pub fn write(&self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&key[..self.stem]);
        out.extend_from_slice(self.tail);
    }
}

/// Lists the candidates of a normalized key without query, from general to specific: the last one that the map has is
/// the match.
///
/// Maps of other tools end keys in `/` or not, so both spellings are included.
pub(super) fn list(key: &[u8], is_rolled_up: bool, out: &mut Vec<Candidate>) {
    let wildcard = |stem, tail| Candidate {
        stem,
        tail,
        is_own: false,
    };
    let own = |stem, tail| Candidate {
        stem,
        tail,
        is_own: true,
    };
    out.clear();
    if is_rolled_up {
        out.push(wildcard(0, b"*"));
    }
    let segments = Segments::of(key);
    out.extend(segments.host_stems().map(|stem| wildcard(stem, b"*")));
    out.push(wildcard(segments.host_end(), b",*"));
    for stem in segments.path_stems() {
        out.push(if stem == key.len() {
            own(stem, b"*")
        } else {
            wildcard(stem, b"*")
        });
    }
    if key.ends_with(b"/") {
        out.push(wildcard(key.len() - 1, b""));
    } else {
        out.push(own(key.len(), b"/*"));
        out.push(wildcard(key.len(), b"/"));
    }
    // A lone `*` is the map's total, not a page.
    if is_rolled_up || key != b"*" {
        out.push(wildcard(key.len(), b""));
    }
}

/// The key of a page on an IP address in the form of other tools: not reversed, without brackets.
pub(super) fn other_spelling(key: &[u8]) -> Option<Vec<u8>> {
    let segments = Segments::of(key);
    if !segments.is_ip() {
        return None;
    }
    let host = key.get(..=segments.host_end())?;
    // Host and `)`, then with a slash; then the same not reversed.
    let forwards = spellings(host).into_iter().nth(2)?;
    Some([forwards.as_slice(), &key[host.len()..]].concat())
}
