//! Writes a new URL in the syntax of the old one.

use std::borrow::Cow;

use crate::html::MAX_URL_BYTES;
use crate::html::elements::{Form, Quote, UrlOccurrence};
use crate::html::parse_context::{EscapeLayer, EscapeLayers};

/// The syntax around a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlSyntax {
    /// Plain.
    Nothing,
    Candidates,
    List,
    /// `true` after `url=`.
    Refresh(bool),
    /// `url(…)`
    Brackets,
    /// A CSS string.
    String(Quote),
    /// A script string.
    Script(Quote),
}

/// A replacement URL with its properties.
#[derive(Debug, Clone, Copy)]
pub struct ReplacementUrl<'a> {
    pub(super) url: &'a str,
    /// Whether it needs no escaping anywhere.
    pub(super) is_plain: bool,
    pub(super) has_fragment: bool,
}

impl<'a> ReplacementUrl<'a> {
    /// `None` if it is not a valid replacement: those have 1 to [`MAX_URL_BYTES`] printable ASCII characters without
    /// blanks.
    #[must_use]
    pub fn of(url: &'a str) -> Option<Self> {
        SpellingFlags::of(url)?.replacement(url)
    }
}

/// Properties of a URL's characters, which also hold for each part of it.
#[derive(Debug, Clone, Copy)]
pub struct SpellingFlags(u8);

impl SpellingFlags {
    /// `None` if it contains invalid characters.
    #[must_use]
    pub fn of(url: &str) -> Option<Self> {
        let bytes = url.bytes();
        let kinds = bytes.fold(0, |kinds, byte| kinds | KINDS[usize::from(byte)]);
        (kinds & NEVER == 0).then_some(Self(kinds))
    }

    /// A replacement with these characters; `None` if it is empty or too long.
    #[must_use]
    pub fn replacement(self, url: &str) -> Option<ReplacementUrl<'_>> {
        // A URL that begins with `url` or `=` has to be escaped in a refresh.
        let may_differ = matches!(url.as_bytes(), [b'u' | b'U' | b'=', ..]);
        let is_written = (1..=MAX_URL_BYTES).contains(&url.len());
        is_written.then_some(ReplacementUrl {
            url,
            is_plain: self.0 & SPELLED == 0 && !may_differ,
            has_fragment: self.0 & FRAGMENT != 0,
        })
    }
}

/// Bytes that are escaped in some syntaxes, the one that begins a fragment, and bytes that no URL contains.
const SPELLED: u8 = 1;
const FRAGMENT: u8 = 2;
const NEVER: u8 = 4;

const KINDS: [u8; 256] = {
    let mut kinds = [NEVER; 256];
    let mut character = b'!';
    while character <= b'~' {
        kinds[character as usize] = 0;
        character += 1;
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

/// How to write a URL in its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EscapeStyle {
    between: UrlSyntax,
    layers: EscapeLayers,
}

impl EscapeStyle {
    /// The style for an occurrence; `None` if it is too deeply nested.
    pub fn of(occurrence: &UrlOccurrence<'_>, between: UrlSyntax) -> Option<Self> {
        let layers = occurrence.context.layers?;
        Some(Self { between, layers })
    }

    /// The URL, of printable ASCII without blanks, in escaped form.
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
    /// CSS URLs have their own parser.
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
            Self::List => replaced(url, |character| (character == ',').then_some("%2C")),
            Self::Refresh(named) => {
                let text = replaced(url, |character| match character {
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
            Self::Brackets => replaced(url, |character| match character {
                '"' => Some("\\\""),
                '\'' => Some("\\'"),
                '(' => Some("\\("),
                ')' => Some("\\)"),
                other => in_css(other),
            }),
            Self::Script(quote) => replaced(url, |character| match character {
                '\\' => Some("\\\\"),
                '"' if quote == Quote::Double => Some("\\\""),
                '\'' if quote != Quote::Double => Some("\\'"),
                // No tag may begin or end in a script.
                '<' => Some("\\x3c"),
                '>' => Some("\\x3e"),
                _ => None,
            }),
            Self::String(Quote::Double) => replaced(url, |character| match character {
                '"' => Some("\\\""),
                other => in_css(other),
            }),
            Self::String(_) => replaced(url, |character| match character {
                '\'' => Some("\\'"),
                other => in_css(other),
            }),
        }
    }
}

/// Also escapes characters that would end the style sheet.
fn in_css(character: char) -> Option<&'static str> {
    match character {
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
            Self::Value(quote) | Self::XmlValue(quote) => {
                replaced(text, |character| match character {
                    '&' => Some("&amp;"),
                    '<' => Some("&lt;"),
                    '"' if quote != Quote::Single => Some("&quot;"),
                    '\'' if quote != Quote::Double => Some("&#39;"),
                    // Characters that end an unquoted value, or are a parse error in one.
                    '>' if quote == Quote::None => Some("&gt;"),
                    ' ' if quote == Quote::None => Some("&#32;"),
                    '=' if quote == Quote::None && text.starts_with('=') => Some("&#61;"),
                    _ => None,
                })
            }
            Self::XmlText => replaced(text, |character| match character {
                '&' => Some("&amp;"),
                '<' => Some("&lt;"),
                '>' => Some("&gt;"),
                _ => None,
            }),
        }
    }
}

/// An ASCII text with some of its characters replaced.
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
