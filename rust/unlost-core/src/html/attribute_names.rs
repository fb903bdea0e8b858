//! Which attributes matter for links: most do not, and need not be stored.

use super::link_attributes::LINK_ATTRIBUTES;

/// Attributes that affect the links of their element, or block a new name for one that does.
const OTHERS: [&str; 15] = [
    "rel",
    "as",
    "type",
    "property",
    "name",
    "charset",
    "http-equiv",
    "codebase",
    "integrity",
    "crossorigin",
    "data-href",
    "data-codebase",
    "data-integrity",
    "data-http-equiv",
    "data-crossorigin",
];

/// Bit set of the lengths of the attribute names, by the low five bits of their first byte.
const LENGTHS: [u32; 32] = {
    let mut lengths = [0; 32];
    let mut nth = 0;
    while nth < LINK_ATTRIBUTES.len() + OTHERS.len() {
        let name = if nth < LINK_ATTRIBUTES.len() {
            LINK_ATTRIBUTES[nth].attribute
        } else {
            OTHERS[nth - LINK_ATTRIBUTES.len()]
        };
        lengths[(name.as_bytes()[0] & 31) as usize] |= 1 << name.len();
        nth += 1;
    }
    lengths
};

/// Whether scripts read or run the value of an attribute, case-insensitive: `data-*`, and event handlers.
#[inline]
pub fn is_read_by_scripts(name: &[u8]) -> bool {
    is_data(name) || is_handler(name)
}

/// Whether an attribute is a `data-*` attribute.
pub fn is_data(name: &[u8]) -> bool {
    name.len() > 5 && name[..5].eq_ignore_ascii_case(b"data-")
}

/// Whether the value of an attribute is a script.
pub fn is_handler(name: &[u8]) -> bool {
    name.len() > 2 && name[..2].eq_ignore_ascii_case(b"on")
}

/// Whether an attribute may matter, case-insensitive. The first byte and the length exclude most names.
#[inline]
pub fn may_matter(name: &[u8]) -> bool {
    let first = name.first().map_or(0, |byte| usize::from(byte & 31));
    name.len() < 32 && LENGTHS[first] >> name.len() & 1 == 1
}
