//! Statistics of an archive's holdings, from one pass over its index.
//!
//! ```text
//! blocks ─ rows ─┬─ counts of rows (types, statuses, dates)          added up
//!                └─ runs of one URI-R ─ hosts ─┬─ inner hosts: trees of paths, in many threads
//!                                              └─ hosts at the edges of blocks, joined by the collector, in files if large
//!                                                        └─ one line per host ─ tree of hosts
//! ```
//!
//! Counts by URI-R, page or host are exact if the rows of every host are contiguous, as in a sorted index.

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
