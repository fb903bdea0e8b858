//! The visible text of a page.

mod element_effects;
mod html;
mod tags;
mod text_flow;
mod xml;

use super::binary;
use super::document::Document;
use super::kind::Kind;
use text_flow::TextFlow;

/// The text of a body.
pub struct Text {
    /// Its content.
    pub text: String,
    /// Whether only the beginning of the body was read.
    pub cut: bool,
}

/// Extracts the text of a body; `None` if its kind has none. The arguments are those of [`super::find`].
///
/// Markup is removed from HTML and XML, and their white space becomes one blank, or one line end at block boundaries;
/// other text is unchanged. Any input gives a result, in time linear in its length.
#[must_use]
pub fn read(body: &[u8], mime: Option<&str>, base: &str, charset: Option<&str>) -> Option<Text> {
    let document = Document::of(body, mime, base, charset);
    let kind = document.kind?;
    if binary::is_binary(&document.body, document.label, kind) {
        return None;
    }
    let mut cut = document.cut;
    let (text, _) = document.decoded(kind);
    let mut text_flow = TextFlow::default();
    match kind {
        Kind::Html => cut |= !html::read(&text, &mut text_flow),
        Kind::Xhtml => xml::read_page(&text, &mut text_flow),
        Kind::Feed => cut |= !xml::read_feed(&text, &mut text_flow),
        Kind::Xml => xml::read_any(&text, &mut text_flow),
        Kind::Css | Kind::Robots | Kind::UrlList | Kind::Text => {
            let text = text.into_owned();
            return Some(Text { text, cut });
        }
    }
    let text = text_flow.into_text();
    Some(Text { text, cut })
}
