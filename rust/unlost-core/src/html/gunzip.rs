//! Decompresses gzipped bodies, such as sitemaps.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::MAX_UNPACKED_BYTES;

/// The body without gzip, up to the maximum, and whether it was compressed. Sets `cut` if there is more.
pub fn unpacked<'b>(body: &'b [u8], cut: &mut bool) -> (Cow<'b, [u8]>, bool) {
    if !body.starts_with(b"\x1f\x8b\x08") {
        return (Cow::Borrowed(body), false);
    }
    let mut out = Vec::new();
    let mut reader = MultiGzDecoder::new(body).take(MAX_UNPACKED_BYTES as u64 + 1);
    // The readable part of a damaged body is used.
    *cut |= reader.read_to_end(&mut out).is_err();
    if out.len() > MAX_UNPACKED_BYTES {
        out.truncate(MAX_UNPACKED_BYTES);
        *cut = true;
    }
    (Cow::Owned(out), true)
}
