//! How rows are read for statistics, whether they are then counted or estimated.

use crate::formats::{Layout, Row};
use crate::holdings::harvest::Harvest;
use crate::holdings::scan::Scanner;
use crate::holdings::wanted::Wanted;
use crate::holdings::{Effort, HoldingsError, Tally};

/// The same rows, by URI-R: keys keep their queries, and years make no difference to them.
pub(super) fn of_uris(wanted: Wanted) -> Wanted {
    Wanted {
        queries: true,
        by_year: false,
        ..wanted
    }
}

/// What rows come to that were read elsewhere, as if they were one block.
pub(super) fn harvested<'a, H: Harvest>(
    rows: impl Iterator<Item = Row<'a>>,
    wanted: &Wanted,
    effort: &Effort,
) -> Result<(Tally, H), HoldingsError> {
    let scanner = Scanner {
        layout: &Layout::Cdxj,
        wanted,
        line_limit: effort.line_limit,
    };
    let (mut tally, mut harvest) = (Tally::default(), H::default());
    for row in rows {
        tally.lines += 1;
        scanner.row(&row, &mut tally, &mut harvest)?;
    }
    Ok((tally, harvest))
}
