//! Copies as they come, before they are in order.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use super::address::{harmless, without_scheme};
use super::patterns::Collector;
use super::{Digits, Mementos, Row, number};

/// More text than places in it can be told: four gigabytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("expected fewer copies: their addresses have more than 4 GB")
    }
}

/// Copies in the order in which they were added, with duplicates. Nothing is copied before they are in order.
#[derive(Debug, Default)]
pub struct Draft<'a> {
    rows: Vec<Loose<'a>>,
    text_bytes: usize,
    archives: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32>,
}

#[derive(Debug)]
struct Loose<'a> {
    date: u64,
    archive: u32,
    /// How long the scheme is, with what divides it from the rest.
    scheme: u32,
    address: Cow<'a, str>,
}

impl Loose<'_> {
    fn without_scheme(&self) -> &[u8] {
        &self.address.as_bytes()[self.scheme as usize..]
    }
}

impl<'a> Draft<'a> {
    /// The number of an archive, for `add`.
    pub fn archive(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id; // as it is: what is in there is harmless
        }
        let harmless = harmless(Cow::Borrowed(name.as_bytes()));
        if let Some(&id) = self.ids.get(&*harmless) {
            return id;
        }
        let id = u32::try_from(self.archives.len()).unwrap_or(u32::MAX);
        self.archives.push((*harmless).into());
        self.ids.insert((*harmless).into(), id);
        id
    }

    /// The bytes of all addresses.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Adds a copy. The date must be one, and the archive known.
    pub fn add(
        &mut self,
        date: &Digits,
        archive: u32,
        address: Cow<'a, [u8]>,
    ) -> Result<(), TooLarge> {
        self.add_row(number(date), archive, harmless(address))
    }

    fn add_row(&mut self, date: u64, archive: u32, address: Cow<'a, str>) -> Result<(), TooLarge> {
        let total = self.text_bytes + address.len();
        u32::try_from(total).map_err(|_| TooLarge)?;
        self.text_bytes = total;
        let scheme = address.len() - without_scheme(&address).len();
        self.rows.push(Loose {
            date,
            archive,
            scheme: u32::try_from(scheme).map_err(|_| TooLarge)?,
            address,
        });
        Ok(())
    }

    /// The copies, sorted, each once.
    #[must_use]
    pub fn finish(mut self) -> Mementos {
        let archives = &self.archives;
        // Lists are mostly in order, and this sort is fast where they are.
        self.rows.sort_by(|one, other| {
            one.date.cmp(&other.date).then_with(|| {
                one.without_scheme()
                    .cmp(other.without_scheme())
                    .then_with(|| one.address.cmp(&other.address))
                    .then_with(|| {
                        archives[one.archive as usize].cmp(&archives[other.archive as usize])
                    })
            })
        });
        self.rows.dedup_by(|later, kept| {
            later.date == kept.date && later.without_scheme() == kept.without_scheme()
        });
        let mut collector = Collector::default();
        let rows = self.rows.iter().map(|row| Row {
            date: row.date,
            pattern: collector.add_url(&row.address, row.date),
            archive: row.archive,
        });
        let rows = rows.collect();
        Mementos::canonical(collector.finish(), rows, archives)
    }
}
