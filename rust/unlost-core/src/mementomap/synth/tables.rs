//! The figures that synthetic indexes are fitted to. "Table" refers to the second paper (on maps, over Arquivo.pt)
//! unless stated otherwise.

use super::random::{Law, ParetoTail};

/// The parents of domains in byte order, with their captures per million.
///
/// The first ten by size are those of Table 1; the distribution of the other 3 % of the captures over other domains is
/// our assumption. Some have two labels, so that public suffixes of two labels occur.
pub(super) const ROOTS: [(&str, u64); 27] = [
    ("ao,co", 2_955),
    ("biz", 1_100),
    ("br,com", 4_704),
    ("cat", 800),
    ("ch", 1_300),
    ("com", 196_431),
    ("cv", 3_350),
    ("de", 3_431),
    ("edu", 2_200),
    ("es", 3_000),
    ("eu", 42_616),
    ("fr", 3_000),
    ("gov", 1_200),
    ("info", 3_000),
    ("int", 500),
    ("it", 2_000),
    ("jp,co", 700),
    ("mz,co", 4_143),
    ("net", 18_291),
    ("nl", 1_300),
    ("org", 12_634),
    ("pl", 1_000),
    ("pt", 682_660),
    ("ru", 1_400),
    ("tv", 1_400),
    ("uk,co", 3_500),
    ("us", 1_385),
];

/// How a tree branches below a node of some depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Branching {
    /// The share of nodes with children: Table 8's parents of the next depth by its count of this one.
    pub(super) parents: f64,
    /// The share of parents that are in the index themselves: a node without children must be, so it is what Table 7's
    /// exact items leave.
    pub(super) own: f64,
    /// The number of children of a parent: the mean is the next depth's mean children in Table 8.
    pub(super) children: ParetoTail,
}

const fn branching(parents: f64, own: f64, law: Law, scale: f64) -> Branching {
    Branching {
        parents,
        own,
        children: ParetoTail { law, scale },
    }
}

/// Hosts from H2, the registered domain, to H8; deeper ones have no children. Means 8.53, 8.95, 7.77, 6.28, 3.42, 4.55,
/// 1.
pub(super) const HOST_BRANCHING: [Branching; 7] = [
    branching(0.1224, 0.532, Law::Heavy, 4.814),
    branching(0.0688, 0.585, Law::Heavy, 5.068),
    branching(0.0238, 0.585, Law::Heavy, 4.354),
    branching(0.0671, 0.286, Law::Square, 5.752),
    branching(0.0971, 0.196, Law::Square, 2.863),
    branching(0.4467, 0.593, Law::Square, 4.009),
    branching(0.7993, 0.908, Law::Square, 0.0),
];

/// Paths from P0, the host's root, to P10; deeper ones have no children. Means 25, 7.25, 4.96, 3.26, 3.29, 2.7, 2.48,
/// 2.09, 2.01, 2.13, 1.76.
pub(super) const PATHS: [Branching; 11] = [
    branching(0.9977, 0.762, Law::Heavy, 14.769),
    branching(0.2755, 0.186, Law::Square, 6.726),
    branching(0.2725, 0.176, Law::Square, 4.423),
    branching(0.1682, 0.119, Law::Square, 2.700),
    branching(0.2237, 0.152, Law::Square, 2.731),
    branching(0.2134, 0.089, Law::Square, 2.125),
    branching(0.2650, 0.060, Law::Square, 1.896),
    branching(0.2478, 0.040, Law::Square, 1.486),
    branching(0.2969, 0.034, Law::Square, 1.400),
    branching(0.1724, 0.049, Law::Square, 1.528),
    branching(0.0326, 0.008, Law::Square, 1.129),
];

/// Keys of a domain, from Table 8: the mean of H2. Affects only the distribution of names over the alphabet.
pub(super) const KEYS_PER_DOMAIN: u64 = 551;

/// Keys at or below a first path segment, Table 8: the mean of P1.
pub(super) const KEYS_PER_SEGMENT: u64 = 8;

/// Captures of a page: mean 2.77, section 5.4. With this law the median is 1, as in Table 4, and the Gini coefficient
/// 0.50, where Table 4 has 0.42.
pub(super) const CAPTURES: ParetoTail = ParetoTail {
    law: Law::Square,
    scale: 2.197,
};

/// Hundred times the mean.
pub(super) const CAPTURES_PERCENT: u64 = 277;

/// The share of keys that also have pages with a query, and their number. Table 1 of the first paper has 0.70583 keys
/// without query (`HxPx`) per page (URIR); if each of them is a page too, 29.4 % of the pages have a query: 0.4168 per
/// key. Half of the keys are HTML, and no others have queries.
pub(super) const QUERIED: f64 = 0.154;
pub(super) const QUERIES: ParetoTail = ParetoTail {
    law: Law::Square,
    scale: 4.675,
};

/// Captures per hundred pages without a query: 1 / 0.70583 * 2.77.
pub(super) const LINES_PER_KEY_PERCENT: u64 = 392;

/// A year's captures (URI-Ms), and how many of 10,000 of them have a status of 2xx, 3xx, 4xx, 5xx; Table 6, scaled to
/// 10,000 where the paper's figures exceed it. The remainder are revisits, as it explains for 2017 and 2018. 1992 to
/// 1995, which have less than a thousand captures of five billion, are left out.
pub(super) struct Year {
    pub(super) captures: u64,
    pub(super) classes: [u64; 4],
}

const fn year(captures: u64, classes: [u64; 4]) -> Year {
    Year { captures, classes }
}

pub(super) const FIRST_YEAR: u32 = 1996;
pub(super) const YEARS: [Year; 23] = [
    year(126_600, [9_999, 1, 0, 0]),
    year(847_783, [10_000, 0, 0, 0]),
    year(747_114, [9_923, 77, 0, 0]),
    year(1_233_994, [7_654, 1_062, 1_284, 0]),
    year(13_413_518, [8_703, 724, 573, 0]),
    year(7_873_642, [9_387, 487, 125, 1]),
    year(13_048_749, [9_096, 511, 392, 1]),
    year(19_989_725, [9_212, 444, 341, 3]),
    year(22_810_763, [9_200, 511, 288, 1]),
    year(19_839_405, [9_398, 394, 207, 1]),
    year(15_388_836, [9_233, 629, 137, 1]),
    year(43_021_527, [8_303, 1_488, 208, 1]),
    year(174_996_303, [8_471, 883, 610, 36]),
    year(355_833_394, [8_670, 650, 644, 36]),
    year(352_019_433, [8_641, 675, 642, 42]),
    year(465_274_765, [8_662, 603, 679, 56]),
    year(200_042_923, [8_534, 647, 774, 45]),
    year(236_583_969, [8_176, 708, 1_061, 55]),
    year(536_560_181, [7_924, 699, 1_326, 51]),
    year(1_087_680_516, [7_715, 504, 1_749, 32]),
    year(1_353_786_928, [7_195, 635, 2_042, 128]),
    year(1_111_999, [5_782, 544, 789, 22]),
    year(847_470, [2_207, 563, 138, 0]),
];

/// The statuses of each class: the first in 7 of 8 cases. Our assumption: the paper has classes only.
pub(super) const STATUSES: [[&[u8]; 2]; 4] = [
    [b"200", b"200"],
    [b"302", b"301"],
    [b"404", b"403"],
    [b"500", b"503"],
];

/// Pages without children or queries, by file extension, and their share per hundred.
///
/// Section 5.4: 54 % of the captures are HTML of status 200, Table 6: 79 % have a status of 2xx; so 68 % of the pages
/// are HTML, and since all with queries or children are, 52 % of the rest. The distribution of the others is our
/// assumption.
pub(super) const TYPES: [(&str, &str, u64); 8] = [
    (".html", "text/html", 52),
    (".jpg", "image/jpeg", 19),
    (".gif", "image/gif", 9),
    (".png", "image/png", 7),
    (".js", "application/javascript", 4),
    (".css", "text/css", 3),
    (".pdf", "application/pdf", 3),
    (".xml", "application/xml", 3),
];

/// Extensions of HTML; most pages have none.
pub(super) const HTML_ENDINGS: [&str; 8] = ["", "", "", ".html", ".html", ".htm", ".php", ".aspx"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one_and_roots_are_sorted() {
        assert!(ROOTS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(ROOTS.iter().map(|root| root.1).sum::<u64>(), 1_000_000);
        assert_eq!(TYPES.iter().map(|kind| kind.2).sum::<u64>(), 100);
        for year in YEARS {
            assert!(year.classes.iter().sum::<u64>() <= 10_000);
        }
    }
}
