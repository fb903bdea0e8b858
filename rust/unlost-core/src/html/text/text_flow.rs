//! Assembles the visible text from the pieces between tags.

use super::super::spans::is_blank;
use super::element_effects::{HIDING, Hiding};

/// The separator between the last word and the next one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    #[default]
    Nothing,
    Blank,
    Break,
}

/// A position in the text.
#[derive(Clone, Copy)]
struct Mark {
    length: usize,
    gap: Gap,
}

/// The text so far.
#[derive(Default)]
pub struct TextFlow {
    text: String,
    gap: Gap,
    /// Open elements that hide their content, outermost first, with the position before them.
    open: Vec<(Hiding, Mark)>,
    /// The number of each in `open`.
    of_each: [usize; HIDING.len()],
}

impl TextFlow {
    /// Adds text; white space separates words.
    pub fn add(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if is_blank(bytes[at]) {
                self.part(Gap::Blank);
                let blanks = bytes[at..].iter().position(|&byte| !is_blank(byte));
                at += blanks.unwrap_or(bytes.len() - at);
                continue;
            }
            let end = end_of_run(&bytes[at..]) + at;
            self.write(&text[at..end]);
            at = end;
        }
    }

    /// Separates the next text from the previous one.
    pub fn part(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    fn write(&mut self, run: &str) {
        let gap = std::mem::take(&mut self.gap);
        if !self.text.is_empty() {
            match gap {
                Gap::Nothing => {}
                Gap::Blank => self.text.push(' '),
                Gap::Break => self.text.push('\n'),
            }
        }
        self.text.push_str(run);
    }

    /// Begins an element that hides its content, provided that it ends.
    pub fn hide(&mut self, element: Hiding) {
        let mark = Mark {
            length: self.text.len(),
            gap: self.gap,
        };
        self.open.push((element, mark));
        self.of_each[element.index()] += 1;
    }

    /// Ends the last such element of this name, and removes the text that was added since it began.
    pub fn end_hiding(&mut self, element: Hiding) {
        if self.of_each[element.index()] == 0 {
            return;
        }
        while let Some((each, mark)) = self.open.pop() {
            self.of_each[each.index()] -= 1;
            if each == element {
                self.text.truncate(mark.length);
                self.gap = mark.gap;
                return;
            }
        }
    }

    /// Drops all elements that did not end: their content stays.
    pub fn end_document(&mut self) {
        self.open.clear();
        self.of_each = [0; HIDING.len()];
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// The end of a run of words separated by single spaces, so that most text is copied in few pieces.
fn end_of_run(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        if is_blank(bytes[at]) {
            let next = bytes.get(at + 1);
            if bytes[at] != b' ' || next.is_none_or(|&next| is_blank(next)) {
                return at;
            }
        }
        at += 1;
    }
    at
}
