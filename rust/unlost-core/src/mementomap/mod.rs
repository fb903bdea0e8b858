//! `MementoMaps`: built, compacted, merged and looked up; with filters, profiles, budgets and statistics.
//!
//! Data flows one way:
//!
//! ```text
//! files ─ blocks ─ rows (keys, options) ─┬─ table ─ sorter ─┬─ map
//!                                        │                  ├─ compaction ─ smaller map (budget: what to roll up)
//!                                        │                  └─ policies ─ profiles
//!                                        └─ hashes ─ partitions ─ filter
//! ```

mod block_output;
pub mod budget;
mod build;
mod collapse_queries;
mod compact;
mod entry;
mod error;
pub mod filter;
mod frequency;
mod in_order_sink;
pub mod key_lines;
mod line_format;
mod line_stats;
pub mod lookup;
mod map_lines;
mod merge;
mod merge_heads;
mod profile;
mod progress;
mod reader;
mod row_filter;
mod runs;
mod scan;
mod sorter;
pub(crate) mod spill_buffer;
pub mod stats;
mod streamed_file;
pub mod synth;
mod table;
mod totals;
mod totals_inserter;
mod tree;
mod tree_key;
mod tree_order;

pub use build::{BuildOptions, Builder, Counts};
pub use compact::{Compaction, CompactionStats, Curve, compact};
pub use entry::Entry;
pub use error::HoldingsError;
pub use frequency::{Count, Frequency};
pub use line_stats::{LineProblem, LineStats};
pub use map_lines::{MapLines, add_totals, read_map_lines, split_lines};
pub use merge::{KeyLookup, Merged, Source, merge_maps};
pub use profile::{
    Holding, KeyPresence, ProfileForm, ProfileReader, ProfileReport, check_profile, merge_profiles,
    profiles_to_map, write_profiles,
};
pub use progress::Progress;
pub use reader::{MapReader, wrong_row_bytes};
pub use row_filter::{Excluded, RowFilter};
pub use table::Table;
pub use tree_order::Entries;
