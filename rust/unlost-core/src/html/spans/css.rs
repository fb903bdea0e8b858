//! The URLs in CSS.

use std::ops::Range;

use cssparser::{BasicParseErrorKind, CowRcStr, ParseError, Parser, ParserInput, Token};

use super::css_words;

/// The maximum nesting of blocks. Our limit, since each level uses stack.
const MAX_DEPTH: usize = 100;

/// A URL in CSS.
#[derive(Debug)]
pub struct CssUrl<'t> {
    /// The range of its token: `url(…)`, or a string with its quotes.
    pub span: Range<usize>,
    /// The URL itself, without quotes and escapes.
    pub value: CowRcStr<'t>,
}

/// The meaning of strings in a context.
#[derive(Clone, Copy)]
enum StringMeaning {
    Text,
    FirstIsUrl,
    AllAreUrls,
    /// Only the argument `src`; `true` after its name.
    Named(bool),
}

/// Calls `each` with the URLs of a style sheet or of declarations, in order: `url()`, `src()`, `@import`,
/// `image-set()`, and the `AlphaImageLoader` of old browsers. Namespace names are excluded.
pub fn urls<'t>(text: &'t str, mut each: impl FnMut(CssUrl<'t>)) {
    let is_read = css_words::urls(text, |token| {
        each(CssUrl {
            span: token.span,
            value: text[token.url].into(),
        });
    });
    if !is_read {
        parse_urls(text, each);
    }
}

/// The same, always with the full parser.
pub(super) fn parse_urls<'t>(text: &'t str, mut each: impl FnMut(CssUrl<'t>)) {
    let mut input = ParserInput::new(text);
    let mut parser = Parser::new(&mut input);
    block(&mut parser, StringMeaning::Text, 0, &mut each);
}

fn block<'t>(
    parser: &mut Parser<'t, '_>,
    mut strings: StringMeaning,
    depth: usize,
    each: &mut dyn FnMut(CssUrl<'t>),
) {
    loop {
        let start = parser.position().byte_index();
        let token = match parser.next_including_whitespace_and_comments() {
            Ok(token) => token.clone(),
            Err(error) if matches!(error.kind, BasicParseErrorKind::EndOfInput) => return,
            // An invalid token was consumed; the next one may be valid.
            Err(_) => continue,
        };
        let span = start..parser.position().byte_index();
        match token {
            Token::UnquotedUrl(value) => {
                each(CssUrl { span, value });
                strings = after_url(strings);
            }
            Token::QuotedString(value)
                if !matches!(strings, StringMeaning::Text | StringMeaning::Named(false)) =>
            {
                each(CssUrl { span, value });
                strings = after_url(strings);
            }
            Token::AtKeyword(name) if name.eq_ignore_ascii_case("import") => {
                strings = StringMeaning::FirstIsUrl;
            }
            Token::AtKeyword(name) if is_about_names(&name) => skip_prelude(parser),
            Token::Ident(name) if matches!(strings, StringMeaning::Named(_)) => {
                strings = StringMeaning::Named(name.eq_ignore_ascii_case("src"));
            }
            Token::Semicolon => strings = StringMeaning::Text,
            Token::Function(name) => nested(parser, inside(&name), depth, each),
            Token::CurlyBracketBlock | Token::ParenthesisBlock | Token::SquareBracketBlock => {
                nested(parser, StringMeaning::Text, depth, each);
            }
            _ => {}
        }
    }
}

fn after_url(strings: StringMeaning) -> StringMeaning {
    match strings {
        StringMeaning::FirstIsUrl => StringMeaning::Text,
        other => other,
    }
}

fn inside(function: &str) -> StringMeaning {
    let is = |name: &&str| function.eq_ignore_ascii_case(name);
    if ["url", "src"].iter().any(is) {
        StringMeaning::FirstIsUrl
    } else if ["image-set", "-webkit-image-set"].iter().any(is) {
        StringMeaning::AllAreUrls
    } else if is(&"alphaimageloader") {
        StringMeaning::Named(false)
    } else {
        StringMeaning::Text
    }
}

/// Rules whose `url()` is a name, or selects pages.
fn is_about_names(rule: &str) -> bool {
    ["namespace", "document", "-moz-document"]
        .iter()
        .any(|name| rule.eq_ignore_ascii_case(name))
}

fn skip_prelude(parser: &mut Parser<'_, '_>) {
    let _: Result<(), ParseError<'_, ()>> = parser.parse_until_before(
        cssparser::Delimiter::Semicolon | cssparser::Delimiter::CurlyBracketBlock,
        |prelude| {
            while prelude.next().is_ok() {}
            Ok(())
        },
    );
}

fn nested<'t>(
    parser: &mut Parser<'t, '_>,
    strings: StringMeaning,
    depth: usize,
    each: &mut dyn FnMut(CssUrl<'t>),
) {
    if depth == MAX_DEPTH {
        return; // the parser skips a block that is not parsed
    }
    let _: Result<(), ParseError<'t, ()>> = parser.parse_nested_block(|inner| {
        block(inner, strings, depth + 1, each);
        Ok(())
    });
}
