//! The data before the fingerprints of a layer: a human-readable header, then a directory of its partitions.
//!
//! docs/filter.md describes the file format.

use super::FilterError;
use super::dates::DateRange;
use super::dates::moment;
use super::fuse::FuseShape;
use crate::input::is_compressed;
use crate::uri::RuleSet;

/// The magic text of a filter, up to its version.
pub(super) const MAGIC: &[u8] = b"unlost-filter ";
const VERSION: &str = "1";

/// The maximum length of the header text. Our limit, enough for a thousand media types.
const MAX_TEXT: usize = 64 << 10;

/// The sizes of a directory entry and of the checksum after the directory.
pub(super) const ENTRY_BYTES: usize = 24;
pub(super) const CHECKSUM_BYTES: usize = 8;

/// How much of a page's URL its key contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeyKind {
    /// Everything but the query, as in maps.
    #[default]
    Hxpx,
    /// Everything.
    Urir,
}

impl KeyKind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hxpx => "hxpx",
            Self::Urir => "urir",
        }
    }

    /// The kind of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Hxpx, Self::Urir]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// The header of a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The kind of its keys.
    pub kind: KeyKind,
    /// The rule set that turns URLs into keys.
    pub rules: RuleSet,
    /// The bits per fingerprint: 1 to 16.
    pub bits: u8,
    /// The number of keys.
    pub keys: u64,
    /// The date range of the captures.
    pub dates: DateRange,
    /// The creation date as 14 digits, if known.
    pub created: Option<Vec<u8>>,
    /// The row selection: statuses, media types, excluded pages, separated by commas.
    pub selection: [Option<String>; 3],
}

/// The layout of the data after the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) partitions: usize,
    /// Of all partitions.
    pub(super) bytes: u64,
}

const CHOICES: [&str; 3] = ["status", "mime", "exclude"];

impl Header {
    pub(super) fn write(&self, extent: Extent) -> Vec<u8> {
        let dates = self.dates.get();
        let text = |bytes: Option<&[u8]>| {
            bytes.map_or("-".to_owned(), |bytes| {
                String::from_utf8_lossy(bytes).into_owned()
            })
        };
        let mut lines = vec![
            format!("unlost-filter {VERSION}"),
            format!("key {}", self.kind.name()),
            format!("rules {}", self.rules.name()),
            format!("bits {}", self.bits),
            format!("keys {}", self.keys),
            format!("from {}", text(dates.map(|(first, _)| first))),
            format!("to {}", text(dates.map(|(_, last)| last))),
            format!("made {}", text(self.created.as_deref())),
        ];
        for (name, selection) in CHOICES.iter().zip(&self.selection) {
            lines.push(format!("{name} {}", selection.as_deref().unwrap_or("-")));
        }
        lines.push(format!("partitions {}", extent.partitions));
        lines.push(format!("bytes {}", extent.bytes));
        lines.push("\n".to_owned());
        lines.join("\n").into_bytes()
    }

    /// Parses the header lines at the start of `bytes`; also returns their length.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, Extent, usize), FilterError> {
        let rest = bytes
            .strip_prefix(MAGIC)
            .ok_or_else(|| FilterError::NotAFilter(describe_contents(bytes)))?;
        let version = rest[..rest.len().min(20)]
            .split(|&byte| byte == b'\n')
            .next();
        if version != Some(VERSION.as_bytes()) {
            let version_text = String::from_utf8_lossy(version.unwrap_or_default());
            return Err(FilterError::OtherVersion(version_text.into_owned()));
        }
        let head = &bytes[..bytes.len().min(MAX_TEXT)];
        let length = memchr::memmem::find(head, b"\n\n").ok_or(FilterError::Truncated)? + 2;
        let text = std::str::from_utf8(&bytes[..length]).map_err(|_| FilterError::BadHeader)?;
        let (header, extent) = Self::read_lines(text)?;
        // There is only one valid form.
        if header.write(extent) != bytes[..length] {
            return Err(FilterError::BadHeader);
        }
        Ok((header, extent, length))
    }

    fn read_lines(text: &str) -> Result<(Self, Extent), FilterError> {
        let mut lines = text.lines().skip(1);
        let mut value = |name: &str| {
            let line = lines.next()?;
            line.strip_prefix(name)?.strip_prefix(' ')
        };
        let mut read = || {
            let kind = KeyKind::named(value("key")?)?;
            let rules = value("rules")?.to_owned();
            let bits = value("bits")?.parse().ok()?;
            let keys = value("keys")?.parse().ok()?;
            let dates = match (value("from")?, value("to")?) {
                ("-", "-") => DateRange::default(),
                (first, last) => DateRange::of(first.as_bytes(), last.as_bytes())?,
            };
            let created = match value("made")? {
                "-" => None,
                created => Some(moment(created.as_bytes())?.to_vec()),
            };
            let mut selection = [None, None, None];
            for (name, selection) in CHOICES.iter().zip(&mut selection) {
                *selection = Some(value(name)?.to_owned()).filter(|value| value != "-");
            }
            let extent = Extent {
                partitions: value("partitions")?.parse().ok()?,
                bytes: value("bytes")?.parse().ok()?,
            };
            let header = Self {
                kind,
                rules: RuleSet::default(),
                bits,
                keys,
                dates,
                created,
                selection,
            };
            let is_sound = (1..=16).contains(&bits) && extent.partitions.is_power_of_two();
            is_sound.then_some((header, rules, extent))
        };
        let (mut header, rules, extent) = read().ok_or(FilterError::BadHeader)?;
        header.rules = rules.parse().map_err(|_| FilterError::OtherRules(rules))?;
        Ok((header, extent))
    }
}

/// The likely kind of a file that is not a filter.
fn describe_contents(bytes: &[u8]) -> &'static str {
    match bytes {
        [] => "nothing: it is empty",
        [b'!', ..] => "a map",
        _ if MAGIC.starts_with(bytes) => "the beginning of one",
        _ if is_compressed(bytes) => "compressed data: decompress it first",
        _ => "something else",
    }
}

/// The directory entry of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Partition {
    pub(super) checksum: u64,
    pub(super) keys: u32,
    pub(super) seed: u32,
    pub(super) shape: FuseShape,
}

impl Partition {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.checksum.to_le_bytes());
        out.extend_from_slice(&self.keys.to_le_bytes());
        out.extend_from_slice(&self.seed.to_le_bytes());
        out.extend_from_slice(&self.shape.starts.to_le_bytes());
        out.extend_from_slice(&u32::from(self.shape.log).to_le_bytes());
    }

    /// Parses an entry. `None` if no partition can have this size.
    pub(super) fn read(entry: &[u8]) -> Option<Self> {
        let (checksum, rest) = entry.split_first_chunk()?;
        let mut numbers = rest.chunks_exact(4).map(|bytes| {
            let mut number = [0; 4];
            number.copy_from_slice(bytes);
            u32::from_le_bytes(number)
        });
        let (keys, seed, starts) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let log = u8::try_from(numbers.next()?).ok()?;
        let shape = FuseShape { starts, log };
        shape.is_sound().then_some(Self {
            checksum: u64::from_le_bytes(*checksum),
            keys,
            seed,
            shape,
        })
    }
}
