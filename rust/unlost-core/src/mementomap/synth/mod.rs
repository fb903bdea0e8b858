//! Synthetic indexes: sorted CDXJ with the distributions reported by the papers, for benchmarks and tests.
//!
//! The same settings and version produce the same bytes on every machine: random numbers come from an own generator,
//! and floating point uses only operations that IEEE 754 fixes to the last bit (+, -, ×, ÷, √, comparisons).
//!
//! ```text
//! hosts (which, in order) ─ site (its pages, in order) ─┬─ rows (captures of a page) ─ output (order, compression)
//! list (real URLs, sorted) ─────────────────────────────┘
//! ```
//!
//! Memory does not grow with the index: hosts and pages are generated in byte order during one walk through the tree.
//! Only a URL list and the captures of one page are in memory.

mod hosts;
mod labels;
mod list;
mod output;
mod random;
mod rows;
mod site;
mod tables;

use std::io::{self, Write};

pub use list::{RejectedLines, UrlList};
pub use output::Packing;

use hosts::Hosts;
use output::Output;
use random::Random;
use rows::Rows;

/// The settings of the generator.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The exact number of lines.
    pub lines: u64,
    /// Another seed gives another index with the same distributions.
    pub seed: u64,
    /// The number of keys without query of one host. Not more than lines; ignored with a list.
    pub largest_host: Option<u64>,
    /// Whether lines come in random order.
    pub is_shuffled: bool,
    /// How the file is stored.
    pub packing: Packing,
}

/// Writes an index of made-up pages, or of those of a list, which must not be empty.
pub fn write_index<W: Write>(
    settings: &Settings,
    urls: Option<&UrlList>,
    out: W,
) -> io::Result<()> {
    let mut random = Random::new(settings.seed);
    // Drawn in any case, so that shuffled lines are the same lines.
    let shuffle_seed = random.bits();
    let shuffle = settings.is_shuffled.then_some(shuffle_seed);
    let rows = Rows::new(Output::new(out, settings.packing, shuffle)?);
    if let Some(list) = urls {
        return list.write(settings.lines, &mut random, rows);
    }
    let largest = settings.largest_host.map(|keys| keys.min(settings.lines));
    Hosts::new(settings.lines, random, rows).write(largest)
}
