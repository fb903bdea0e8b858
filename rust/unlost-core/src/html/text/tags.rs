//! The tags in markup without text.

use memchr::{memchr, memchr_iter};

use super::super::spans::is_blank;

/// A tag; `empty` if it is self-closing.
#[derive(Debug, PartialEq, Eq)]
pub struct Tag<'t> {
    pub name: &'t str,
    pub end: bool,
    pub empty: bool,
}

/// The tags of markup in order; comments and the like are skipped.
pub struct Tags<'t> {
    markup: &'t str,
    at: usize,
}

impl<'t> Tags<'t> {
    pub fn of(markup: &'t str) -> Self {
        Self { markup, at: 0 }
    }

    /// The end of the last tag.
    pub fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'t [u8] {
        &self.markup.as_bytes()[self.at..]
    }

    fn skip(&mut self, matches: impl Fn(u8) -> bool) {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| !matches(byte));
        self.at += end.unwrap_or(rest.len());
    }

    /// Skips past the next such byte, or to the end.
    fn skip_past(&mut self, mark: u8) {
        let rest = self.rest();
        self.at += memchr(mark, rest).map_or(rest.len(), |position| position + 1);
    }

    /// Skips past `-->` or `--!>`; the end of `<!-->` overlaps its beginning.
    fn skip_comment(&mut self) {
        self.at += 2;
        let rest = self.rest();
        let end = memchr_iter(b'>', rest).find(|&position| {
            let before = &rest[..position];
            before.ends_with(b"--") || (position > 4 && before.ends_with(b"--!"))
        });
        self.at += end.map_or(rest.len(), |position| position + 1);
    }

    /// Reads attributes and the end of the tag; returns whether it is self-closing.
    fn finish_tag(&mut self) -> bool {
        let mut empty = false;
        loop {
            self.skip(is_blank);
            match self.rest().first() {
                None => return empty,
                Some(b'>') => {
                    self.at += 1;
                    return empty;
                }
                Some(b'/') => {
                    empty = true;
                    self.at += 1;
                }
                Some(_) => {
                    empty = false;
                    self.skip_attribute();
                }
            }
        }
    }

    fn skip_attribute(&mut self) {
        // A name may begin with `=`.
        self.at += 1;
        self.skip(|byte| !is_blank(byte) && !matches!(byte, b'/' | b'>' | b'='));
        self.skip(is_blank);
        if self.rest().first() != Some(&b'=') {
            return;
        }
        self.at += 1;
        self.skip(is_blank);
        match self.rest().first() {
            Some(&quote @ (b'"' | b'\'')) => {
                self.at += 1;
                self.skip_past(quote);
            }
            _ => self.skip(|byte| !is_blank(byte) && byte != b'>'),
        }
    }
}

impl<'t> Iterator for Tags<'t> {
    type Item = Tag<'t>;

    fn next(&mut self) -> Option<Tag<'t>> {
        loop {
            self.at += memchr(b'<', self.rest())?;
            let rest = self.rest();
            let end = rest.get(1) == Some(&b'/');
            let start = 1 + usize::from(end);
            if rest.get(start).is_some_and(u8::is_ascii_alphabetic) {
                self.at += start;
                let from = self.at;
                self.skip(|byte| !is_blank(byte) && !matches!(byte, b'/' | b'>'));
                let name = &self.markup[from..self.at];
                let empty = self.finish_tag();
                return Some(Tag { name, end, empty });
            }
            if rest.starts_with(b"<!--") {
                self.skip_comment();
            } else {
                self.skip_past(b'>');
            }
        }
    }
}
