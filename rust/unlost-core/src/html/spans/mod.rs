//! Finds the URLs within a value.

pub mod css;
mod css_words;
pub mod refresh;
pub mod srcset;

/// White space in HTML.
pub(crate) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}
