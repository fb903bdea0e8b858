//! Copies as they come, before they are in order.

use std::collections::HashMap;
use std::fmt;

use super::address::{push_harmless, without_scheme};
use super::{Digits, Mementos, Row, number};

/// More text than places in it can be told: four gigabytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("expected fewer copies: their addresses have more than 4 GB")
    }
}

/// Copies in the order in which they were added, with duplicates.
#[derive(Debug, Default)]
pub struct Draft {
    text: String,
    rows: Vec<Loose>,
    archives: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Loose {
    date: u64,
    start: u32,
    end: u32,
    archive: u32,
}

impl Draft {
    /// The number of an archive, for `add`.
    pub fn archive(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id; // as it is: what is in there is harmless
        }
        let mut harmless = String::new();
        push_harmless(&mut harmless, name.as_bytes());
        if let Some(&id) = self.ids.get(harmless.as_str()) {
            return id;
        }
        let id = u32::try_from(self.archives.len()).unwrap_or(u32::MAX);
        self.archives.push(harmless.clone().into());
        self.ids.insert(harmless.into(), id);
        id
    }

    /// The bytes of all addresses.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Adds a copy. The date must be one, and the archive known.
    pub fn add(&mut self, date: &Digits, archive: u32, address: &[u8]) -> Result<(), TooLarge> {
        let start = self.text.len();
        push_harmless(&mut self.text, address);
        self.add_row(number(date), archive, start)
    }

    /// Adds all copies of a list.
    pub(super) fn add_all(&mut self, other: &Mementos) -> Result<(), TooLarge> {
        let ids: Vec<u32> = other
            .archives
            .iter()
            .map(|name| self.archive(name))
            .collect();
        let before = u32::try_from(self.text.len()).map_err(|_| TooLarge)?;
        u32::try_from(self.text.len() + other.text.len()).map_err(|_| TooLarge)?;
        self.text.push_str(&other.text);
        self.rows.reserve(other.rows.len());
        let mut start = before;
        for row in &other.rows {
            let end = before + row.end;
            self.rows.push(Loose {
                date: row.date,
                start,
                end,
                archive: ids[row.archive as usize],
            });
            start = end;
        }
        Ok(())
    }

    fn add_row(&mut self, date: u64, archive: u32, start: usize) -> Result<(), TooLarge> {
        let Ok(end) = u32::try_from(self.text.len()) else {
            self.text.truncate(start);
            return Err(TooLarge);
        };
        self.rows.push(Loose {
            date,
            start: u32::try_from(start).map_err(|_| TooLarge)?,
            end,
            archive,
        });
        Ok(())
    }

    /// The copies, sorted, each once.
    #[must_use]
    pub fn finish(self) -> Mementos {
        let Self {
            text,
            mut rows,
            archives,
            ..
        } = self;
        let address = |row: &Loose| &text[row.start as usize..row.end as usize];
        // Lists are mostly in order, and this sort is fast where they are.
        rows.sort_by(|one, other| {
            one.date.cmp(&other.date).then_with(|| {
                let (one_address, other_address) = (address(one), address(other));
                without_scheme(one_address)
                    .cmp(without_scheme(other_address))
                    .then_with(|| one_address.cmp(other_address))
                    .then_with(|| {
                        archives[one.archive as usize].cmp(&archives[other.archive as usize])
                    })
            })
        });
        rows.dedup_by(|later, kept| {
            later.date == kept.date
                && without_scheme(address(later)) == without_scheme(address(kept))
        });
        let mut sorted = String::with_capacity(text.len());
        let mut ended = Vec::with_capacity(rows.len());
        for row in &rows {
            sorted.push_str(address(row));
            ended.push(Row {
                date: row.date,
                // No longer than the text, whose places fit.
                end: u32::try_from(sorted.len()).unwrap_or(u32::MAX),
                archive: row.archive,
            });
        }
        Mementos::canonical(sorted, ended, &archives)
    }
}
