//! The kinds of problems in archive files.

use super::gzip::Damage;

/// One problem in an archive file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The error code, used for counting; listed in docs/formats.md.
    pub kind: &'static str,
    /// The offset in the file: of the record, of its member if the file is compressed, or of the garbage.
    pub offset: u64,
    /// What was expected and found, in one line.
    pub message: String,
}

impl Problem {
    pub(super) fn new(kind: &'static str, offset: u64, message: impl Into<String>) -> Self {
        Self {
            kind,
            offset,
            message: message.into(),
        }
    }

    pub(super) fn garbage(offset: u64, len: u64) -> Self {
        Self::new(
            "garbage",
            offset,
            format!("expected a record, found {len} bytes of something else"),
        )
    }

    pub(super) fn damage(offset: u64, damage: Damage, is_gzip: bool) -> Self {
        let (kind, message) = match (damage, is_gzip) {
            (Damage::Truncated, true) => ("truncated-gzip", "the file ends inside a gzip member"),
            (Damage::Truncated, false) => ("truncated-zstd", "the file ends inside a zstd frame"),
            (Damage::Corrupt, true) => ("corrupt-gzip", "a gzip member cannot be decompressed"),
            (Damage::Corrupt, false) => ("corrupt-zstd", "a zstd frame cannot be decompressed"),
            (Damage::BadChecksum, _) => (
                "bad-checksum",
                "a gzip member is not what its checksum says",
            ),
        };
        Self::new(kind, offset, message)
    }
}
