//! Where in a value the addresses are.

pub mod css;
mod css_words;
pub mod refresh;
pub mod srcset;

/// What HTML calls whitespace.
pub(crate) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}
