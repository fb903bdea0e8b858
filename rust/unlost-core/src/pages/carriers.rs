//! Which attributes of which elements carry links, and what for: the one place that knows.

use super::Use;

/// What the value of an attribute is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// An address.
    Address(Use),
    /// Addresses of images with their sizes: `srcset`.
    Candidates,
    /// A CSS declaration list.
    Style,
    /// The address that others are relative to.
    Base,
    /// An address that is for what `rel` says.
    ByRelation,
    /// What `http-equiv`, `property` or `name` say.
    ByMeta,
    /// An address, if the element is a button with an image.
    ImageButton,
    /// An address, if the parameter is one that plug-ins take for it.
    Parameter,
    /// An address below the element's `codebase`.
    Code,
    /// Such addresses, with commas or blanks between them.
    CodeList,
    /// A page of its own.
    Markup,
    /// An address that is no link, but relative to the base like one: what forms ask for, where quotations are from.
    Other,
    /// The image that a script loads later: an address, or CSS with `url()`; nothing if it looks like neither.
    Lazy,
}

/// An attribute with the elements on which it holds something.
pub struct Carrier {
    /// Its name, in lower case.
    pub attribute: &'static str,
    /// Names of elements, in lower case; none for all.
    pub elements: &'static [&'static str],
    /// What its value is.
    pub holds: Holds,
}

const fn carrier(
    attribute: &'static str,
    elements: &'static [&'static str],
    holds: Holds,
) -> Carrier {
    Carrier {
        attribute,
        elements,
        holds,
    }
}

const PAGE: Holds = Holds::Address(Use::Page);
const REQUISITE: Holds = Holds::Address(Use::Requisite);
const DRAWN: &[&str] = &["image", "use", "feimage", "script"];

/// The first that fits counts. Forms are not followed: what they would ask for nobody has filled in.
pub const CARRIERS: &[Carrier] = &[
    carrier("href", &["a", "area"], PAGE),
    carrier("href", &["link"], Holds::ByRelation),
    carrier("href", &["base"], Holds::Base),
    carrier("href", DRAWN, REQUISITE),
    carrier("xlink:href", &["a"], PAGE),
    carrier("xlink:href", DRAWN, REQUISITE),
    carrier("src", &["iframe", "frame"], PAGE),
    carrier("src", &["input"], Holds::ImageButton),
    carrier(
        "src",
        &[
            "img", "script", "source", "image", "video", "audio", "track", "embed", "bgsound",
        ],
        REQUISITE,
    ),
    carrier("srcset", &["img", "source"], Holds::Candidates),
    carrier("imagesrcset", &["link"], Holds::Candidates),
    carrier("srcdoc", &["iframe"], Holds::Markup),
    carrier("poster", &["video"], REQUISITE),
    carrier("style", &[], Holds::Style),
    carrier("fill", &[], Holds::Style),
    carrier("stroke", &[], Holds::Style),
    carrier("filter", &[], Holds::Style),
    carrier("mask", &[], Holds::Style),
    carrier("clip-path", &[], Holds::Style),
    carrier("cursor", &[], Holds::Style),
    carrier("marker-start", &[], Holds::Style),
    carrier("marker-mid", &[], Holds::Style),
    carrier("marker-end", &[], Holds::Style),
    carrier("content", &["meta"], Holds::ByMeta),
    carrier(
        "background",
        &["body", "table", "td", "th", "tr", "thead", "tbody", "tfoot"],
        REQUISITE,
    ),
    carrier("data-src", &["iframe", "frame"], PAGE),
    carrier("data-src", &[], REQUISITE),
    carrier("data-srcset", &[], Holds::Candidates),
    carrier("data-lazy-src", &["iframe", "frame"], PAGE),
    carrier("data-lazy-src", &[], REQUISITE),
    carrier("data-lazy-srcset", &[], Holds::Candidates),
    carrier("data-original", &[], Holds::Lazy),
    carrier("data-bg", &[], Holds::Lazy),
    carrier("data-background-image", &[], Holds::Lazy),
    carrier("longdesc", &["img", "iframe", "frame"], PAGE),
    carrier("data", &["object"], Holds::Code),
    carrier("code", &["applet"], Holds::Code),
    carrier("archive", &["applet", "object"], Holds::CodeList),
    carrier("value", &["param"], Holds::Parameter),
    carrier("manifest", &["html"], REQUISITE),
    carrier("action", &["form"], Holds::Other),
    carrier("formaction", &["button", "input"], Holds::Other),
    carrier("cite", &["blockquote", "q", "ins", "del"], Holds::Other),
];

/// The length of the longest name: `data-background-image`.
const LONGEST: usize = 21;

/// For each letter and length, between which places the carriers are whose names begin with it and are so long: most
/// attributes are none of them.
const PLACES: [[(u8, u8); LONGEST + 1]; 32] = {
    let mut places = [[(0, 0); LONGEST + 1]; 32];
    let mut place = 0;
    while place < CARRIERS.len() {
        let name = CARRIERS[place].attribute.as_bytes();
        let known = &mut places[(name[0] & 31) as usize][name.len()];
        #[expect(clippy::cast_possible_truncation, reason = "there are some dozens")]
        let nth = place as u8;
        if known.1 == 0 {
            known.0 = nth;
        }
        known.1 = nth + 1;
        place += 1;
    }
    places
};

/// Elements that a carrier names at most.
const MOST_ELEMENTS: usize = 9;

/// The names of each carrier and its elements as numbers, which are compared faster.
const KEYS: [(u128, [u128; MOST_ELEMENTS]); CARRIERS.len()] = {
    let mut keys = [(0, [0; MOST_ELEMENTS]); CARRIERS.len()];
    let mut place = 0;
    while place < CARRIERS.len() {
        keys[place].0 = key(CARRIERS[place].attribute.as_bytes());
        let mut nth = 0;
        while nth < CARRIERS[place].elements.len() {
            keys[place].1[nth] = key(CARRIERS[place].elements[nth].as_bytes());
            nth += 1;
        }
        place += 1;
    }
    keys
};

/// A name in lower case and its length as a number; 0 for one of more than 15 letters, which no element here has.
#[must_use]
pub const fn key(name: &[u8]) -> u128 {
    let length = name.len();
    // Parts that overlap, since reading one byte after the other takes longer than all else.
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

/// Eight letters, those of `A` to `Z` as small ones.
const fn lowered(eight: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let low = eight & (ONES * 0x7f);
    let from_a = low + ONES * (0x80 - b'A' as u64);
    let above_z = low + ONES * (0x7f - b'Z' as u64);
    eight | ((from_a ^ above_z) & !eight & (ONES * 0x80)) >> 2
}

/// The carriers with an attribute's name, in any case: their places in [`CARRIERS`].
pub fn named(attribute: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let first = attribute.first().copied().unwrap_or_default();
    let places = &PLACES[usize::from(first & 31)];
    let (start, end) = places.get(attribute.len()).copied().unwrap_or_default();
    let wanted = if start < end { key(attribute) } else { 0 };
    (usize::from(start)..usize::from(end)).filter(move |&place| {
        // A long name has no key of its own.
        KEYS[place].0 == wanted
            && (wanted != 0
                || CARRIERS[place]
                    .attribute
                    .as_bytes()
                    .eq_ignore_ascii_case(attribute))
    })
}

/// Whether a carrier is one on an element with this [key].
#[must_use]
pub fn is_on(carrier: usize, element: u128) -> bool {
    let elements = CARRIERS[carrier].elements.len();
    elements == 0 || KEYS[carrier].1[..elements].contains(&element)
}

/// What a `<link>` is for, by its `rel`, `as` and `type`; `None` if it leads nowhere.
#[must_use]
pub fn by_relation(rel: &str, destination: &str, mime: &str) -> Option<Use> {
    let mut found = None;
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
            | "modulepreload" => return Some(Use::Requisite),
            "preload" | "prefetch" => return Some(fetched_ahead(&word, destination)),
            "sitemap" => return Some(Use::List),
            "alternate" if is_feed(mime) => return Some(Use::List),
            "preconnect" | "dns-prefetch" => {}
            _ => found = Some(Use::Page),
        }
    }
    found
}

fn fetched_ahead(relation: &str, destination: &str) -> Use {
    // What may be next and does not say what it is, is a page.
    let is_page = destination.eq_ignore_ascii_case("document")
        || (destination.is_empty() && relation == "prefetch");
    if is_page { Use::Page } else { Use::Requisite }
}

/// Whether a type is one of feeds, with or without parameters.
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

/// Whether a `<meta>` of this `property` or `name` has the address of a picture, a film or a sound.
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

/// Whether plug-ins take the `<param>` of this name for the address of what they show.
#[must_use]
pub fn is_parameter(name: &str) -> bool {
    ["movie", "src", "filename", "url"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two names have one key if they differ in nothing but case.
    #[test]
    fn keys_are_of_names() {
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

    /// Every carrier is found by its name in any case, also a long one, and by no other name of that length.
    #[test]
    fn carriers_are_found_by_name() {
        for (place, carrier) in CARRIERS.iter().enumerate() {
            let upper = carrier.attribute.to_ascii_uppercase();
            assert!(
                named(upper.as_bytes()).any(|found| found == place),
                "{upper}"
            );
            let other = upper.replace(&upper[upper.len() - 1..], "~");
            assert_eq!(named(other.as_bytes()).count(), 0, "{other}");
        }
    }
}
