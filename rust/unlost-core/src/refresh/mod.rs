//! Learns from a site's history: visits become pairs of consecutive ones, pairs are assigned to cells by their headers,
//! and cells are counted by host.
//!
//! `docs/refresh.md` explains the cells; `tests/models/refresh.py` is the slow model that all of this agrees with.

mod bootstrap;
mod cell_counts;
mod history;
mod hosts;
mod replay;
mod row;
mod states;
mod visit;
mod visit_pairs;

pub use bootstrap::Resampled;
pub use cell_counts::{CellCount, HostCells};
pub use history::History;
pub use hosts::{Host, Presence};
pub use replay::{BUCKETS, Learned, Replay, Step};
pub use states::{BASE_CELLS, CELLS, Fields, GROUPS, base_cell, cell_of_visits, group_of};
pub use visit::Visit;
pub use visit_pairs::{VisitPairer, VisitStats};
