//! The table of attributes with links: on which elements they count, and the kind of the link.

use super::LinkKind;

/// The content of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A URL.
    Url(LinkKind),
    /// Image URLs with their sizes: `srcset`.
    Candidates,
    /// A CSS declaration list.
    Style,
    /// The base URL.
    Base,
    /// A URL whose kind depends on `rel`.
    ByRelation,
    /// Content whose meaning depends on `http-equiv`, `property` or `name`.
    ByMeta,
    /// A URL, if the element is an image button.
    ImageButton,
    /// A URL, if plug-ins use the parameter as one.
    Parameter,
    /// A URL relative to the element's `codebase`.
    Code,
    /// Such URLs, separated by commas or blanks.
    CodeList,
    /// An embedded page.
    Markup,
    /// A URL that is not a link, but relative to the base: form targets, sources of quotations.
    Other,
    /// An image that a script loads later: a URL, or CSS with `url()`; ignored if it looks like neither.
    Lazy,
}

/// An attribute with the elements on which it counts.
pub struct LinkAttribute {
    /// Its name, in lower case.
    pub attribute: &'static str,
    /// Names of elements, in lower case; empty for all.
    pub elements: &'static [&'static str],
    /// The content of its value.
    pub value_kind: ValueKind,
}

const fn link_attribute(
    attribute: &'static str,
    elements: &'static [&'static str],
    value_kind: ValueKind,
) -> LinkAttribute {
    LinkAttribute {
        attribute,
        elements,
        value_kind,
    }
}

const PAGE: ValueKind = ValueKind::Url(LinkKind::Page);
const REQUISITE: ValueKind = ValueKind::Url(LinkKind::Requisite);
const SVG_HREF_ELEMENTS: &[&str] = &["image", "use", "feimage", "script"];

/// The first match counts. Forms are not followed: their requests depend on user input.
pub const LINK_ATTRIBUTES: &[LinkAttribute] = &[
    link_attribute("href", &["a", "area"], PAGE),
    link_attribute("href", &["link"], ValueKind::ByRelation),
    link_attribute("href", &["base"], ValueKind::Base),
    link_attribute("href", SVG_HREF_ELEMENTS, REQUISITE),
    link_attribute("xlink:href", &["a"], PAGE),
    link_attribute("xlink:href", SVG_HREF_ELEMENTS, REQUISITE),
    link_attribute("src", &["iframe", "frame"], PAGE),
    link_attribute("src", &["input"], ValueKind::ImageButton),
    link_attribute(
        "src",
        &[
            "img", "script", "source", "image", "video", "audio", "track", "embed", "bgsound",
        ],
        REQUISITE,
    ),
    link_attribute("srcset", &["img", "source"], ValueKind::Candidates),
    link_attribute("imagesrcset", &["link"], ValueKind::Candidates),
    link_attribute("srcdoc", &["iframe"], ValueKind::Markup),
    link_attribute("poster", &["video"], REQUISITE),
    link_attribute("style", &[], ValueKind::Style),
    link_attribute("fill", &[], ValueKind::Style),
    link_attribute("stroke", &[], ValueKind::Style),
    link_attribute("filter", &[], ValueKind::Style),
    link_attribute("mask", &[], ValueKind::Style),
    link_attribute("clip-path", &[], ValueKind::Style),
    link_attribute("cursor", &[], ValueKind::Style),
    link_attribute("marker-start", &[], ValueKind::Style),
    link_attribute("marker-mid", &[], ValueKind::Style),
    link_attribute("marker-end", &[], ValueKind::Style),
    link_attribute("content", &["meta"], ValueKind::ByMeta),
    link_attribute(
        "background",
        &["body", "table", "td", "th", "tr", "thead", "tbody", "tfoot"],
        REQUISITE,
    ),
    link_attribute("data-src", &["iframe", "frame"], PAGE),
    link_attribute("data-src", &[], REQUISITE),
    link_attribute("data-srcset", &[], ValueKind::Candidates),
    link_attribute("data-lazy-src", &["iframe", "frame"], PAGE),
    link_attribute("data-lazy-src", &[], REQUISITE),
    link_attribute("data-lazy-srcset", &[], ValueKind::Candidates),
    link_attribute("data-original", &[], ValueKind::Lazy),
    link_attribute("data-bg", &[], ValueKind::Lazy),
    link_attribute("data-background-image", &[], ValueKind::Lazy),
    link_attribute("longdesc", &["img", "iframe", "frame"], PAGE),
    link_attribute("data", &["object"], ValueKind::Code),
    link_attribute("code", &["applet"], ValueKind::Code),
    link_attribute("archive", &["applet", "object"], ValueKind::CodeList),
    link_attribute("value", &["param"], ValueKind::Parameter),
    link_attribute("manifest", &["html"], REQUISITE),
    link_attribute("action", &["form"], ValueKind::Other),
    link_attribute("formaction", &["button", "input"], ValueKind::Other),
    link_attribute("cite", &["blockquote", "q", "ins", "del"], ValueKind::Other),
];

/// The length of the longest name: `data-background-image`.
const MAX_NAME_LEN: usize = 21;

/// The range of attributes in the table, by first byte and length. Most attributes of a page are not in it.
const INDEX_RANGES: [[(u8, u8); MAX_NAME_LEN + 1]; 32] = {
    let mut ranges = [[(0, 0); MAX_NAME_LEN + 1]; 32];
    let mut index = 0;
    while index < LINK_ATTRIBUTES.len() {
        let name = LINK_ATTRIBUTES[index].attribute.as_bytes();
        let known = &mut ranges[(name[0] & 31) as usize][name.len()];
        #[expect(clippy::cast_possible_truncation, reason = "there are some dozens")]
        let nth = index as u8;
        if known.1 == 0 {
            known.0 = nth;
        }
        known.1 = nth + 1;
        index += 1;
    }
    ranges
};

/// The maximum number of elements of a table row.
const MAX_ELEMENTS: usize = 9;

/// The names of each row as numbers, which are compared faster.
const KEYS: [(u128, [u128; MAX_ELEMENTS]); LINK_ATTRIBUTES.len()] = {
    let mut keys = [(0, [0; MAX_ELEMENTS]); LINK_ATTRIBUTES.len()];
    let mut index = 0;
    while index < LINK_ATTRIBUTES.len() {
        keys[index].0 = key(LINK_ATTRIBUTES[index].attribute.as_bytes());
        let mut nth = 0;
        while nth < LINK_ATTRIBUTES[index].elements.len() {
            keys[index].1[nth] = key(LINK_ATTRIBUTES[index].elements[nth].as_bytes());
            nth += 1;
        }
        index += 1;
    }
    keys
};

/// A name in lower case and its length as a number; 0 for names of more than 15 bytes, which no element of the table
/// has.
#[must_use]
pub const fn key(name: &[u8]) -> u128 {
    let length = name.len();
    // Overlapping reads, since reading byte by byte would take longer than everything else.
    let packed = match length {
        0 => 0,
        1..=3 => {
            let (first, middle, last) = (name[0], name[length / 2], name[length - 1]);
            let ends = first as u128 | (last as u128) << (8 * (length - 1));
            ends | (middle as u128) << (8 * (length / 2))
        }
        4..=7 => four(name, 0) | four(name, length - 4) << (8 * (length - 4)),
        8..=15 => eight(name, 0) | eight(name, length - 8) << (8 * (length - 8)),
        _ => return 0,
    };
    #[expect(clippy::cast_possible_truncation, reason = "two halves")]
    let (low, high) = (packed as u64, (packed >> 64) as u64);
    lowered(low) as u128 | (lowered(high) as u128) << 64 | (length as u128) << 120
}

const fn four(name: &[u8], at: usize) -> u128 {
    let (first, second) = (name[at] as u32, name[at + 1] as u32);
    let (third, fourth) = (name[at + 2] as u32, name[at + 3] as u32);
    (first | second << 8 | third << 16 | fourth << 24) as u128
}

const fn eight(name: &[u8], at: usize) -> u128 {
    four(name, at) | four(name, at + 4) << 32
}

/// Converts eight bytes to lower case.
const fn lowered(eight: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let low = eight & (ONES * 0x7f);
    let from_a = low + ONES * (0x80 - b'A' as u64);
    let above_z = low + ONES * (0x7f - b'Z' as u64);
    eight | ((from_a ^ above_z) & !eight & (ONES * 0x80)) >> 2
}

/// The indexes in [`LINK_ATTRIBUTES`] of an attribute name, case-insensitive.
pub fn by_attribute(attribute: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let first = attribute.first().copied().unwrap_or_default();
    let ranges = &INDEX_RANGES[usize::from(first & 31)];
    let (start, end) = ranges.get(attribute.len()).copied().unwrap_or_default();
    let name_key = if start < end { key(attribute) } else { 0 };
    (usize::from(start)..usize::from(end)).filter(move |&index| {
        // Long names have no key.
        KEYS[index].0 == name_key
            && (name_key != 0
                || LINK_ATTRIBUTES[index]
                    .attribute
                    .as_bytes()
                    .eq_ignore_ascii_case(attribute))
    })
}

/// Whether a table row applies to an element with this [key].
#[must_use]
pub fn applies_to(link_attribute: usize, element: u128) -> bool {
    let elements = LINK_ATTRIBUTES[link_attribute].elements.len();
    elements == 0 || KEYS[link_attribute].1[..elements].contains(&element)
}

/// The kind of a `<link>` by its `rel`, `as` and `type`; `None` if it is not a link.
#[must_use]
pub fn kind_by_rel(rel: &str, destination: &str, mime: &str) -> Option<LinkKind> {
    let mut kind = None;
    for word in rel.split_ascii_whitespace() {
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "stylesheet"
            | "icon"
            | "apple-touch-icon"
            | "apple-touch-icon-precomposed"
            | "apple-touch-startup-image"
            | "mask-icon"
            | "fluid-icon"
            | "image_src"
            | "manifest"
            | "modulepreload" => return Some(LinkKind::Requisite),
            "preload" | "prefetch" => return Some(preload_kind(&word, destination)),
            "sitemap" => return Some(LinkKind::List),
            "alternate" if is_feed(mime) => return Some(LinkKind::List),
            "preconnect" | "dns-prefetch" => {}
            _ => kind = Some(LinkKind::Page),
        }
    }
    kind
}

fn preload_kind(relation: &str, destination: &str) -> LinkKind {
    // A preload without a type is taken for a page.
    let is_page = destination.eq_ignore_ascii_case("document")
        || (destination.is_empty() && relation == "prefetch");
    if is_page {
        LinkKind::Page
    } else {
        LinkKind::Requisite
    }
}

/// Whether a media type is that of a feed, with or without parameters.
#[must_use]
pub fn is_feed(mime: &str) -> bool {
    let essence = mime.split(';').next().unwrap_or_default().trim();
    [
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/xml",
        "text/xml",
    ]
    .iter()
    .any(|feed| feed.eq_ignore_ascii_case(essence))
}

/// Whether a `<meta>` of this `property` or `name` contains the URL of an image, video or sound.
#[must_use]
pub fn is_picture(property: &str) -> bool {
    let property = property.trim().to_ascii_lowercase();
    matches!(
        property.as_str(),
        "og:image"
            | "og:image:url"
            | "og:image:secure_url"
            | "og:video"
            | "og:video:url"
            | "og:video:secure_url"
            | "og:audio"
            | "og:audio:url"
            | "og:audio:secure_url"
            | "twitter:image"
            | "twitter:image:src"
            | "msapplication-tileimage"
    )
}

/// Whether plug-ins load the URL in a `<param>` of this name.
#[must_use]
pub fn is_parameter(name: &str) -> bool {
    ["movie", "src", "filename", "url"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two names have the same key if they differ only in case.
    #[test]
    fn keys_identify_names_up_to_case() {
        let alphabet = b"aAzZ@[`{-0\0\xc1\xe1";
        let mut names: Vec<Vec<u8>> = vec![Vec::new()];
        for length in 1..=15_usize {
            for nth in 0..length {
                for &other in alphabet {
                    let mut name = vec![b'm'; length];
                    name[nth] = other;
                    names.push(name);
                }
            }
        }
        for one in &names {
            for other in &names {
                let is_same = one.eq_ignore_ascii_case(other);
                assert_eq!(key(one) == key(other), is_same, "{one:?} {other:?}");
            }
        }
        assert_eq!(key(b"more-than-anybody-has"), 0);
    }

    /// Every attribute is found by its name in any case, also a long one, and by no other name of that length.
    #[test]
    fn attributes_are_found_by_name() {
        for (index, link_attribute) in LINK_ATTRIBUTES.iter().enumerate() {
            let upper = link_attribute.attribute.to_ascii_uppercase();
            assert!(
                by_attribute(upper.as_bytes()).any(|found_index| found_index == index),
                "{upper}"
            );
            let other = upper.replace(&upper[upper.len() - 1..], "~");
            assert_eq!(by_attribute(other.as_bytes()).count(), 0, "{other}");
        }
    }
}
