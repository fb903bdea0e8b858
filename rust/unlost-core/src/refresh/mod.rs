//! What a site's own history tells: visits become pairs of consecutive ones, pairs fall into cells by what their headers
//! claim, and cells are counted by host.
//!
//! `docs/refresh.md` explains the cells; `tests/models/refresh.py` is the slow model that all of this agrees with.

mod counting;
mod history;
mod hosts;
mod pairing;
mod replay;
mod resampling;
mod row;
mod states;
mod visit;

pub use counting::{CellCount, HostCells};
pub use history::History;
pub use hosts::{Host, Presence};
pub use pairing::{Pairing, Tally};
pub use replay::{BUCKETS, Learned, Replay, Step};
pub use resampling::Resampled;
pub use states::{BASE_CELLS, CELLS, Fields, GROUPS, base_cell, cell_of_visits, group_of};
pub use visit::Visit;
