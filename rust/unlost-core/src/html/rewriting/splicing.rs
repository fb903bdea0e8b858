//! Splices replacement URLs into a document.

use std::borrow::Cow;
use std::ops::Range;

use super::url_occurrences::{GuardEffect, GuardedAttribute, ReferenceList, WrittenUrl};
use super::url_writer::ReplacementUrl;
use super::{ParsedDocument, at};
use crate::html::references::{Reference, References};
use crate::html::resolved_links::ResolvedReferences;

/// The maximum growth of a document. Our limit, since callers may provide long URLs.
const MAX_GROWTH: usize = 128 << 20;

/// The byte-order mark of UTF-8, which overrides what the server or the document declares.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A document with replaced URLs.
#[derive(Debug)]
pub struct Spliced {
    /// `None` if it is unchanged.
    pub body: Option<Vec<u8>>,
    /// The number of replaced URLs.
    pub changed: usize,
    /// The number of URLs that were not replaced because they are too long or too many, or because of the growth limit.
    pub not_replaced: usize,
}

/// A range of bytes and its replacement.
type Edit<'a> = (Range<usize>, Cow<'a, str>);

/// Whether references resolve elsewhere once the base or their codebase is disabled; computed once for each.
struct RelocationCache<'s> {
    document: &'s ParsedDocument,
    /// For links and others, with and without the codebase.
    known: [Vec<Option<bool>>; 4],
}

impl ParsedDocument {
    /// Replaces links in order; `None` and invalid URLs leave a link unchanged. `body` must be the body that was
    /// parsed.
    #[must_use]
    pub fn splice<A: AsRef<str>>(&self, body: &[u8], replacements: &[Option<A>]) -> Spliced {
        self.splice_all(body, replacements, &[])
    }

    /// The same, with replacements for the candidates.
    #[must_use]
    pub fn splice_all<A: AsRef<str>>(
        &self,
        body: &[u8],
        replacements: &[Option<A>],
        candidates: &[Option<A>],
    ) -> Spliced {
        let (replacements, candidates) = (
            parse_replacements(replacements),
            parse_replacements(candidates),
        );
        let plan = self.plan(&replacements, &candidates);
        let body = plan.has_edits().then(|| {
            let mut out = vec![0; plan.length(body)];
            plan.write(body, &mut out);
            out
        });
        Spliced {
            body,
            changed: plan.changed,
            not_replaced: plan.not_replaced,
        }
    }

    /// Computes the changes without writing them.
    #[must_use]
    pub fn plan<'a>(
        &'a self,
        replacements: &[Option<ReplacementUrl<'a>>],
        candidates: &[Option<ReplacementUrl<'a>>],
    ) -> EditPlan<'a> {
        let mut edits: Vec<Edit<'_>> = Vec::with_capacity(self.occurrences.written.len());
        let mut replaced = vec![false; self.occurrences.written.len()];
        let mut growth = 0;
        let mut not_replaced = self.not_replaced();
        for (occurrence, replaced) in self.occurrences.written.iter().zip(&mut replaced) {
            if let Some(replacement) = self.replacement(occurrence, replacements, candidates)
                && occurrence.start <= occurrence.end
            {
                let edit = occurrence.edit(replacement);
                growth += edit.1.len();
                if growth > MAX_GROWTH {
                    not_replaced += 1;
                    continue;
                }
                edits.push(edit);
                *replaced = true;
            }
        }
        let changed = edits.len();
        let freed = self.disable_attributes(&replaced, &mut edits);
        self.make_absolute(
            &replaced,
            &freed,
            &mut edits,
            &mut growth,
            &mut not_replaced,
        );
        if !edits.is_empty() {
            let declared = self.declared.iter().cloned();
            edits.extend(declared.map(|span| (span, Cow::Borrowed("utf-8"))));
            edits.sort_by_key(|(span, _)| span.start);
        }
        EditPlan {
            document: self,
            edits,
            changed,
            not_replaced,
        }
    }

    fn drops_base(&self) -> bool {
        let is_base = |what| what == GuardEffect::Base;
        self.options.drop_base
            && self
                .occurrences
                .guards
                .iter()
                .any(|guard| is_base(guard.what))
    }

    fn replacement<'a>(
        &self,
        occurrence: &WrittenUrl,
        replacements: &[Option<ReplacementUrl<'a>>],
        candidates: &[Option<ReplacementUrl<'a>>],
    ) -> Option<ReplacementUrl<'a>> {
        let (resolve_all, replacements) = match occurrence.list {
            ReferenceList::Links => (&self.links, replacements),
            ReferenceList::Candidates => (&self.candidates, candidates),
            ReferenceList::Others => return None,
        };
        let link = resolve_all.as_ref()?.which[at(occurrence.reference)]?;
        *replacements.get(at(link))?
    }

    /// Renames attributes so that they have no effect. Returns the occurrences whose codebase is one of them.
    fn disable_attributes(
        &self,
        replaced: &[bool],
        edits: &mut Vec<Edit<'_>>,
    ) -> Vec<Range<usize>> {
        let mut freed: Vec<Range<usize>> = Vec::new();
        // Attributes of one element give the same result: computed once.
        let mut known: [Option<(Range<usize>, bool)>; 2] = [None, None];
        for guard in &self.occurrences.guards {
            let is_codebase = guard.what == GuardEffect::Codebase;
            let is_disabled = match guard.what {
                GuardEffect::Base => self.options.drop_base,
                GuardEffect::Policy => self.options.drop_policy,
                GuardEffect::Content if !self.options.drop_integrity => false,
                GuardEffect::Content | GuardEffect::Codebase => {
                    let last = &mut known[usize::from(is_codebase)];
                    match last {
                        Some((occurrences, is_disabled)) if *occurrences == guard.occurrences => {
                            *is_disabled
                        }
                        _ => {
                            let is_disabled = self.has_replaced(guard, replaced);
                            *last = Some((guard.occurrences.clone(), is_disabled));
                            if is_disabled && is_codebase {
                                freed.push(guard.occurrences.clone());
                            }
                            is_disabled
                        }
                    }
                }
            };
            if is_disabled {
                let name_at = at(guard.name_at);
                edits.push((name_at..name_at, Cow::Borrowed(guard.prefix)));
            }
        }
        freed
    }

    /// Whether a URL was replaced that an attribute of the same element affects.
    fn has_replaced(&self, guard: &GuardedAttribute, replaced: &[bool]) -> bool {
        guard.occurrences.clone().any(|nth| {
            let is_below = || {
                self.reference(&self.occurrences.written[nth])
                    .within
                    .is_some()
            };
            replaced[nth] && (guard.what != GuardEffect::Codebase || is_below())
        })
    }

    /// Makes URLs absolute that were not replaced, but would resolve elsewhere.
    fn make_absolute<'s>(
        &'s self,
        replaced: &[bool],
        freed: &[Range<usize>],
        edits: &mut Vec<Edit<'s>>,
        growth: &mut usize,
        not_replaced: &mut usize,
    ) {
        let mut moved = RelocationCache::new(self);
        let mut add_absolute = |nth: usize, is_free: bool| {
            let occurrence = &self.occurrences.written[nth];
            // It is not known whether a candidate is relative to the base.
            let is_candidate = occurrence.list == ReferenceList::Candidates;
            if replaced[nth] || occurrence.start > occurrence.end || is_candidate {
                return;
            }
            if moved.is_moved(occurrence, is_free)
                && let Some(url) = self.url(occurrence).and_then(ReplacementUrl::of)
            {
                let edit = occurrence.edit(url);
                *growth += edit.1.len();
                if *growth > MAX_GROWTH {
                    *not_replaced += 1;
                } else {
                    edits.push(edit);
                }
            }
        };
        if self.drops_base() {
            let mut free = freed.iter().peekable();
            for nth in 0..self.occurrences.written.len() {
                while free.next_if(|occurrences| occurrences.end <= nth).is_some() {}
                add_absolute(
                    nth,
                    free.peek()
                        .is_some_and(|occurrences| occurrences.contains(&nth)),
                );
            }
        } else {
            for nth in freed.iter().cloned().flatten() {
                add_absolute(nth, true);
            }
        }
    }

    fn of(&self, occurrence: &WrittenUrl) -> (&References, Option<&ResolvedReferences>) {
        match occurrence.list {
            ReferenceList::Links => (&self.occurrences.links, self.links.as_ref()),
            ReferenceList::Others => (&self.occurrences.others, self.others.as_ref()),
            ReferenceList::Candidates => (&self.occurrences.candidates, self.candidates.as_ref()),
        }
    }

    fn reference(&self, occurrence: &WrittenUrl) -> Reference<'_> {
        self.of(occurrence).0.get(at(occurrence.reference))
    }

    /// The resolved URL of an occurrence.
    fn url(&self, occurrence: &WrittenUrl) -> Option<&str> {
        let resolve_all = self.of(occurrence).1?;
        let link = resolve_all.which[at(occurrence.reference)]?;
        Some(resolve_all.links.get(at(link)).0)
    }
}

fn parse_replacements<A: AsRef<str>>(texts: &[Option<A>]) -> Vec<Option<ReplacementUrl<'_>>> {
    let texts = texts.iter().map(Option::as_ref);
    texts
        .map(|text| text.and_then(|text| ReplacementUrl::of(text.as_ref())))
        .collect()
}

/// The planned changes.
pub struct EditPlan<'a> {
    document: &'a ParsedDocument,
    edits: Vec<Edit<'a>>,
    /// The number of URLs to replace.
    pub changed: usize,
    /// The number of URLs that are not replaced; as in [`Spliced`].
    pub not_replaced: usize,
}

impl EditPlan<'_> {
    /// Whether anything changes.
    #[must_use]
    pub fn has_edits(&self) -> bool {
        !self.edits.is_empty()
    }

    /// The length of the new document; `body` must be the body that was parsed.
    #[must_use]
    pub fn length(&self, body: &[u8]) -> usize {
        let mut length = 0;
        self.pieces(body, |piece| length += piece.len());
        length
    }

    /// Writes the new document to `out`, which must have its length.
    pub fn write(&self, body: &[u8], out: &mut [u8]) {
        let mut at = 0;
        self.pieces(body, |piece| {
            out[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        });
    }

    fn pieces<'p>(&'p self, body: &'p [u8], mut each: impl FnMut(&'p [u8])) {
        let body = self.document.instead.as_deref().unwrap_or(body);
        if self.document.transcoded {
            each(MARK);
        }
        let mut written = 0;
        for (span, text) in &self.edits {
            // URLs do not overlap; if they did, the first would count.
            if span.start >= written && span.end <= body.len() {
                each(&body[written..span.start]);
                each(text.as_bytes());
                written = span.end;
            }
        }
        each(&body[written..]);
    }
}

impl WrittenUrl {
    /// The replacement with the fragment of the old URL, unless it has its own.
    #[inline]
    fn edit<'a>(&self, replacement: ReplacementUrl<'a>) -> Edit<'a> {
        let is_plain = replacement.is_plain && !replacement.has_fragment;
        // Most URLs need no escaping, and most fragments are unchanged.
        if is_plain && self.fragment.is_none() && self.semicolons == 0 {
            return (at(self.start)..at(self.end), Cow::Borrowed(replacement.url));
        }
        self.spelled(replacement)
    }

    #[inline(never)]
    fn spelled<'a>(&self, replacement: ReplacementUrl<'a>) -> Edit<'a> {
        let url = replacement.url;
        let (end, text) = if replacement.has_fragment {
            (self.whole_end, self.escape_style.escape(url))
        } else if let Some(fragment) = &self.fragment {
            let whole = url.to_owned() + &escaped(fragment);
            let text = self.escape_style.escape(&whole).into_owned();
            (self.whole_end, Cow::Owned(text))
        } else if replacement.is_plain {
            (self.end, Cow::Borrowed(url))
        } else {
            (self.end, self.escape_style.escape(url))
        };
        let text = match self.semicolons {
            0 => text,
            number => Cow::Owned(";".repeat(number.into()) + &text),
        };
        (at(self.start)..at(end), text)
    }
}

/// A fragment in ASCII, as in browsers.
fn escaped(fragment: &str) -> String {
    let mut out = String::with_capacity(fragment.len());
    for byte in fragment.bytes() {
        if byte.is_ascii_graphic() {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.extend(
                [byte >> 4, byte & 15]
                    .map(|half| char::from(b"0123456789ABCDEF"[usize::from(half)])),
            );
        }
    }
    out
}

impl<'s> RelocationCache<'s> {
    fn new(document: &'s ParsedDocument) -> Self {
        Self {
            document,
            known: std::array::from_fn(|_| Vec::new()),
        }
    }

    fn is_moved(&mut self, occurrence: &WrittenUrl, is_free: bool) -> bool {
        let slot = usize::from(occurrence.list == ReferenceList::Links) * 2 + usize::from(is_free);
        let known = &mut self.known[slot];
        if known.is_empty() {
            known.resize(self.document.of(occurrence).0.len(), None);
        }
        let document = self.document;
        *known[at(occurrence.reference)]
            .get_or_insert_with(|| document.leads_elsewhere(occurrence, is_free))
    }
}

impl ParsedDocument {
    fn leads_elsewhere(&self, occurrence: &WrittenUrl, is_free: bool) -> bool {
        let Some(bases) = &self.bases else {
            return false;
        };
        let reference = self.reference(occurrence);
        let before = bases.resolve(bases.base.as_ref(), reference);
        let base = if self.drops_base() {
            &bases.own
        } else {
            &bases.base
        };
        let after = if is_free {
            bases.resolve_without_codebase(base.as_ref(), reference)
        } else {
            bases.resolve(base.as_ref(), reference)
        };
        before != after
    }
}
