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
mod distributed;
mod estimate;
mod exact;
mod histogram;
mod host_tree;
mod large_host;
mod path_tree;
mod row_input;
mod rows;
mod run_sorter;
mod runs;
mod samples;
mod sketches;
mod statistics;
mod top;

pub use depths::{Depths, LevelEstimate};
pub use distributed::{HostCounter, RunCounter};
pub use estimate::{BusyUri, Estimates, Estimator, Sampled};
pub use exact::StatisticsCollector;
pub use histogram::Histogram;
pub use rows::{FIRST_YEAR, KindCount, MONTHS, RowCounts, YEARS, sample_priority};
pub use samples::BottomSample;
pub use sketches::{DistinctCounter, FrequentItems};
pub use statistics::{Domain, Level, Statistics};
pub use top::{BusyHost, BusyPage};
