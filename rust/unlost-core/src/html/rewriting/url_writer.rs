//! How a new address is written where the old one stood.

use std::borrow::Cow;

use crate::html::MAX_URL_BYTES;
use crate::html::elements::{Form, Quote, UrlOccurrence};
use crate::html::parse_context::{EscapeLayer, EscapeLayers};

/// What an address stands between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlSyntax {
    /// Nothing else.
    Nothing,
    Candidates,
    List,
    /// `true` if `url=` is before it.
    Refresh(bool),
    /// `url(…)`
    Brackets,
    /// A string of CSS.
    String(Quote),
    /// A string of a script.
    Script(Quote),
}

/// A new address, and what there is to know of it wherever it is written.
#[derive(Debug, Clone, Copy)]
pub struct ReplacementUrl<'a> {
    pub(super) url: &'a str,
    /// Whether it is written as it is everywhere.
    pub(super) is_plain: bool,
    pub(super) has_fragment: bool,
}

impl<'a> ReplacementUrl<'a> {
    /// `None` if it is no address that may be written: one has 1 to [`MAX_URL_BYTES`] letters of printable ASCII, none of
    /// them a blank.
    #[must_use]
    pub fn of(url: &'a str) -> Option<Self> {
        SpellingFlags::of(url)?.replacement(url)
    }
}

/// What there is to know of an address by all of its letters; it holds for each part of it, too.
#[derive(Debug, Clone, Copy)]
pub struct SpellingFlags(u8);

impl SpellingFlags {
    /// `None` if it has letters that may not be written.
    #[must_use]
    pub fn of(url: &str) -> Option<Self> {
        let bytes = url.bytes();
        let kinds = bytes.fold(0, |kinds, byte| kinds | KINDS[usize::from(byte)]);
        (kinds & NEVER == 0).then_some(Self(kinds))
    }

    /// An address of such letters; `None` if it is empty or too long.
    #[must_use]
    pub fn replacement(self, url: &str) -> Option<ReplacementUrl<'_>> {
        // One that begins with `url` is not written as it is in a refresh, and none that begins with `=`.
        let may_differ = matches!(url.as_bytes(), [b'u' | b'U' | b'=', ..]);
        let is_written = (1..=MAX_URL_BYTES).contains(&url.len());
        is_written.then_some(ReplacementUrl {
            url,
            is_plain: self.0 & SPELLED == 0 && !may_differ,
            has_fragment: self.0 & FRAGMENT != 0,
        })
    }
}

/// What a byte is that is spelled otherwise in some places, the one that begins a fragment, and one that no address has.
const SPELLED: u8 = 1;
const FRAGMENT: u8 = 2;
const NEVER: u8 = 4;

const KINDS: [u8; 256] = {
    let mut kinds = [NEVER; 256];
    let mut letter = b'!';
    while letter <= b'~' {
        kinds[letter as usize] = 0;
        letter += 1;
    }
    let spelled = b"&<>\"'()\\,";
    let mut nth = 0;
    while nth < spelled.len() {
        kinds[spelled[nth] as usize] = SPELLED;
        nth += 1;
    }
    kinds[b'#' as usize] = FRAGMENT;
    kinds
};

/// All that there is to know about how to write somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EscapeStyle {
    between: UrlSyntax,
    layers: EscapeLayers,
}

impl EscapeStyle {
    /// How to write at a spot; `None` if it is deeper than there is a way to.
    pub fn of(occurrence: &UrlOccurrence<'_>, between: UrlSyntax) -> Option<Self> {
        let layers = occurrence.context.layers?;
        Some(Self { between, layers })
    }

    /// The address, which is one of printable ASCII without blanks, as it must be written.
    pub fn escape(self, url: &str) -> Cow<'_, str> {
        let text = self.between.escape(url);
        self.layers
            .iter()
            .flatten()
            .fold(text, |text, layer| match layer.escape(&text) {
                Cow::Borrowed(_) => text,
                Cow::Owned(escaped) => Cow::Owned(escaped),
            })
    }
}

impl From<Form> for UrlSyntax {
    /// Of CSS, it is told by the token.
    fn from(form: Form) -> Self {
        match form {
            Form::Alone => Self::Nothing,
            Form::Candidate => Self::Candidates,
            Form::Listed => Self::List,
            Form::Refresh(named) => Self::Refresh(named),
            Form::Css => Self::Brackets,
            Form::Script(quote) => Self::Script(quote),
        }
    }
}

impl UrlSyntax {
    fn escape(self, url: &str) -> Cow<'_, str> {
        match self {
            Self::Nothing => Cow::Borrowed(url),
            Self::Candidates => candidate(url),
            Self::List => replaced(url, |letter| (letter == ',').then_some("%2C")),
            Self::Refresh(named) => {
                let text = replaced(url, |letter| match letter {
                    '"' => Some("%22"),
                    '\'' => Some("%27"),
                    _ => None,
                });
                let looks_named = text
                    .get(..3)
                    .is_some_and(|word| word.eq_ignore_ascii_case("url"));
                if looks_named && !named {
                    return Cow::Owned(format!("url={text}"));
                }
                text
            }
            Self::Brackets => replaced(url, |letter| match letter {
                '"' => Some("\\\""),
                '\'' => Some("\\'"),
                '(' => Some("\\("),
                ')' => Some("\\)"),
                other => in_css(other),
            }),
            Self::Script(quote) => replaced(url, |letter| match letter {
                '\\' => Some("\\\\"),
                '"' if quote == Quote::Double => Some("\\\""),
                '\'' if quote != Quote::Double => Some("\\'"),
                // No tag may begin or end in a script.
                '<' => Some("\\x3c"),
                '>' => Some("\\x3e"),
                _ => None,
            }),
            Self::String(Quote::Double) => replaced(url, |letter| match letter {
                '"' => Some("\\\""),
                other => in_css(other),
            }),
            Self::String(_) => replaced(url, |letter| match letter {
                '\'' => Some("\\'"),
                other => in_css(other),
            }),
        }
    }
}

/// What would end the style sheet, not only the address, has another spelling.
fn in_css(letter: char) -> Option<&'static str> {
    match letter {
        '\\' => Some("\\\\"),
        '<' => Some("\\3c "),
        '>' => Some("\\3e "),
        _ => None,
    }
}

/// Commas around a candidate are not part of it.
fn candidate(url: &str) -> Cow<'_, str> {
    let inside = url.trim_matches(',');
    if inside.len() == url.len() {
        return Cow::Borrowed(url);
    }
    let before = url.len() - url.trim_start_matches(',').len();
    let after = url.len() - before - inside.len();
    Cow::Owned("%2C".repeat(before) + inside + &"%2C".repeat(after))
}

impl EscapeLayer {
    fn escape(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Value(quote) | Self::XmlValue(quote) => replaced(text, |letter| match letter {
                '&' => Some("&amp;"),
                '<' => Some("&lt;"),
                '"' if quote != Quote::Single => Some("&quot;"),
                '\'' if quote != Quote::Double => Some("&#39;"),
                // What ends a value without quotes, and what browsers complain of in one.
                '>' if quote == Quote::None => Some("&gt;"),
                ' ' if quote == Quote::None => Some("&#32;"),
                '=' if quote == Quote::None && text.starts_with('=') => Some("&#61;"),
                _ => None,
            }),
            Self::XmlText => replaced(text, |letter| match letter {
                '&' => Some("&amp;"),
                '<' => Some("&lt;"),
                '>' => Some("&gt;"),
                _ => None,
            }),
        }
    }
}

/// A text of ASCII with some of its letters spelled otherwise.
fn replaced(text: &str, by: impl Fn(char) -> Option<&'static str>) -> Cow<'_, str> {
    let is_other = |byte: &u8| !byte.is_ascii_alphanumeric() && by(char::from(*byte)).is_some();
    let Some(first) = text.as_bytes().iter().position(is_other) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    let mut start = first;
    for (at, byte) in text.bytes().enumerate().skip(first) {
        if !byte.is_ascii_alphanumeric()
            && let Some(other) = by(char::from(byte))
        {
            out.push_str(&text[start..at]);
            out.push_str(other);
            start = at + 1;
        }
    }
    out.push_str(&text[start..]);
    Cow::Owned(out)
}
