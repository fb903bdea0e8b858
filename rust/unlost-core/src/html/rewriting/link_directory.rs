//! Replacement URLs for all pages of a site: a navigation bar is on each of them, and its links are looked up once.

use std::ops::Range;

use super::url_writer::SpellingFlags;
use crate::html::LinkKind;
use crate::html::references::Distinct;

/// The size of an entry without its texts, with its slot in a table that is half full.
const BYTES_PER_ENTRY: usize = size_of::<Entry>() + 40;

/// The replacement of a known link.
enum Target {
    /// Unchanged.
    Unchanged,
    /// The URL of a file, relative to the top of the site.
    File(Range<usize>, SpellingFlags),
}

/// A URL of one kind, with its replacement.
struct Entry {
    uri: Range<usize>,
    kind: LinkKind,
    target: Target,
    group: u8,
}

/// Known URLs. Each belongs to one of up to 256 groups, for counting.
pub struct Directory {
    entries: Distinct<Entry>,
    /// All texts, concatenated.
    text: String,
    /// The maximum size in bytes.
    max_bytes: usize,
}

/// The replacement of a link on a page.
#[derive(Debug, Clone)]
pub enum RelativeLink {
    /// Unchanged.
    Unchanged,
    /// A URL, with its range in the output text.
    Relative(Range<usize>, SpellingFlags),
}

impl Directory {
    /// An empty one with a maximum size in bytes: the first entries are retained.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            entries: Distinct::default(),
            text: String::new(),
            max_bytes,
        }
    }

    /// Adds the replacement of a URL for all pages: that of a file, relative to the top of the site, or unchanged.
    /// Returns `false` if it is not a valid URL to write. The first entry of a URL counts.
    pub fn add(&mut self, uri: &str, kind: LinkKind, url: Option<&str>, group: u8) -> bool {
        let spelled =
            url.map(|url| SpellingFlags::of(url).filter(|of| of.replacement(url).is_some()));
        if spelled.is_some_and(|spelled| spelled.is_none()) {
            return false;
        }
        let length = uri.len() + url.map_or(0, str::len);
        if self.size() + length > self.max_bytes {
            return true;
        }
        let Err(hash) = self.index_of(uri, kind) else {
            return true;
        };
        let uri = self.append_text(uri);
        let target = match (url, spelled.flatten()) {
            (Some(url), Some(spelled)) => Target::File(self.append_text(url), spelled),
            _ => Target::Unchanged,
        };
        let entry = Entry {
            uri,
            kind,
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

    fn index_of(&self, uri: &str, kind: LinkKind) -> Result<usize, u64> {
        self.entries.index_of(uri, |entry| {
            self.text.as_bytes()[entry.uri.clone()] == *uri.as_bytes() && entry.kind == kind
        })
    }

    /// The replacement of a URL on a page in a folder, and its group; `None` if it is not known. The folder is empty or
    /// ends with a slash, and is relative to the top of the site. A new URL is appended to `out`.
    pub fn relative_url(
        &self,
        (uri, kind): (&str, LinkKind),
        folder: &str,
        out: &mut String,
    ) -> Option<(RelativeLink, u8)> {
        let entry = &self.entries.all()[self.index_of(uri, kind).ok()?];
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

/// Writes a URL relative to a folder; both are relative to the top.
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
        // An empty reference would refer to the page itself, not to its folder.
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

    /// From any folder, a browser resolves the link to the file.
    #[test]
    fn relative_urls_resolve_to_the_target() {
        let mut rng = test_rng(5);
        let names = ["a/", "b/", "ab/", "u/", "a.b/"];
        let mut path = |max_bytes: usize| -> String {
            (0..rng(max_bytes))
                .map(|_| names[rng(names.len())])
                .collect()
        };
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
            let resolved = page.join(&relative).expect("a URL");
            let expected = base.join(&url).expect("a URL");
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
        let groups = [LinkKind::Page, LinkKind::Requisite].map(|kind| {
            let entry = directory.relative_url(("http://h/1", kind), "", &mut String::new());
            entry.map(|(_, group)| group)
        });
        assert_eq!(groups, [Some(3), Some(5)]);
    }
}
