//! Selects the rows to count.

use crate::index::Row;
use crate::uri::RuleSet;

/// Which rows are counted, and under which keys.
#[derive(Debug, Clone, Default)]
pub struct RowFilter {
    /// The normalization rules.
    pub rules: RuleSet,
    /// Whether keys retain their query: URI-Rs instead of pages.
    pub queries: bool,
    /// Whether each year has its own entry.
    pub by_year: bool,
    /// Accepted statuses; empty for all.
    pub status: Vec<Vec<u8>>,
    /// Accepted media types in lower case; empty for all.
    pub mime: Vec<Vec<u8>>,
    /// Excluded kinds of pages.
    pub exclude: Vec<Excluded>,
}

/// Kinds of pages that are read by crawlers only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excluded {
    /// `/robots.txt`.
    Robots,
    /// Files whose name begins with `sitemap` and ends in `.xml` or `.xml.gz`.
    Sitemaps,
}

impl RowFilter {
    /// Whether only a row's key matters, so that lines with the same key need not be parsed.
    pub(super) fn only_keys(&self) -> bool {
        !self.by_year && self.status.is_empty() && self.mime.is_empty()
    }

    /// Whether a row has an accepted status and media type.
    pub(super) fn accepts(&self, row: &Row<'_>) -> bool {
        let status =
            self.status.is_empty() || self.status.iter().any(|status| *status == *row.status);
        status && (self.mime.is_empty() || self.accepts_type(&row.mime))
    }

    fn accepts_type(&self, mime: &[u8]) -> bool {
        let end = mime
            .iter()
            .position(|byte| *byte == b';' || byte.is_ascii_whitespace());
        let mime = &mime[..end.unwrap_or(mime.len())];
        self.mime
            .iter()
            .any(|accepted| accepted.eq_ignore_ascii_case(mime))
    }

    /// Whether the page of a key is excluded.
    pub(super) fn excludes(&self, key: &[u8]) -> bool {
        if self.exclude.is_empty() {
            return false;
        }
        let path = &key[memchr::memchr(b')', key).map_or(key.len(), |end| end + 1)..];
        let path = &path[..memchr::memchr2(b'?', b' ', path).unwrap_or(path.len())];
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
        self.exclude.iter().any(|excluded| match excluded {
            Excluded::Robots => path == b"/robots.txt",
            Excluded::Sitemaps => {
                let is_xml = name.ends_with(b".xml") || name.ends_with(b".xml.gz");
                name.starts_with(b"sitemap") && is_xml
            }
        })
    }
}
