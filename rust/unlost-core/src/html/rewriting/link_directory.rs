//! Where the addresses of a site lead, for all its pages: a navigation is on each of them, and is asked for once.

use std::ops::Range;

use super::url_writer::SpellingFlags;
use crate::html::LinkKind;
use crate::html::references::Distinct;

/// What an entry takes beside its addresses, with its place in a table that is half full.
const BYTES_PER_ENTRY: usize = size_of::<Entry>() + 40;

/// What a link with a known address becomes.
enum Target {
    /// It stays as it is.
    Unchanged,
    /// The address of a file, relative to the top of the site.
    File(Range<usize>, SpellingFlags),
}

/// An address, for one purpose, and what is known of it.
struct Entry {
    uri: Range<usize>,
    purpose: LinkKind,
    target: Target,
    group: u8,
}

/// Addresses that are known. Whoever fills it says into which of up to 256 groups each belongs, to have them counted.
pub struct Directory {
    entries: Distinct<Entry>,
    /// All addresses, one after the other.
    text: String,
    /// Bytes that are kept at most.
    most: usize,
}

/// What a link becomes on a page.
#[derive(Debug, Clone)]
pub enum RelativeLink {
    /// It stays.
    Unchanged,
    /// An address, which is this part of the text that was given.
    Relative(Range<usize>, SpellingFlags),
}

impl Directory {
    /// An empty one of so many bytes at most: those that came first are kept.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            entries: Distinct::default(),
            text: String::new(),
            most,
        }
    }

    /// Remembers what an address becomes on all pages: that of a file, relative to the top of the site, or itself. `false` if
    /// that is no address that may be written; of what is known already, the first counts.
    pub fn add(&mut self, uri: &str, purpose: LinkKind, url: Option<&str>, group: u8) -> bool {
        let spelled = url
            .map(|url| SpellingFlags::of(url).filter(|of| of.replacement(url).is_some()));
        if spelled.is_some_and(|spelled| spelled.is_none()) {
            return false;
        }
        let length = uri.len() + url.map_or(0, str::len);
        if self.size() + length > self.most {
            return true;
        }
        let Err(hash) = self.index_of(uri, purpose) else {
            return true;
        };
        let uri = self.append_text(uri);
        let target = match (url, spelled.flatten()) {
            (Some(url), Some(spelled)) => Target::File(self.append_text(url), spelled),
            _ => Target::Unchanged,
        };
        let entry = Entry {
            uri,
            purpose,
            target,
            group,
        };
        self.entries.add(hash, entry);
        true
    }

    fn size(&self) -> usize {
        self.text.len() + (self.entries.all().len() + 1) * BYTES_PER_ENTRY
    }

    fn append_text(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    fn index_of(&self, uri: &str, purpose: LinkKind) -> Result<usize, u64> {
        self.entries.index_of(uri, |entry| {
            self.text.as_bytes()[entry.uri.clone()] == *uri.as_bytes() && entry.purpose == purpose
        })
    }

    /// What an address becomes on a page in a folder, which is empty or ends with a slash, relative to the top of the site, and
    /// which group it belongs to; `None` if it is not known. What is new is written to the end of `out`.
    pub fn relative_url(
        &self,
        (uri, purpose): (&str, LinkKind),
        folder: &str,
        out: &mut String,
    ) -> Option<(RelativeLink, u8)> {
        let entry = &self.entries.all()[self.index_of(uri, purpose).ok()?];
        let Target::File(url, spelled) = &entry.target else {
            return Some((RelativeLink::Unchanged, entry.group));
        };
        let start = out.len();
        write_relative(&self.text[url.clone()], folder, out);
        Some((
            RelativeLink::Relative(start..out.len(), *spelled),
            entry.group,
        ))
    }
}

/// Writes an address relative to a folder; both are relative to the top.
fn write_relative(url: &str, folder: &str, out: &mut String) {
    let start = out.len();
    if let Some(below) = url.strip_prefix(folder) {
        out.push_str(below);
    } else {
        let mut both = folder.bytes().zip(url.bytes());
        let same = both.position(|(one, other)| one != other);
        let same = same.unwrap_or_else(|| folder.len().min(url.len()));
        let shared = url[..same].rfind('/').map_or(0, |slash| slash + 1);
        for _ in memchr::memchr_iter(b'/', &folder.as_bytes()[shared..]) {
            out.push_str("../");
        }
        out.push_str(&url[shared..]);
    }
    if out.len() == start {
        // Nothing at all would lead to the page itself, not to its folder.
        out.push_str("./");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rng::test_rng;

    fn link_text(directory: &Directory, uri: &str, folder: &str) -> Option<String> {
        let mut out = String::from("before");
        match directory
            .relative_url((uri, LinkKind::Page), folder, &mut out)?
            .0
        {
            RelativeLink::Unchanged => Some("itself".into()),
            RelativeLink::Relative(span, _) => Some(out[span].into()),
        }
    }

    /// Whatever folder a page is in, a browser goes from it to the file.
    #[test]
    fn relative_urls_resolve_to_the_target() {
        let mut rng = test_rng(5);
        let names = ["a/", "b/", "ab/", "u/", "a.b/"];
        let mut path =
            |most: usize| -> String { (0..rng(most)).map(|_| names[rng(names.len())]).collect() };
        for nth in 0..2_000 {
            let (folder, mut url) = (path(5), path(5));
            if nth % 8 > 0 || url.is_empty() {
                url.push_str(names[nth % names.len()].trim_end_matches('/'));
            }
            let mut directory = Directory::new(1 << 10);
            assert!(directory.add("http://h/", LinkKind::Page, Some(&url), 0));
            let base = url::Url::parse("http://h/").expect("a base");
            let page = base.join(&folder).expect("a page");
            let relative = link_text(&directory, "http://h/", &folder).expect("known");
            assert!(!relative.is_empty());
            let resolved = page.join(&relative).expect("an address");
            let expected = base.join(&url).expect("an address");
            assert_eq!(resolved, expected, "{folder} {url} {relative}");
        }
    }

    #[test]
    fn first_entry_wins_and_size_stays_bounded() {
        let mut directory = Directory::new(2 * BYTES_PER_ENTRY + 22);
        assert!(!directory.add("http://h/0", LinkKind::Page, Some("a b"), 0));
        assert!(directory.add("http://h/1", LinkKind::Page, None, 3));
        assert!(directory.add("http://h/1", LinkKind::Page, Some("x"), 4));
        assert!(directory.add("http://h/1", LinkKind::Requisite, Some("y"), 5));
        assert!(directory.add("http://h/2", LinkKind::Page, Some("z"), 6));
        assert_eq!(
            link_text(&directory, "http://h/1", "").as_deref(),
            Some("itself")
        );
        assert_eq!(link_text(&directory, "http://h/0", ""), None);
        assert_eq!(link_text(&directory, "http://h/2", ""), None);
        let groups = [LinkKind::Page, LinkKind::Requisite].map(|purpose| {
            let found = directory.relative_url(("http://h/1", purpose), "", &mut String::new());
            found.map(|(_, group)| group)
        });
        assert_eq!(groups, [Some(3), Some(5)]);
    }
}
