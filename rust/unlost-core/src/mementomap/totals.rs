//! The totals of a map.

use std::collections::BTreeMap;

use super::{Entry, Frequency, HoldingsError};

/// Sums of frequencies, one for each value of the further key fields, or just one.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    plain: Option<Frequency>,
    by_extra: BTreeMap<Vec<u8>, Frequency>,
}

impl Totals {
    pub(super) fn add_entry(&mut self, entry: &Entry<'_>) -> Result<(), HoldingsError> {
        let (_, extra) = entry.surt_and_extra();
        self.add(extra, entry.frequency)
    }

    pub(super) fn add(&mut self, extra: &[u8], frequency: Frequency) -> Result<(), HoldingsError> {
        self.add_sum(extra, frequency, Frequency::plus)
    }

    fn add_sum(
        &mut self,
        extra: &[u8],
        frequency: Frequency,
        plus: fn(Frequency, Frequency) -> Option<Frequency>,
    ) -> Result<(), HoldingsError> {
        let plus = |sum: Frequency| {
            plus(sum, frequency).ok_or_else(|| HoldingsError::Overflow { key: b"*".to_vec() })
        };
        if extra.is_empty() {
            self.plain = Some(self.plain.map_or(Ok(frequency), plus)?);
        } else if let Some(sum) = self.by_extra.get_mut(extra) {
            *sum = plus(*sum)?;
        } else {
            self.by_extra.insert(extra.to_vec(), frequency);
        }
        Ok(())
    }

    /// Each value of the further key fields with its sum, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Frequency)> {
        let plain = self.plain.map(|sum| (&b""[..], sum));
        let others = self
            .by_extra
            .iter()
            .map(|(extra, sum)| (extra.as_slice(), *sum));
        plain.into_iter().chain(others)
    }

    pub(super) fn clear(&mut self) {
        self.plain = None;
        if !self.by_extra.is_empty() {
            self.by_extra.clear();
        }
    }

    pub(super) fn append(&mut self, other: &Self) -> Result<(), HoldingsError> {
        // Nearly always the only one, and this runs for every node of a tree.
        if let Some(sum) = other.plain {
            self.add(b"", sum)?;
        }
        if other.by_extra.is_empty() {
            return Ok(());
        }
        for (extra, sum) in &other.by_extra {
            self.add(extra, *sum)?;
        }
        Ok(())
    }

    /// Adds the sums of another archive, which may hold the same pages.
    pub(super) fn append_overlapping(&mut self, other: &Self) -> Result<(), HoldingsError> {
        for (extra, sum) in other.iter() {
            self.add_sum(extra, sum, Frequency::plus_overlapping)?;
        }
        Ok(())
    }

    /// The `*` lines.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (extra, sum) in self.iter() {
            write_line(b"*", extra, sum, &mut text);
        }
        text
    }
}

/// Appends a line for a key and the further key fields.
pub(super) fn write_line(key: &[u8], extra: &[u8], frequency: Frequency, out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    out.push(b' ');
    if !extra.is_empty() {
        out.extend_from_slice(extra);
        out.push(b' ');
    }
    frequency.write(out);
    out.push(b'\n');
}
