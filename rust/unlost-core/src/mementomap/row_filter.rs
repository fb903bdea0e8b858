//! Which rows count.

use crate::formats::Row;
use crate::uri::RuleSet;

/// What is counted, and under which keys.
#[derive(Debug, Clone, Default)]
pub struct RowFilter {
    /// The rules by which keys are brought to one form.
    pub rules: RuleSet,
    /// Whether keys keep their query: URI-Rs, not pages of a tree.
    pub queries: bool,
    /// Whether each year has its own entry.
    pub by_year: bool,
    /// Only rows with one of these statuses, if there are any.
    pub status: Vec<Vec<u8>>,
    /// Only rows of one of these media types, in lower case, if there are any.
    pub mime: Vec<Vec<u8>>,
    /// Without pages of these kinds.
    pub exclude: Vec<Excluded>,
}

/// Pages that are for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excluded {
    /// `/robots.txt`.
    Robots,
    /// Files whose name begins with `sitemap` and ends in `.xml` or `.xml.gz`.
    Sitemaps,
}

impl RowFilter {
    /// Whether a row's key is all that matters, so that lines with the same need not be read.
    pub(super) fn only_keys(&self) -> bool {
        !self.by_year && self.status.is_empty() && self.mime.is_empty()
    }

    /// Whether a row has a status and a media type that are wanted.
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

    /// Whether the page of a key is one of those that are left out.
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
