//! What the headers of two consecutive visits claim: each indicator in one of a few states, which together make a cell.

use super::row::{ParseCache, Row, flag};
use super::visit::Visit;

/// The cells of the matrix of date and tag: each changed, same or missing.
pub const BASE_CELLS: usize = 9;
/// The cells of all indicators.
pub const CELLS: usize = 6 * 6 * 3 * 3 * 4;

const CHANGED: usize = 0;
const SAME: usize = 1;
const MISSING: usize = 2;

/// States of the date beyond these three.
mod date {
    /// Changed, and it is the time of the response: it says nothing.
    pub const NOW: usize = 3;
    /// Changed to an earlier one.
    pub const BACK: usize = 4;
    /// Present on one visit only.
    pub const HALF: usize = 5;
}

/// States of the tag beyond the three.
mod tag {
    /// The same, and weak.
    pub const WEAK: usize = 3;
    /// The same except for `W/` or a suffix for the coding.
    pub const ALIKE: usize = 4;
    /// Present on one visit only.
    pub const HALF: usize = 5;
}

/// States of the caching headers.
mod fresh {
    /// The last response declared to be fresh until after this visit.
    pub const FRESH: usize = 1;
    /// Not to be stored, or not without revalidation.
    pub const REFUSED: usize = 2;
    /// The last response came from a cache.
    pub const AGED: usize = 3;
}

/// Which indicators are used; the others count as missing. From the lowest bit on: weak tags and tags that differ only
/// in spelling, separately; dates that are the time of the response, or go back, separately; `Content-Length`;
/// `Repr-Digest`; `Cache-Control`, `Expires` and `Age`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields(pub u8);

impl Fields {
    fn has(self, bit: u8) -> bool {
        self.0 & (1 << bit) != 0
    }

    /// The cell of a pair if only these are used.
    #[must_use]
    pub fn project(self, cell: usize) -> usize {
        let mut states = States::of(cell);
        if !self.has(0) {
            states.tag = base(states.tag, tag::WEAK);
        }
        if !self.has(1) {
            states.date = base(states.date, usize::MAX);
        }
        if !self.has(2) {
            states.length = MISSING;
        }
        if !self.has(3) {
            states.digest = MISSING;
        }
        if !self.has(4) {
            states.fresh = 0;
        }
        states.cell()
    }
}

/// The projection of each cell to some fields: a table, as there are many more pairs than cells.
pub(super) struct Projected(Vec<(u16, u8)>);

impl Projected {
    pub(super) fn of(fields: Fields) -> Self {
        let of_cell = |cell| {
            let projected = fields.project(cell);
            let number = u16::try_from(projected).unwrap_or_default();
            (
                number,
                u8::try_from(group_of(projected)).unwrap_or_default(),
            )
        };
        Self((0..CELLS).map(of_cell).collect())
    }

    /// The cell and the group of a cell.
    pub(super) fn get(&self, cell: u16) -> (usize, usize) {
        let (cell, group) = self.0[usize::from(cell)];
        (usize::from(cell), usize::from(group))
    }
}

/// The base state of a further state: changed, except for the one that is the same.
fn base(state: usize, same: usize) -> usize {
    match state {
        CHANGED | SAME | MISSING => state,
        state if state == same => SAME,
        _ => CHANGED,
    }
}

/// The cell of the matrix of nine: row by date, column by tag, each changed, same, missing.
#[must_use]
pub fn base_cell(cell: usize) -> usize {
    let states = States::of(cell);
    base(states.date, usize::MAX) * 3 + base(states.tag, tag::WEAK)
}

/// The number of groups of cells in which a host's past predicts its future.
pub const GROUPS: usize = 9 * 3 * 2 * 2;

/// The group of a cell: date and tag, each changed, same or missing, where a tag that differs only in spelling is the
/// same; the digest; whether a cache declares the page unchanged; whether the length changed.
#[must_use]
pub fn group_of(cell: usize) -> usize {
    let states = States::of(cell);
    let tag = if states.tag == tag::ALIKE {
        SAME
    } else {
        base(states.tag, tag::WEAK)
    };
    let is_fresh = usize::from(matches!(states.fresh, fresh::FRESH | fresh::AGED));
    let nine = base(states.date, usize::MAX) * 3 + tag;
    ((nine * 3 + states.digest) * 2 + is_fresh) * 2 + usize::from(states.length == CHANGED)
}

#[derive(Debug, Clone, Copy)]
struct States {
    date: usize,
    tag: usize,
    length: usize,
    digest: usize,
    fresh: usize,
}

impl States {
    fn of(cell: usize) -> Self {
        Self {
            fresh: cell % 4,
            digest: cell / 4 % 3,
            length: cell / 12 % 3,
            tag: cell / 36 % 6,
            date: cell / 216 % 6,
        }
    }

    fn cell(self) -> usize {
        (((self.date * 6 + self.tag) * 3 + self.length) * 3 + self.digest) * 4 + self.fresh
    }
}

/// The same for visits that are not stored.
#[must_use]
pub fn cell_of_visits(last: &Visit<'_>, this: &Visit<'_>) -> usize {
    let mut read = ParseCache::default();
    cell_of(
        &Row::of(last, b"", 0, 0, &mut read),
        &Row::of(this, b"", 0, 1, &mut read),
    )
}

/// The cell of two consecutive visits to one page.
pub(super) fn cell_of(last: &Row, this: &Row) -> usize {
    States {
        date: date_state(last, this),
        tag: tag_state(last, this),
        length: plain_state(last, this, flag::LENGTH, last.length == this.length),
        digest: plain_state(last, this, flag::REPR, last.repr == this.repr),
        fresh: fresh_state(last, this),
    }
    .cell()
}

fn date_state(last: &Row, this: &Row) -> usize {
    match (last.has(flag::DATE), this.has(flag::DATE)) {
        (false, false) => MISSING,
        (true, true) => {
            let both_read = last.has(flag::DATE_READ) && this.has(flag::DATE_READ);
            let same_kind = last.has(flag::DATE_READ) == this.has(flag::DATE_READ);
            if same_kind && last.date == this.date {
                SAME
            } else if this.has(flag::DATE_NOW) {
                date::NOW
            } else if both_read && this.date < last.date {
                date::BACK
            } else {
                CHANGED
            }
        }
        _ => date::HALF,
    }
}

fn tag_state(last: &Row, this: &Row) -> usize {
    match (last.has(flag::ETAG), this.has(flag::ETAG)) {
        (false, false) => MISSING,
        (true, true) if last.etag != this.etag => CHANGED,
        (true, true) => {
            let spelled = flag::WEAK | flag::CODED;
            if last.flags & spelled != this.flags & spelled {
                tag::ALIKE
            } else if this.has(flag::WEAK) {
                tag::WEAK
            } else {
                SAME
            }
        }
        _ => tag::HALF,
    }
}

fn plain_state(last: &Row, this: &Row, presence: u16, same: bool) -> usize {
    match (last.has(presence), this.has(presence)) {
        (false, false) => MISSING,
        (true, true) if same => SAME,
        _ => CHANGED,
    }
}

fn fresh_state(last: &Row, this: &Row) -> usize {
    let passed = this.time.saturating_sub(last.time) / 1000;
    if this.has(flag::AGE) && i64::from(this.age) > passed {
        fresh::AGED
    } else if this.has(flag::REFUSED) {
        fresh::REFUSED
    } else if last.has(flag::LIFETIME) && i64::from(last.lifetime) >= passed {
        fresh::FRESH
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_and_states_round_trip() {
        for cell in 0..CELLS {
            assert_eq!(States::of(cell).cell(), cell);
            assert_eq!(Fields(31).project(cell), cell);
            let plain = Fields(0).project(cell);
            assert_eq!(Fields(0).project(plain), plain);
            assert_eq!(base_cell(plain), base_cell(cell));
        }
    }
}
