//! Row input of statistics, exact or estimated.

use crate::index::Layout;
use crate::index::Row;
use crate::mementomap::block_output::BlockOutput;
use crate::mementomap::row_filter::RowFilter;
use crate::mementomap::scan::Scanner;
use crate::mementomap::{BuildOptions, HoldingsError, LineStats};

/// The same filter, by URI-R: keys retain their queries, and `by_year` is off.
pub(super) fn by_uri(row_filter: RowFilter) -> RowFilter {
    RowFilter {
        queries: true,
        by_year: false,
        ..row_filter
    }
}

/// The result of rows that were parsed elsewhere, as if they were one block.
pub(super) fn process_rows<'a, H: BlockOutput>(
    rows: impl Iterator<Item = Row<'a>>,
    row_filter: &RowFilter,
    build_options: &BuildOptions,
) -> Result<(LineStats, H), HoldingsError> {
    let scanner = Scanner {
        layout: &Layout::Cdxj,
        row_filter,
        line_limit: build_options.line_limit,
    };
    let (mut line_stats, mut output) = (LineStats::default(), H::default());
    for row in rows {
        line_stats.lines += 1;
        scanner.row(&row, &mut line_stats, &mut output)?;
    }
    Ok((line_stats, output))
}
