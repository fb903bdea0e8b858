//! What an archive's holdings are like: everything that is told of an index in one pass.
//!
//! ```text
//! blocks ─ rows ─┬─ counts of rows (types, statuses, dates)          added up
//!                └─ runs of one URI-R ─ hosts ─┬─ inner hosts: trees of paths, in many threads
//!                                              └─ hosts at the edges of blocks, joined by who collects, in files if large
//!                                                        └─ one line a host ─ tree of hosts
//! ```
//!
//! What is counted by URI-R, page or host is exact if every host's rows stand together, which sorting sees to.

mod depths;
mod estimate;
mod gather;
mod histogram;
mod host_tree;
mod large_host;
mod path_tree;
mod reading;
mod rows;
mod run_sorter;
mod runs;
mod samples;
mod sketches;
mod statistics;
mod together;
mod top;

pub use depths::{Depths, LevelEstimate};
pub use estimate::{BusyUri, Estimates, Estimator, Sampled};
pub use gather::Gatherer;
pub use histogram::Histogram;
pub use rows::{FIRST_YEAR, KindCount, MONTHS, RowCounts, YEARS, sample_lot};
pub use samples::Lowest;
pub use sketches::{Distinct, Frequent};
pub use statistics::{Domain, Level, Statistics};
pub use together::{HostCounter, RunCounter};
pub use top::{BusyHost, BusyPage};
