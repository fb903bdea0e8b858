//! What an archive holds: counted, compacted, looked up.
//!
//! Data flows one way:
//!
//! ```text
//! files ─ blocks ─ rows (keys, options) ─┬─ table ─ sorter ─┬─ map
//!                                        │                  ├─ compaction ─ smaller map (budget: what to roll up)
//!                                        │                  └─ policies ─ profiles
//!                                        └─ hashes ─ partitions ─ filter
//! ```

pub mod budget;
mod build;
mod collect;
mod compact;
mod cutting;
mod entry;
mod error;
pub mod filter;
mod form;
mod frequency;
mod harvest;
mod heads;
mod home;
pub mod key_lines;
pub mod lookup;
mod merge;
mod order;
mod pages;
mod profile;
mod progress;
mod reader;
mod runs;
mod scan;
mod sorter;
pub(crate) mod spool;
pub mod stats;
pub mod synth;
mod table;
mod tally;
mod totals;
mod tree;
mod tree_order;
mod wanted;
mod with_totals;

pub use build::{Builder, Counts, Effort};
pub use compact::{Compaction, Curve, Shape, compact};
pub use cutting::{MapLines, add_totals, cut_lines, read_map_lines};
pub use entry::Entry;
pub use error::HoldingsError;
pub use frequency::{Count, Frequency};
pub use merge::{Asked, Merged, Source, merge_maps};
pub use profile::{
    Holding, ProfileForm, ProfileReader, ProfileReport, SeenKeys, check_profile, merge_profiles,
    profiles_to_map, write_profiles,
};
pub use progress::Progress;
pub use reader::{MapReader, wrong_row_bytes};
pub use table::Table;
pub use tally::{Tally, Trouble};
pub use tree_order::Entries;
pub use wanted::{Excluded, Wanted};
