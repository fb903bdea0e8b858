//! CSS that needs no parser: words, numbers and unquoted `url(…)`, as in most `style` attributes with a URL.

use std::ops::Range;

use super::is_blank;

/// Bytes of words, numbers and separators, which begin neither a string nor a comment, a block or a rule.
const SIMPLE: u8 = 1;
/// Bytes that are literal between the brackets, and do not end them.
const URL: u8 = 2;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128_usize {
        #[expect(clippy::cast_possible_truncation, reason = "it is less than 128")]
        let character = byte as u8;
        if character.is_ascii_graphic() && !matches!(character, b'"' | b'\'' | b'(' | b')' | b'\\')
        {
            classes[byte] |= URL;
        }
        let is_between = matches!(
            character,
            b'-' | b'_' | b'.' | b'#' | b'%' | b'!' | b',' | b':' | b';' | b'/'
        );
        if character.is_ascii_alphanumeric() || is_blank(character) || is_between {
            classes[byte] |= SIMPLE;
        }
        byte += 1;
    }
    classes
};

/// The range of such a token, and of its URL.
pub struct Token {
    pub span: Range<usize>,
    pub url: Range<usize>,
}

/// Calls `each` with all URLs if the text is that simple; otherwise returns `false` without any call.
pub fn urls(text: &str, mut each: impl FnMut(Token)) -> bool {
    let bytes = text.as_bytes();
    // Whether it is that simple is known only at the end.
    read(bytes, |_| {}) && read(bytes, &mut each)
}

fn read(bytes: &[u8], mut each: impl FnMut(Token)) -> bool {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if CLASSES[usize::from(byte)] & SIMPLE != 0 {
            continue;
        }
        let Some(start) = at.checked_sub(4).filter(|_| byte == b'(') else {
            return false;
        };
        let begins = start == 0 || ends_token(bytes[start - 1]);
        let length = bytes[at..]
            .iter()
            .take_while(|&&byte| CLASSES[usize::from(byte)] & URL != 0);
        let end = at + length.count();
        let is_ended = bytes.get(end) == Some(&b')');
        if !begins
            || !bytes[start..start + 3].eq_ignore_ascii_case(b"url")
            || at == end
            || !is_ended
        {
            return false;
        }
        each(Token {
            span: start..end + 1,
            url: at..end,
        });
        at = end + 1;
    }
    true
}

/// Bytes after which a new token begins.
fn ends_token(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b':' | b';' | b',' | b')')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::spans::css;
    use crate::test_rng::test_rng;

    const PIECES: &[&str] = &[
        "url(",
        "URL(",
        "a.png",
        ")",
        "(",
        "background",
        ":",
        ";",
        " ",
        "\n",
        "url",
        "#",
        "1",
        "1px/2",
        "%",
        ",",
        "-",
        "rgb(",
        "/",
        "*",
        "/*",
        "*/",
        "\"",
        "'",
        "\\",
        "@import",
        "{",
        "}",
        "[",
        "!",
        "é",
        "url(x)",
        "url(b/c.png?d=e&f)",
        "no-repeat",
        "<!--",
        "-->",
        "=",
        "+",
        "\0",
        "u+4",
        "src(",
    ];

    /// For random short texts, the URLs are those of the parser.
    #[test]
    fn urls_match_the_parser() {
        let mut rng = test_rng(11);
        let mut simple = 0;
        for _ in 0..100_000 {
            let text: String = (0..=rng(6)).map(|_| PIECES[rng(PIECES.len())]).collect();
            let mut found = Vec::new();
            let is_simple = urls(&text, |token| {
                found.push((token.span, text[token.url].to_owned()));
            });
            if is_simple {
                simple += usize::from(!found.is_empty());
                let mut parse_urls = Vec::new();
                css::parse_urls(&text, |url| {
                    parse_urls.push((url.span, url.value.to_string()));
                });
                assert_eq!(found, parse_urls, "{text:?}");
            } else {
                assert!(found.is_empty(), "{text:?}");
            }
        }
        assert!(simple > 1_000, "{simple}");
    }
}
