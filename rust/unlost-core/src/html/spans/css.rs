//! The addresses in CSS.

use std::ops::Range;

use cssparser::{BasicParseErrorKind, CowRcStr, ParseError, Parser, ParserInput, Token};

use super::css_words;

/// Blocks inside each other that are looked into. Nobody nests so deep, and each costs some of the stack.
const MAX_DEPTH: usize = 100;

/// An address in CSS.
#[derive(Debug)]
pub struct Address<'t> {
    /// The token that it stands in: `url(…)`, or a string with its quotes.
    pub span: Range<usize>,
    /// The address itself, without quotes and escapes.
    pub value: CowRcStr<'t>,
}

/// What strings mean where they stand.
#[derive(Clone, Copy)]
enum Strings {
    Text,
    FirstIsAddress,
    AllAreAddresses,
    /// Those of the argument `src`, of which `true` says that it has begun.
    Named(bool),
}

/// Calls `each` with the addresses of a style sheet or of declarations, in their order: `url()`, `src()`, `@import`,
/// `image-set()`, and the `AlphaImageLoader` of old browsers. Names of namespaces are no addresses.
pub fn addresses<'t>(text: &'t str, mut each: impl FnMut(Address<'t>)) {
    let is_read = css_words::addresses(text, |token| {
        each(Address {
            span: token.span,
            value: text[token.address].into(),
        });
    });
    if !is_read {
        parsed(text, each);
    }
}

/// The same, whatever there is.
pub(super) fn parsed<'t>(text: &'t str, mut each: impl FnMut(Address<'t>)) {
    let mut input = ParserInput::new(text);
    let mut parser = Parser::new(&mut input);
    block(&mut parser, Strings::Text, 0, &mut each);
}

fn block<'t>(
    parser: &mut Parser<'t, '_>,
    mut strings: Strings,
    depth: usize,
    each: &mut dyn FnMut(Address<'t>),
) {
    loop {
        let start = parser.position().byte_index();
        let token = match parser.next_including_whitespace_and_comments() {
            Ok(token) => token.clone(),
            Err(error) if matches!(error.kind, BasicParseErrorKind::EndOfInput) => return,
            // A token that is wrong has been read; what follows may be right.
            Err(_) => continue,
        };
        let span = start..parser.position().byte_index();
        match token {
            Token::UnquotedUrl(value) => {
                each(Address { span, value });
                strings = after_address(strings);
            }
            Token::QuotedString(value)
                if !matches!(strings, Strings::Text | Strings::Named(false)) =>
            {
                each(Address { span, value });
                strings = after_address(strings);
            }
            Token::AtKeyword(name) if name.eq_ignore_ascii_case("import") => {
                strings = Strings::FirstIsAddress;
            }
            Token::AtKeyword(name) if is_about_names(&name) => skip_prelude(parser),
            Token::Ident(name) if matches!(strings, Strings::Named(_)) => {
                strings = Strings::Named(name.eq_ignore_ascii_case("src"));
            }
            Token::Semicolon => strings = Strings::Text,
            Token::Function(name) => nested(parser, inside(&name), depth, each),
            Token::CurlyBracketBlock | Token::ParenthesisBlock | Token::SquareBracketBlock => {
                nested(parser, Strings::Text, depth, each);
            }
            _ => {}
        }
    }
}

fn after_address(strings: Strings) -> Strings {
    match strings {
        Strings::FirstIsAddress => Strings::Text,
        other => other,
    }
}

fn inside(function: &str) -> Strings {
    let is = |name: &&str| function.eq_ignore_ascii_case(name);
    if ["url", "src"].iter().any(is) {
        Strings::FirstIsAddress
    } else if ["image-set", "-webkit-image-set"].iter().any(is) {
        Strings::AllAreAddresses
    } else if is(&"alphaimageloader") {
        Strings::Named(false)
    } else {
        Strings::Text
    }
}

/// Rules whose `url()` is a name, or says which pages the rule is for.
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
    strings: Strings,
    depth: usize,
    each: &mut dyn FnMut(Address<'t>),
) {
    if depth == MAX_DEPTH {
        return; // the parser itself passes over a block that nobody looks into
    }
    let _: Result<(), ParseError<'t, ()>> = parser.parse_nested_block(|inner| {
        block(inner, strings, depth + 1, each);
        Ok(())
    });
}
