//! Queries a filter in the bytes of its file.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fuse::has;
use super::hash::xxh64;
use super::header::{CHECKSUM_BYTES, ENTRY_BYTES, Header, KeyKind, MAGIC, Partition};
use crate::uri::RuleSet;

/// The reasons why a filter cannot be queried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterError {
    /// The magic number is not that of a filter; the file appears to be of this kind.
    NotAFilter(&'static str),
    /// The version is unknown.
    OtherVersion(String),
    /// The rule set is unknown.
    OtherRules(String),
    /// The header is malformed.
    BadHeader,
    /// The checksum of the header does not match.
    HeaderChecksum,
    /// The checksum of a partition's fingerprints does not match.
    Checksum {
        /// The partition, from 0.
        partition: usize,
        /// The layer, from 1.
        layer: usize,
    },
    /// The file is truncated.
    Truncated,
    /// The last layer is followed by bytes that are not a layer.
    Trailing {
        /// The offset.
        offset: usize,
    },
    /// The layers are incompatible.
    Mixed,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AGAIN: &str = "get it again, or build it anew";
        match self {
            Self::NotAFilter(contents) => write!(
                f,
                "not a filter: expected a file that `unlost filter build` made, found {contents}"
            ),
            Self::OtherVersion(version) => write!(
                f,
                "a filter of version {}, and this unlost reads version 1: build it anew, or get a newer unlost",
                version.escape_default()
            ),
            Self::OtherRules(rules) => write!(
                f,
                "made by unknown rules, {}: expected {}",
                rules.escape_default(),
                RuleSet::ALL.map(RuleSet::name).join(" or ")
            ),
            Self::BadHeader => write!(f, "the filter's header is damaged: {AGAIN}"),
            Self::HeaderChecksum => write!(
                f,
                "the filter's header is damaged: it has another checksum than was written: {AGAIN}"
            ),
            Self::Checksum { partition, layer } => write!(
                f,
                "the filter is damaged: partition {partition} of layer {layer} has another checksum than was written: {AGAIN}"
            ),
            Self::Truncated => write!(f, "the filter ends in the middle: {AGAIN}"),
            Self::Trailing { offset } => write!(
                f,
                "bytes that belong to no filter follow it, from byte {offset} on: {AGAIN}"
            ),
            Self::Mixed => f.write_str(
                "its layers have different kinds of keys or rules: only filters of the same can be chained",
            ),
        }
    }
}

impl std::error::Error for FilterError {}

/// A filter with all its layers.
#[derive(Debug)]
pub struct Filter<B> {
    bytes: B,
    layers: Vec<Layer>,
}

/// One layer of a filter.
#[derive(Debug)]
struct Layer {
    header: Header,
    /// How far a hash is shifted to get its partition.
    shift: u32,
    partitions: Vec<PartitionRange>,
}

/// A partition and its byte range.
#[derive(Debug)]
struct PartitionRange {
    partition: Partition,
    start: usize,
    end: usize,
    /// Whether its checksum was verified.
    is_checked: AtomicBool,
}

impl<B: AsRef<[u8]>> Filter<B> {
    /// Reads only the headers of all layers.
    pub fn open(bytes: B) -> Result<Self, FilterError> {
        let all = bytes.as_ref();
        let mut layers: Vec<Layer> = Vec::new();
        let mut offset = 0;
        while offset < all.len() || layers.is_empty() {
            if offset > 0 && !all[offset..].starts_with(MAGIC) {
                return Err(FilterError::Trailing { offset });
            }
            let layer = Layer::read(all, offset)?;
            if let Some(first) = layers.first() {
                let both = [&first.header, &layer.header];
                if both[0].kind != both[1].kind || both[0].rules != both[1].rules {
                    return Err(FilterError::Mixed);
                }
            }
            offset = layer
                .partitions
                .last()
                .map_or(all.len(), |partition_range| partition_range.end);
            layers.push(layer);
        }
        Ok(Self { bytes, layers })
    }

    /// The headers of its layers, oldest first. There is at least one.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = &Header> {
        self.layers.iter().map(|layer| &layer.header)
    }

    /// The kind of its keys.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        self.layers[0].header.kind
    }

    /// The rule set that turns URLs into keys.
    #[must_use]
    pub fn rules(&self) -> RuleSet {
        self.layers[0].header.rules
    }

    /// The data source.
    #[must_use]
    pub fn source(&self) -> &B {
        &self.bytes
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Whether any layer contains a hash. Verifies partitions on first use, so that damage never denies a key.
    #[inline]
    pub fn has(&self, hash: u64) -> Result<bool, FilterError> {
        let bytes = self.bytes.as_ref();
        for (number, layer) in self.layers.iter().enumerate() {
            if layer.has(bytes, number, hash)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Verifies all fingerprints; returns the errors.
    pub fn check(&self) -> Vec<FilterError> {
        let bytes = self.bytes.as_ref();
        let mut damage = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            let numbers = 0..layer.partitions.len();
            damage.extend(numbers.filter_map(|at| layer.check(bytes, number, at).err()));
        }
        damage
    }
}

impl Layer {
    fn read(all: &[u8], offset: usize) -> Result<Self, FilterError> {
        let bytes = &all[offset..];
        let (header, extent, length) = Header::read(bytes)?;
        let end = extent
            .partitions
            .checked_mul(ENTRY_BYTES)
            .and_then(|size| size.checked_add(length))
            .filter(|end| end.saturating_add(CHECKSUM_BYTES) <= bytes.len())
            .ok_or(FilterError::Truncated)?;
        let (covered, rest) = bytes.split_at(end);
        if rest[..CHECKSUM_BYTES] != xxh64(covered).to_le_bytes() {
            return Err(FilterError::HeaderChecksum);
        }
        let mut start = offset + end + CHECKSUM_BYTES;
        let body = start;
        let mut keys = 0;
        let mut partitions = Vec::with_capacity(extent.partitions);
        for entry in covered[length..].chunks_exact(ENTRY_BYTES) {
            let partition = Partition::read(entry).ok_or(FilterError::BadHeader)?;
            // Far below the range of an integer: 2^32 slots of two bytes.
            let end = start.saturating_add(partition.shape.bytes(header.bits));
            partitions.push(PartitionRange {
                partition,
                start,
                end,
                is_checked: AtomicBool::new(false),
            });
            keys += u64::from(partition.keys);
            start = end;
        }
        if (start - body) as u64 != extent.bytes || keys != header.keys {
            return Err(FilterError::BadHeader);
        }
        if start > all.len() {
            return Err(FilterError::Truncated);
        }
        Ok(Self {
            header,
            shift: 64 - extent.partitions.trailing_zeros(),
            partitions,
        })
    }

    #[inline]
    fn has(&self, bytes: &[u8], number: usize, hash: u64) -> Result<bool, FilterError> {
        // The number of partitions, which fits.
        let at = usize::try_from(hash.checked_shr(self.shift).unwrap_or(0)).unwrap_or(0);
        let partition_range = &self.partitions[at];
        if !partition_range.is_checked.load(Ordering::Relaxed) {
            self.check(bytes, number, at)?;
        }
        let Partition { shape, seed, .. } = partition_range.partition;
        let prints = &bytes[partition_range.start..partition_range.end];
        Ok(has(prints, shape, seed, self.header.bits, hash))
    }

    #[cold]
    fn check(&self, bytes: &[u8], number: usize, at: usize) -> Result<(), FilterError> {
        let partition_range = &self.partitions[at];
        if xxh64(&bytes[partition_range.start..partition_range.end])
            != partition_range.partition.checksum
        {
            return Err(FilterError::Checksum {
                partition: at,
                layer: number + 1,
            });
        }
        partition_range.is_checked.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::super::super::{BuildOptions, LineStats, Progress, RowFilter};
    use super::super::FilterBuilder;
    use super::*;
    use crate::index::Row;

    /// The file of a filter of some pages, optionally after a base.
    fn build_file(pages: u64, base: Option<&Filter<Vec<u8>>>) -> Vec<u8> {
        let mut builder = FilterBuilder::new(RowFilter::default(), BuildOptions::default());
        let mut line_stats = LineStats::default();
        for page in 0..pages {
            let url = format!("http://a.com/{page}").into_bytes();
            let row = Row {
                url: url.into(),
                date: b"2014",
                ..Row::default()
            };
            builder.add_row(&row, &mut line_stats).expect("small");
        }
        let header = Header {
            bits: 9,
            ..Header::default()
        };
        let mut file = tempfile::tempfile().expect("disk");
        builder
            .write(header, base, &mut file, &Progress::default())
            .expect("disk");
        let mut bytes = Vec::new();
        file.rewind().expect("disk");
        file.read_to_end(&mut bytes).expect("disk");
        bytes
    }

    fn query(filter: &Filter<Vec<u8>>, page: u64) -> Result<bool, FilterError> {
        filter.has(KeyKind::Hxpx.hash_key(format!("com,a)/{page}?q").as_bytes()))
    }

    #[test]
    fn appended_keys_are_contained() {
        let base = Filter::open(build_file(100, None)).expect("sound");
        let chain = Filter::open(build_file(300, Some(&base))).expect("sound");
        assert!((0..300).all(|page| query(&chain, page) == Ok(true)));
        assert!(
            (1000..1300)
                .filter(|&page| query(&chain, page) == Ok(true))
                .count()
                < 20
        );
        let keys: Vec<u64> = chain.headers().map(|header| header.keys).collect();
        assert!(keys[0] == 100 && keys[1] > 190 && keys[1] <= 200);
        assert!(chain.bytes().starts_with(base.bytes()));
    }

    #[test]
    fn every_flipped_bit_and_truncation_is_detected() {
        let base = Filter::open(build_file(10, None)).expect("sound");
        let bytes = build_file(30, Some(&base));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let is_refused = match Filter::open(flipped) {
                Err(_) => true,
                Ok(filter) => !filter.check().is_empty(),
            };
            assert!(is_refused, "{at}");
            // Without its last layer, it is a valid filter.
            let is_cut = Filter::open(bytes[..at].to_vec()).is_err();
            assert_eq!(is_cut, at != base.bytes().len(), "{at}");
        }
    }

    #[test]
    fn damage_never_denies_a_key() {
        let mut bytes = build_file(30, None);
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        let filter = Filter::open(bytes).expect("its header is sound");
        let damage = FilterError::Checksum {
            partition: 0,
            layer: 1,
        };
        assert_eq!(query(&filter, 0), Err(damage.clone()));
        assert_eq!(filter.check(), [damage]);
    }
}
