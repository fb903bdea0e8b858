//! What a body refers to, as it is written there.

use std::hash::{BuildHasher, Hash, RandomState};
use std::ops::Range;
use std::sync::OnceLock;

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use hashbrown::HashTable;

use super::elements::{Element, LinkSink, UrlOccurrence};
use super::{LinkKind, byte_scan};

/// Different ones that are kept of one body, twice as many as there may be links: some lead to the same place, and
/// resolving each takes as long as the base is long.
const MAX_REFERENCES: usize = 2 * super::MAX_LINKS;

/// Bytes of a page for each different reference: real ones have one in 300 on average.
const BYTES_PER_REFERENCE: usize = 256;

/// Things in the order in which they came, each once. The hashes are keyed: who writes pages cannot make them collide.
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
    /// Where a thing is; else the hash to add it with. `key` is what tells things apart.
    pub fn index_of<K: Hash + ?Sized>(
        &self,
        key: &K,
        is: impl Fn(&T) -> bool,
    ) -> Result<usize, u64> {
        let hash = self.hasher.hash_one(key);
        let known = self.table.find(hash, |&(other, place)| {
            other == hash && is(&self.all[place])
        });
        known.map(|&(_, place)| place).ok_or(hash)
    }

    /// Adds what is not there yet; says where it is.
    pub fn add(&mut self, hash: u64, thing: T) -> usize {
        let place = self.all.len();
        self.table
            .insert_unique(hash, (hash, place), |&(hash, _)| hash);
        self.all.push(thing);
        place
    }

    /// Makes room for things that are expected.
    pub fn reserve(&mut self, number: usize) {
        self.all.reserve(number);
        self.table.reserve(number, |&(hash, _)| hash);
    }

    pub fn all(&self) -> &[T] {
        &self.all
    }
}

/// A hasher whose keys come from the system's random numbers, as those of the standard library do, whose own takes longer for
/// what is as short as addresses.
fn random_state() -> SeedableRandomState {
    static SHARED: OnceLock<SharedSeed> = OnceLock::new();
    let random = || RandomState::new().hash_one(0);
    let shared = SHARED.get_or_init(|| SharedSeed::from_u64(random()));
    SeedableRandomState::with_seed(random(), shared)
}

/// An address as it is written, what it is for, and what it is relative to beside the page's base.
#[derive(Clone, Copy)]
pub struct Reference<'r> {
    pub written: &'r str,
    pub purpose: LinkKind,
    pub within: Option<&'r str>,
}

/// The same, where the text is kept with that of all others.
struct StoredReference {
    written: Range<usize>,
    purpose: LinkKind,
    within: Option<Box<str>>,
}

impl StoredReference {
    fn view<'r>(&'r self, text: &'r str) -> Reference<'r> {
        Reference {
            written: &text[self.written.clone()],
            purpose: self.purpose,
            within: self.within.as_deref(),
        }
    }
}

/// All that a body refers to.
#[derive(Default)]
pub struct References {
    found: Distinct<StoredReference>,
    /// What is written, one after the other: a text for each would take longer to make than to find.
    text: String,
    /// The first `<base href>`.
    pub base: Option<Box<str>>,
    /// How many were left out since there were too many.
    pub dropped: usize,
}

impl References {
    pub fn len(&self) -> usize {
        self.found.all().len()
    }

    pub fn get(&self, nth: usize) -> Reference<'_> {
        self.found.all()[nth].view(&self.text)
    }

    /// In the order of appearance.
    pub fn all(&self) -> impl Iterator<Item = Reference<'_>> {
        self.found.all().iter().map(|stored| stored.view(&self.text))
    }

    /// Makes room for what a text of this length mostly has.
    pub fn reserve(&mut self, length: usize) {
        self.found.reserve(length / BYTES_PER_REFERENCE);
        self.text.reserve(length / 16);
    }

    pub fn add(&mut self, written: &str, purpose: LinkKind) {
        self.add_within(written, purpose, None);
    }

    pub fn add_within(&mut self, written: &str, purpose: LinkKind, within: Option<&str>) {
        let written = Span::of(written).without_fragment(written);
        self.index_of(written, purpose, within);
    }

    /// Where in those that were found an address is, which is added if it is new. `None` if it is none of the web, leads
    /// into the page itself, or was left out. `written` has neither blanks around it nor a fragment.
    pub fn index_of(
        &mut self,
        written: &str,
        purpose: LinkKind,
        within: Option<&str>,
    ) -> Option<usize> {
        // Nothing but a fragment leads into the page itself: the gradient of a drawing, the next heading.
        if written.is_empty() || has_other_scheme(written) {
            return None;
        }
        let text = self.text.as_bytes();
        let is = |stored: &StoredReference| {
            text[stored.written.clone()] == *written.as_bytes()
                && stored.purpose == purpose
                && stored.within.as_deref() == within
        };
        // What each is for is not hashed: an address is for three things at most.
        let known = match within {
            None => self.found.index_of(written, is),
            Some(within) => self.found.index_of(&(written, within), is),
        };
        match known {
            Ok(place) => Some(place),
            Err(_) if self.len() >= MAX_REFERENCES => {
                self.dropped += 1;
                None
            }
            Err(hash) => {
                let start = self.text.len();
                self.text.push_str(written);
                let stored = StoredReference {
                    written: start..self.text.len(),
                    purpose,
                    within: within.map(Into::into),
                };
                Some(self.found.add(hash, stored))
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
        purpose: LinkKind,
        within: Option<&str>,
    ) {
        self.add_within(written, purpose, within);
    }

    fn add_base(&mut self, element: &Element<'_, '_>, written: &str) {
        if !element.inner {
            self.set_base(written);
        }
    }
}

/// Where in what is written an address is.
#[derive(Clone, Copy)]
pub struct Span {
    pub start: usize,
    /// Where the address ends, and where its fragment does.
    pub end: usize,
    pub whole_end: usize,
}

impl Span {
    /// Without blanks around it.
    pub fn of(written: &str) -> Self {
        let bytes = written.as_bytes();
        let (mut start, mut whole_end) = (0, bytes.len());
        // Most have nothing around them, which two bytes tell.
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

    /// The address without its fragment.
    pub fn without_fragment(self, written: &str) -> &str {
        &written[self.start..self.end]
    }
}

/// What is around an address and no part of it: blanks, and all else that is not seen.
pub fn is_outside(letter: char) -> bool {
    letter <= ' '
}

/// Whether an address is one of `data:`, `javascript:` or the like, so that it need not be kept to see that.
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
