//! The text of HTML, parsed as in browsers.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use lol_html::html_content::{TextChunk, TextType};
use lol_html::{
    DocumentContentHandlers, HandlerResult, HtmlRewriter, LocalHandlerTypes, MemorySettings,
    Settings,
};

use super::element_effects;
use super::tags::Tags;
use super::text_flow::TextFlow;

/// The memory limit of the parser, in addition to the unterminated tag or comment that it buffers. Enough for a tag
/// with a million attributes.
const MAX_MEMORY_BYTES: usize = 64 << 20;

/// The minimum length of tags with too many attributes: each takes 48 bytes in the parser, and at least two in the
/// page.
const LONG_TAG_BYTES: usize = 1 << 20;

/// Adds the text of a page; returns false if the parser gave up.
pub fn read(page: &str, text_flow: &mut TextFlow) -> bool {
    text_flow.end_document();
    let mut reader = Reader {
        page,
        text_flow,
        at: 0,
        text: None,
        shows_raw: false,
    };
    let mut all = reader.read_on();
    while !all && reader.skip_long_tag() {
        all = reader.read_on();
    }
    reader.text_flow.end_document();
    all
}

/// Parses the rest of a page; returns whether it reached the end.
fn parse(rest: &str, take: impl FnMut(Range<usize>, TextType)) -> bool {
    let take = RefCell::new(take);
    let on_text = |chunk: &mut TextChunk<'_>| -> HandlerResult {
        let piece = chunk.source_location().bytes();
        (take.borrow_mut())(piece, chunk.text_type());
        Ok(())
    };
    let memory = MemorySettings::new().with_max_allowed_memory_usage(rest.len() + MAX_MEMORY_BYTES);
    let settings: Settings<'_, '_, LocalHandlerTypes> = Settings::new()
        .with_strict(false)
        .with_memory_settings(memory)
        .append_document_content_handler(DocumentContentHandlers::default().text(on_text));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    rewriter
        .write(rest.as_bytes())
        .and_then(|()| rewriter.end())
        .is_ok()
}

/// Assembles text pieces, and parses the markup between them: the parser reports the ranges of texts, and keeps no list
/// of open elements unless it has to report them.
struct Reader<'t, 'f> {
    page: &'t str,
    text_flow: &'f mut TextFlow,
    /// The end of the processed part.
    at: usize,
    text: Option<(Range<usize>, TextType)>,
    /// Whether the raw text that follows is visible.
    shows_raw: bool,
}

impl Reader<'_, '_> {
    fn read_on(&mut self) -> bool {
        let (page, start) = (self.page, self.at);
        let all = parse(&page[start..], |piece, kind| {
            self.take(start + piece.start..start + piece.end, kind);
        });
        self.write();
        if all {
            self.mark_up(page.len());
        }
        all
    }

    /// Skips the tag that exceeded the parser's memory, if that is why it gave up.
    fn skip_long_tag(&mut self) -> bool {
        let start = self.at;
        let mut tags = Tags::of(&self.page[start..]);
        let mut from = 0;
        while tags.next().is_some() {
            if tags.at() - from > LONG_TAG_BYTES {
                self.mark_up(start + tags.at());
                return true;
            }
            from = tags.at();
        }
        false
    }

    fn take(&mut self, piece: Range<usize>, kind: TextType) {
        match &mut self.text {
            _ if piece.is_empty() => {}
            // A text comes in pieces, which may end anywhere, even within `&amp;`.
            Some((so_far, before)) if so_far.end == piece.start && *before == kind => {
                so_far.end = piece.end;
            }
            _ => {
                self.write();
                self.mark_up(piece.start);
                self.text = Some((piece, kind));
            }
        }
    }

    fn write(&mut self) {
        let Some((range, kind)) = self.text.take() else {
            return;
        };
        self.at = range.end;
        let text = self.page.get(range).unwrap_or_default();
        match kind {
            TextType::Data | TextType::RCData => self.text_flow.add(&plain(text)),
            TextType::CDataSection | TextType::PlainText => {
                self.text_flow.add(&without_zeros(text));
            }
            TextType::RawText if self.shows_raw => self.text_flow.add(&without_zeros(text)),
            TextType::RawText | TextType::ScriptData => {}
        }
    }

    fn mark_up(&mut self, end: usize) {
        for tag in Tags::of(self.page.get(self.at..end).unwrap_or_default()) {
            if tag.end {
                element_effects::end(tag.name, self.text_flow);
            } else {
                // Of the raw-text elements, styles are not visible, and frames and scripts are replaced by the others.
                self.shows_raw = tag.name.eq_ignore_ascii_case("xmp");
                element_effects::begin(tag.name, tag.empty, false, self.text_flow);
            }
        }
        self.at = end;
    }
}

/// Unescaped text.
pub fn plain(text: &str) -> Cow<'_, str> {
    let text = without_zeros(text);
    if text.contains('&') {
        htmlize::unescape(text)
    } else {
        text
    }
}

/// Removes NULs, which browsers skip in text.
fn without_zeros(text: &str) -> Cow<'_, str> {
    if memchr::memchr(0, text.as_bytes()).is_some() {
        text.replace('\0', "").into()
    } else {
        Cow::Borrowed(text)
    }
}
