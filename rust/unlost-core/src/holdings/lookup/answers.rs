//! What a map says about pages, some dozen answers in one piece of memory.

use super::super::Frequency;
use crate::uri::{RuleSet, Segments, UriError, page_of_uri};

/// Bytes of text for an answer, so that few groups need more: its key, and the key that matched.
const TEXT: usize = 96;

/// What questions are asked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Addresses, or SURTs in their place, read by these rules.
    Uris(RuleSet),
    /// Normal keys, with or without query.
    Keys,
}

/// What a map says about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The page's key, without query.
    pub key: &'a [u8],
    /// The key of the map that answers, and what it says; `None` if the map says nothing.
    pub found: Option<(&'a [u8], Frequency)>,
}

/// Where in a group's text: from here to there.
#[derive(Debug, Clone, Copy)]
struct Piece(usize, usize);

#[derive(Debug)]
struct Kept {
    key: Piece,
    found: Option<(Piece, Frequency)>,
}

/// Some answers with their text in one piece of memory: whoever keeps one of them keeps the few beside it, and nobody
/// needs memory for each.
#[derive(Debug, Default)]
pub struct Answers {
    text: Vec<u8>,
    kept: Vec<Result<Kept, UriError>>,
}

impl Answers {
    /// One answer that is there already.
    #[must_use]
    pub fn of(answer: Answer<'_>) -> Self {
        let mut answers = Self::default();
        let key = answers.append(answer.key);
        let found = answer.found;
        let found = found.map(|(matched, frequency)| (answers.append(matched), frequency));
        answers.kept.push(Ok(Kept { key, found }));
        answers
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The answer to a question, or why it is none.
    pub fn get(&self, i: usize) -> Result<Answer<'_>, &UriError> {
        let kept = self.kept[i].as_ref()?;
        Ok(Answer {
            key: self.piece(kept.key),
            found: kept
                .found
                .map(|(matched, frequency)| (self.piece(matched), frequency)),
        })
    }

    /// Whether the page of a question is held, which nothing is that could not be read.
    #[must_use]
    pub fn is_held(&self, i: usize) -> bool {
        let found = self.kept[i].as_ref().ok().and_then(|kept| kept.found);
        found.is_some_and(|(_, frequency)| frequency.is_held())
    }

    /// The key of a question that could be read.
    pub(super) fn key(&self, i: usize) -> Option<&[u8]> {
        let kept = self.kept[i].as_ref().ok()?;
        Some(self.piece(kept.key))
    }

    fn piece(&self, Piece(start, end): Piece) -> &[u8] {
        &self.text[start..end]
    }

    fn append(&mut self, text: &[u8]) -> Piece {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        self.since(start)
    }

    fn since(&self, start: usize) -> Piece {
        Piece(start, self.text.len())
    }

    /// The keys of some questions.
    pub(super) fn read<'a>(
        questions: impl ExactSizeIterator<Item = &'a [u8]>,
        asked: Asked,
    ) -> Self {
        let mut answers = Self {
            text: Vec::with_capacity(questions.len() * TEXT),
            kept: Vec::with_capacity(questions.len()),
        };
        for question in questions {
            let start = answers.text.len();
            let read = write_key(question, asked, &mut answers.text);
            if read.is_err() {
                answers.text.truncate(start);
            }
            let key = answers.since(start);
            answers.kept.push(read.map(|()| Kept { key, found: None }));
        }
        answers
    }

    /// Replaces one of them by the only one of others.
    pub(super) fn replace(&mut self, i: usize, other: &Self) {
        if let Ok(answer) = other.get(0) {
            let key = self.append(answer.key);
            let found = answer.found;
            let found = found.map(|(matched, frequency)| (self.append(matched), frequency));
            self.kept[i] = Ok(Kept { key, found });
        }
    }

    /// Keeps what was found for one of them.
    pub(super) fn keep(&mut self, i: usize, matched: &[u8], frequency: Frequency) {
        let piece = self.append(matched);
        if let Ok(kept) = &mut self.kept[i] {
            kept.found = Some((piece, frequency));
        }
    }
}

impl PartialEq for Answers {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|i| self.get(i) == other.get(i))
    }
}

/// Appends the key to look up: normal, without query.
fn write_key(question: &[u8], asked: Asked, out: &mut Vec<u8>) -> Result<(), UriError> {
    match asked {
        Asked::Uris(rules) => page_of_uri(question, rules, out),
        Asked::Keys => {
            // No key has white space in it, and rows end theirs there.
            let end = question.iter().position(|&byte| byte <= b' ');
            let key = &question[..end.unwrap_or(question.len())];
            out.extend_from_slice(&key[..Segments::of(key).path_end()]);
            Ok(())
        }
    }
}
