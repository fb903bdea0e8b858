//! Collects mementos before they are sorted.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use super::patterns::PatternCollector;
use super::url::{sanitize, without_scheme};
use super::{Digits, Mementos, Row, number};

/// More text than 32-bit offsets allow: four gigabytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("expected fewer copies: their addresses have more than 4 GB")
    }
}

/// Mementos in insertion order, with duplicates. Nothing is copied before they are sorted.
#[derive(Debug, Default)]
pub struct MementoListBuilder<'a> {
    rows: Vec<UnsortedRow<'a>>,
    text_bytes: usize,
    archives: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32>,
}

#[derive(Debug)]
struct UnsortedRow<'a> {
    date: u64,
    archive: u32,
    /// The length of the scheme with its separator.
    scheme: u32,
    url: Cow<'a, str>,
}

impl UnsortedRow<'_> {
    fn without_scheme(&self) -> &[u8] {
        &self.url.as_bytes()[self.scheme as usize..]
    }
}

impl<'a> MementoListBuilder<'a> {
    /// The number of an archive, for `add`.
    pub fn archive(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id; // a known name needs no sanitizing
        }
        let sanitize = sanitize(Cow::Borrowed(name.as_bytes()));
        if let Some(&id) = self.ids.get(&*sanitize) {
            return id;
        }
        let id = u32::try_from(self.archives.len()).unwrap_or(u32::MAX);
        self.archives.push((*sanitize).into());
        self.ids.insert((*sanitize).into(), id);
        id
    }

    /// The total length of all URLs in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Adds a memento. The date must be valid, and the archive known.
    pub fn add(&mut self, date: &Digits, archive: u32, url: Cow<'a, [u8]>) -> Result<(), TooLarge> {
        self.add_row(number(date), archive, sanitize(url))
    }

    fn add_row(&mut self, date: u64, archive: u32, url: Cow<'a, str>) -> Result<(), TooLarge> {
        let total = self.text_bytes + url.len();
        u32::try_from(total).map_err(|_| TooLarge)?;
        self.text_bytes = total;
        let scheme = url.len() - without_scheme(&url).len();
        self.rows.push(UnsortedRow {
            date,
            archive,
            scheme: u32::try_from(scheme).map_err(|_| TooLarge)?,
            url,
        });
        Ok(())
    }

    /// The mementos, sorted and deduplicated.
    #[must_use]
    pub fn finish(mut self) -> Mementos {
        let archives = &self.archives;
        // TimeMaps are mostly sorted, and this sort is fast for them.
        self.rows.sort_by(|one, other| {
            one.date.cmp(&other.date).then_with(|| {
                one.without_scheme()
                    .cmp(other.without_scheme())
                    .then_with(|| one.url.cmp(&other.url))
                    .then_with(|| {
                        archives[one.archive as usize].cmp(&archives[other.archive as usize])
                    })
            })
        });
        self.rows.dedup_by(|later, earlier| {
            later.date == earlier.date && later.without_scheme() == earlier.without_scheme()
        });
        let mut collector = PatternCollector::default();
        let rows = self.rows.iter().map(|row| Row {
            date: row.date,
            pattern: collector.add_url(&row.url, row.date),
            archive: row.archive,
        });
        let rows = rows.collect();
        Mementos::canonical(collector.finish(), rows, archives)
    }
}
