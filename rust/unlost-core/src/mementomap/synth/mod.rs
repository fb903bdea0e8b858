//! Synthetic indexes: sorted CDXJ with the shapes that the papers found, for benches and tests.
//!
//! The same settings make the same bytes with one version on every machine: the numbers come from a generator of our own,
//! and of floating point only what IEEE 754 fixes to the last bit is used (+, -, ×, ÷, √, comparisons).
//!
//! ```text
//! hosts (which, in order) ─ site (its pages, in order) ─┬─ rows (captures of a page) ─ output (order, compression)
//! list (real addresses, sorted) ────────────────────────┘
//! ```
//!
//! Memory does not grow with the index: hosts and pages are made in byte order, each from where the walk through the
//! tree is. Only a list of addresses is held, and the captures of one page.

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

/// What to make.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How many lines, exactly.
    pub lines: u64,
    /// Another seed, another index of the same shape.
    pub seed: u64,
    /// One host is to have so many keys without query. Not more than lines; ignored with a list.
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
