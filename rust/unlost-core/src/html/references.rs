//! Collects the references of a body as written.

use std::hash::{BuildHasher, Hash, RandomState};
use std::ops::Range;
use std::sync::OnceLock;

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use hashbrown::HashTable;

use super::elements::{Element, LinkSink, UrlOccurrence};
use super::{LinkKind, byte_scan};

/// The maximum number of distinct references of a body: twice that of links, since several can resolve to the same URL.
/// Bounds the time, which is proportional to the length of the base for each reference.
const MAX_REFERENCES: usize = 2 * super::MAX_LINKS;

/// The average bytes of a page per distinct reference, for allocation. Measured on real pages: 300.
const BYTES_PER_REFERENCE: usize = 256;

/// Unique items in order of insertion. The hashes are keyed, so that pages cannot be crafted to make them collide.
pub struct Distinct<T> {
    all: Vec<T>,
    table: HashTable<(u64, usize)>,
    hasher: SeedableRandomState,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            table: HashTable::new(),
            hasher: random_state(),
        }
    }
}

impl<T> Distinct<T> {
    /// The index of an item; otherwise the hash to add it with. `key` identifies items.
    pub fn index_of<K: Hash + ?Sized>(
        &self,
        key: &K,
        is: impl Fn(&T) -> bool,
    ) -> Result<usize, u64> {
        let hash = self.hasher.hash_one(key);
        let known = self.table.find(hash, |&(other, index)| {
            other == hash && is(&self.all[index])
        });
        known.map(|&(_, index)| index).ok_or(hash)
    }

    /// Adds a new item; returns its index.
    pub fn add(&mut self, hash: u64, thing: T) -> usize {
        let index = self.all.len();
        self.table
            .insert_unique(hash, (hash, index), |&(hash, _)| hash);
        self.all.push(thing);
        index
    }

    /// Reserves memory.
    pub fn reserve(&mut self, number: usize) {
        self.all.reserve(number);
        self.table.reserve(number, |&(hash, _)| hash);
    }

    pub fn all(&self) -> &[T] {
        &self.all
    }
}

/// A hasher with keys from the system's random numbers, like that of the standard library, which is slower for texts as
/// short as URLs.
fn random_state() -> SeedableRandomState {
    static SHARED: OnceLock<SharedSeed> = OnceLock::new();
    let random = || RandomState::new().hash_one(0);
    let shared = SHARED.get_or_init(|| SharedSeed::from_u64(random()));
    SeedableRandomState::with_seed(random(), shared)
}

/// A URL as written, its kind, and the `codebase` that it is relative to, if there is one.
#[derive(Clone, Copy)]
pub struct Reference<'r> {
    pub written: &'r str,
    pub kind: LinkKind,
    pub within: Option<&'r str>,
}

/// The same with its text in shared storage.
struct StoredReference {
    written: Range<usize>,
    kind: LinkKind,
    within: Option<Box<str>>,
}

impl StoredReference {
    fn view<'r>(&'r self, text: &'r str) -> Reference<'r> {
        Reference {
            written: &text[self.written.clone()],
            kind: self.kind,
            within: self.within.as_deref(),
        }
    }
}

/// All references of a body.
#[derive(Default)]
pub struct References {
    distinct: Distinct<StoredReference>,
    /// The texts, concatenated: a string for each would take longer to allocate than to find.
    text: String,
    /// The first `<base href>`.
    pub base: Option<Box<str>>,
    /// The number of references beyond the maximum, which were dropped.
    pub dropped: usize,
}

impl References {
    pub fn len(&self) -> usize {
        self.distinct.all().len()
    }

    pub fn get(&self, nth: usize) -> Reference<'_> {
        self.distinct.all()[nth].view(&self.text)
    }

    /// In order of appearance.
    pub fn all(&self) -> impl Iterator<Item = Reference<'_>> {
        self.distinct
            .all()
            .iter()
            .map(|stored| stored.view(&self.text))
    }

    /// Reserves memory for the average of a text of this length.
    pub fn reserve(&mut self, length: usize) {
        self.distinct.reserve(length / BYTES_PER_REFERENCE);
        self.text.reserve(length / 16);
    }

    pub fn add(&mut self, written: &str, kind: LinkKind) {
        self.add_within(written, kind, None);
    }

    pub fn add_within(&mut self, written: &str, kind: LinkKind, within: Option<&str>) {
        let written = Span::of(written).without_fragment(written);
        self.index_of(written, kind, within);
    }

    /// The index of a URL, which is added if it is new. `None` if it is not a web URL, refers to the page itself, or
    /// was dropped. `written` must be trimmed and without a fragment.
    pub fn index_of(
        &mut self,
        written: &str,
        kind: LinkKind,
        within: Option<&str>,
    ) -> Option<usize> {
        // A fragment alone refers to the page itself: the gradient of a drawing, the next heading.
        if written.is_empty() || has_other_scheme(written) {
            return None;
        }
        let text = self.text.as_bytes();
        let is = |stored: &StoredReference| {
            text[stored.written.clone()] == *written.as_bytes()
                && stored.kind == kind
                && stored.within.as_deref() == within
        };
        // The kind is not hashed: a URL has at most three.
        let known = match within {
            None => self.distinct.index_of(written, is),
            Some(within) => self.distinct.index_of(&(written, within), is),
        };
        match known {
            Ok(index) => Some(index),
            Err(_) if self.len() >= MAX_REFERENCES => {
                self.dropped += 1;
                None
            }
            Err(hash) => {
                let start = self.text.len();
                self.text.push_str(written);
                let stored = StoredReference {
                    written: start..self.text.len(),
                    kind,
                    within: within.map(Into::into),
                };
                Some(self.distinct.add(hash, stored))
            }
        }
    }

    pub fn set_base(&mut self, written: &str) {
        if self.base.is_none() {
            self.base = Some(written.into());
        }
    }
}

impl LinkSink for References {
    fn add(
        &mut self,
        _spot: UrlOccurrence<'_>,
        written: &str,
        kind: LinkKind,
        within: Option<&str>,
    ) {
        self.add_within(written, kind, within);
    }

    fn add_base(&mut self, element: &Element<'_, '_>, written: &str) {
        if !element.inner {
            self.set_base(written);
        }
    }
}

/// The range of a URL in the written text.
#[derive(Clone, Copy)]
pub struct Span {
    pub start: usize,
    /// The end of the URL without and with its fragment.
    pub end: usize,
    pub whole_end: usize,
}

impl Span {
    /// Trims surrounding blanks.
    pub fn of(written: &str) -> Self {
        let bytes = written.as_bytes();
        let (mut start, mut whole_end) = (0, bytes.len());
        // Most URLs have no blanks, which the first and the last byte show.
        if bytes.first().is_some_and(|&byte| byte <= b' ')
            || bytes.last().is_some_and(|&byte| byte <= b' ')
        {
            start = written.len() - written.trim_start_matches(is_outside).len();
            whole_end = start + written[start..].trim_end_matches(is_outside).len();
        }
        Self {
            start,
            end: byte_scan::find_near(&bytes[..whole_end], start, b'#').unwrap_or(whole_end),
            whole_end,
        }
    }

    /// The URL without its fragment.
    pub fn without_fragment(self, written: &str) -> &str {
        &written[self.start..self.end]
    }
}

/// Characters around a URL that are not part of it: blanks and all other invisible ones.
pub fn is_outside(character: char) -> bool {
    character <= ' '
}

/// Whether a URL has the scheme `data:`, `javascript:` or the like, so that it need not be stored.
fn has_other_scheme(written: &str) -> bool {
    let scheme = written
        .bytes()
        .take(32)
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')));
    scheme.is_some_and(|end| {
        written.as_bytes()[end] == b':'
            && written.as_bytes()[0].is_ascii_alphabetic()
            && !written[..end].eq_ignore_ascii_case("http")
            && !written[..end].eq_ignore_ascii_case("https")
    })
}
