//! The states of the headers of two consecutive visits. Each indicator (date, tag, length and others) is in one of a
//! few states, whose combination is a cell.

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
    /// Changed, and equal to the time of the response, so that it carries no information.
    pub const RESPONSE_TIME: usize = 3;
    /// Changed to an earlier date.
    pub const EARLIER: usize = 4;
    /// Present on one visit only.
    pub const ONE_SIDED: usize = 5;
}

/// States of the tag beyond the three.
mod tag {
    /// The same weak tag.
    pub const WEAK: usize = 3;
    /// The same except for `W/` or a suffix for the coding.
    pub const EQUIVALENT: usize = 4;
    /// Present on one visit only.
    pub const ONE_SIDED: usize = 5;
}

/// States of the caching headers.
mod fresh {
    /// The last response declared to be fresh until after this visit.
    pub const FRESH: usize = 1;
    /// `Cache-Control` forbids storing, or use without revalidation.
    pub const UNCACHEABLE: usize = 2;
    /// The last response came from a cache.
    pub const FROM_CACHE: usize = 3;
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

    /// The cell of a pair if only these fields are used.
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
    let tag = if states.tag == tag::EQUIVALENT {
        SAME
    } else {
        base(states.tag, tag::WEAK)
    };
    let is_fresh = usize::from(matches!(states.fresh, fresh::FRESH | fresh::FROM_CACHE));
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
        digest: plain_state(last, this, flag::REPR_DIGEST, last.repr == this.repr),
        fresh: fresh_state(last, this),
    }
    .cell()
}

fn date_state(last: &Row, this: &Row) -> usize {
    match (last.has(flag::DATE), this.has(flag::DATE)) {
        (false, false) => MISSING,
        (true, true) => {
            let both_read = last.has(flag::DATE_VALID) && this.has(flag::DATE_VALID);
            let same_kind = last.has(flag::DATE_VALID) == this.has(flag::DATE_VALID);
            if same_kind && last.date == this.date {
                SAME
            } else if this.has(flag::DATE_IS_RESPONSE_TIME) {
                date::RESPONSE_TIME
            } else if both_read && this.date < last.date {
                date::EARLIER
            } else {
                CHANGED
            }
        }
        _ => date::ONE_SIDED,
    }
}

fn tag_state(last: &Row, this: &Row) -> usize {
    match (last.has(flag::ETAG), this.has(flag::ETAG)) {
        (false, false) => MISSING,
        (true, true) if last.etag != this.etag => CHANGED,
        (true, true) => {
            let spelled = flag::WEAK | flag::CODING_SUFFIX;
            if last.flags & spelled != this.flags & spelled {
                tag::EQUIVALENT
            } else if this.has(flag::WEAK) {
                tag::WEAK
            } else {
                SAME
            }
        }
        _ => tag::ONE_SIDED,
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
        fresh::FROM_CACHE
    } else if this.has(flag::UNCACHEABLE) {
        fresh::UNCACHEABLE
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
