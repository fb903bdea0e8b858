//! Collapses URI-Rs to pages.

use super::build::BuildOptions;
use super::row_filter::RowFilter;
use super::sorter::Sorter;
use super::totals::Totals;
use super::{Count, Entry, Frequency, HoldingsError, Progress, Table};

/// Counts the URI-Rs of each page. Their keys are not adjacent: `/a`, `/a-b`, `/a/c`, `/a?q` are in order.
pub(super) fn collapse_queries(
    uris: Sorter,
    row_filter: &RowFilter,
    build_options: &BuildOptions,
    progress: &Progress,
) -> Result<(Sorter, Totals), HoldingsError> {
    let fields = if row_filter.by_year { 2 } else { 1 };
    let mut pages = Sorter::new(fields, build_options.memory);
    let mut totals = Totals::default();
    let mut host = Table::default();
    let mut key = Vec::new();
    let mut sorted = uris.finish()?;
    while let Some(entry) = sorted.next_entry()? {
        progress.check_cancelled()?;
        let (surt, extra) = entry.surt_and_extra();
        key.clear();
        key.extend_from_slice(&surt[..memchr::memchr(b'?', surt).unwrap_or(surt.len())]);
        if !extra.is_empty() {
            key.push(b' ');
            key.extend_from_slice(extra);
        }
        let frequency = Frequency {
            mementos: entry.frequency.mementos,
            resources: Count::exactly(1),
        };
        let page = Entry::new(&key, frequency);
        totals.add_entry(&page)?;
        let host_end = memchr::memchr(b')', &key).unwrap_or(key.len());
        let same_host = host
            .iter()
            .next()
            .is_some_and(|first| first.key.get(..=host_end) == key.get(..=host_end));
        if !same_host || host.size() > build_options.memory {
            host.sort()?;
            pages.push_sorted(&host)?;
            host.clear();
        }
        host.push(&page)?;
    }
    host.sort()?;
    pages.push_sorted(&host)?;
    Ok((pages, totals))
}
