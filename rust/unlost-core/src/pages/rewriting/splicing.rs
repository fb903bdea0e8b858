//! What is new, put in the place of what was there.

use std::borrow::Cow;
use std::ops::Range;

use super::spots::{Among, Guard, Guarded, Written};
use super::writing::Answer;
use super::{Spotted, at};
use crate::pages::found::Resolved;
use crate::pages::references::{Reference, References};

/// A document may grow by so many bytes: new addresses are as long as whoever gives them likes.
const MAX_GROWTH: usize = 128 << 20;

/// The mark that says UTF-8 before whatever a server or the document says.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A document with other addresses.
#[derive(Debug)]
pub struct Spliced {
    /// `None` if it is as it was.
    pub body: Option<Vec<u8>>,
    /// How many addresses were replaced.
    pub changed: usize,
    /// How many were not since they are too long or too many, or since there would be too much.
    pub left: usize,
}

/// What to write in place of some bytes.
type Edit<'a> = (Range<usize>, Cow<'a, str>);

/// Whether references lead elsewhere once the base or their codebase has no effect; found out once for each.
struct Moved<'s> {
    spotted: &'s Spotted,
    /// For links and others, with the codebase and without it.
    known: [Vec<Option<bool>>; 4],
}

impl Spotted {
    /// Puts the answers for the links in their places, the first for the first; `None`, and what is no [`Answer`], leaves it.
    /// `body` is what was given to be read.
    #[must_use]
    pub fn splice<A: AsRef<str>>(&self, body: &[u8], answers: &[Option<A>]) -> Spliced {
        self.splice_all(body, answers, &[])
    }

    /// The same, with answers for the candidates, too.
    #[must_use]
    pub fn splice_all<A: AsRef<str>>(
        &self,
        body: &[u8],
        answers: &[Option<A>],
        candidates: &[Option<A>],
    ) -> Spliced {
        let (answers, candidates) = (answers_of(answers), answers_of(candidates));
        let plan = self.plan(&answers, &candidates);
        let body = plan.has_edits().then(|| {
            let mut out = vec![0; plan.length(body)];
            plan.write(body, &mut out);
            out
        });
        Spliced {
            body,
            changed: plan.changed,
            left: plan.left,
        }
    }

    /// The same, before anything is written.
    #[must_use]
    pub fn plan<'a>(
        &'a self,
        answers: &[Option<Answer<'a>>],
        candidates: &[Option<Answer<'a>>],
    ) -> Plan<'a> {
        let mut edits: Vec<Edit<'_>> = Vec::with_capacity(self.spots.written.len());
        let mut replaced = vec![false; self.spots.written.len()];
        let mut growth = 0;
        let mut left = self.left();
        for (spot, replaced) in self.spots.written.iter().zip(&mut replaced) {
            if let Some(answer) = self.answer(spot, answers, candidates)
                && spot.start <= spot.end
            {
                let edit = spot.edit(answer);
                growth += edit.1.len();
                if growth > MAX_GROWTH {
                    left += 1;
                    continue;
                }
                edits.push(edit);
                *replaced = true;
            }
        }
        let changed = edits.len();
        let freed = self.guarded(&replaced, &mut edits);
        self.keep_absolute(&replaced, &freed, &mut edits, &mut growth, &mut left);
        if !edits.is_empty() {
            let declared = self.declared.iter().cloned();
            edits.extend(declared.map(|span| (span, Cow::Borrowed("utf-8"))));
            edits.sort_by_key(|(span, _)| span.start);
        }
        Plan {
            spotted: self,
            edits,
            changed,
            left,
        }
    }

    fn drops_base(&self) -> bool {
        let is_base = |what| what == Guarded::Base;
        self.options.drop_base && self.spots.guards.iter().any(|guard| is_base(guard.what))
    }

    fn answer<'a>(
        &self,
        spot: &Written,
        answers: &[Option<Answer<'a>>],
        candidates: &[Option<Answer<'a>>],
    ) -> Option<Answer<'a>> {
        let (resolved, answers) = match spot.among {
            Among::Links => (&self.links, answers),
            Among::Candidates => (&self.candidates, candidates),
            Among::Others => return None,
        };
        let link = resolved.as_ref()?.which[at(spot.reference)]?;
        *answers.get(at(link))?
    }

    /// Renames attributes that must have no effect any more. Returns the spots whose codebase is one of them.
    fn guarded(&self, replaced: &[bool], edits: &mut Vec<Edit<'_>>) -> Vec<Range<usize>> {
        let mut freed: Vec<Range<usize>> = Vec::new();
        // Those of one element ask the same: once for all of them.
        let mut known: [Option<(Range<usize>, bool)>; 2] = [None, None];
        for guard in &self.spots.guards {
            let is_codebase = guard.what == Guarded::Codebase;
            let is_wanted = match guard.what {
                Guarded::Base => self.options.drop_base,
                Guarded::Policy => self.options.drop_policy,
                Guarded::Content if !self.options.drop_integrity => false,
                Guarded::Content | Guarded::Codebase => {
                    let last = &mut known[usize::from(is_codebase)];
                    match last {
                        Some((spots, is_wanted)) if *spots == guard.spots => *is_wanted,
                        _ => {
                            let is_wanted = self.has_replaced(guard, replaced);
                            *last = Some((guard.spots.clone(), is_wanted));
                            if is_wanted && is_codebase {
                                freed.push(guard.spots.clone());
                            }
                            is_wanted
                        }
                    }
                }
            };
            if is_wanted {
                let name_at = at(guard.name_at);
                edits.push((name_at..name_at, Cow::Borrowed(guard.prefix)));
            }
        }
        freed
    }

    /// Whether an address was replaced on which an attribute of the same element has an effect.
    fn has_replaced(&self, guard: &Guard, replaced: &[bool]) -> bool {
        guard.spots.clone().any(|nth| {
            let is_below = || self.reference(&self.spots.written[nth]).within.is_some();
            replaced[nth] && (guard.what != Guarded::Codebase || is_below())
        })
    }

    /// Writes addresses in full that were not replaced, but would lead elsewhere.
    fn keep_absolute<'s>(
        &'s self,
        replaced: &[bool],
        freed: &[Range<usize>],
        edits: &mut Vec<Edit<'s>>,
        growth: &mut usize,
        left: &mut usize,
    ) {
        let mut moved = Moved::new(self);
        let mut keep = |nth: usize, is_free: bool| {
            let spot = &self.spots.written[nth];
            // Nobody knows whether a candidate is relative to the base.
            let is_candidate = spot.among == Among::Candidates;
            if replaced[nth] || spot.start > spot.end || is_candidate {
                return;
            }
            if moved.is_moved(spot, is_free)
                && let Some(address) = self.address(spot).and_then(Answer::of)
            {
                let edit = spot.edit(address);
                *growth += edit.1.len();
                if *growth > MAX_GROWTH {
                    *left += 1;
                } else {
                    edits.push(edit);
                }
            }
        };
        if self.drops_base() {
            let mut free = freed.iter().peekable();
            for nth in 0..self.spots.written.len() {
                while free.next_if(|spots| spots.end <= nth).is_some() {}
                keep(nth, free.peek().is_some_and(|spots| spots.contains(&nth)));
            }
        } else {
            for nth in freed.iter().cloned().flatten() {
                keep(nth, true);
            }
        }
    }

    fn of(&self, spot: &Written) -> (&References, Option<&Resolved>) {
        match spot.among {
            Among::Links => (&self.spots.links, self.links.as_ref()),
            Among::Others => (&self.spots.others, self.others.as_ref()),
            Among::Candidates => (&self.spots.candidates, self.candidates.as_ref()),
        }
    }

    fn reference(&self, spot: &Written) -> Reference<'_> {
        self.of(spot).0.get(at(spot.reference))
    }

    /// Where an address leads as the document has it.
    fn address(&self, spot: &Written) -> Option<&str> {
        let resolved = self.of(spot).1?;
        let link = resolved.which[at(spot.reference)]?;
        Some(resolved.links.get(at(link)).0)
    }
}

fn answers_of<A: AsRef<str>>(texts: &[Option<A>]) -> Vec<Option<Answer<'_>>> {
    let texts = texts.iter().map(Option::as_ref);
    texts
        .map(|text| text.and_then(|text| Answer::of(text.as_ref())))
        .collect()
}

/// What is to be written where, before it is.
pub struct Plan<'a> {
    spotted: &'a Spotted,
    edits: Vec<Edit<'a>>,
    /// How many addresses are replaced.
    pub changed: usize,
    /// How many are not; as in [`Spliced`].
    pub left: usize,
}

impl Plan<'_> {
    /// Whether anything is to change.
    #[must_use]
    pub fn has_edits(&self) -> bool {
        !self.edits.is_empty()
    }

    /// The length of the new document; `body` is what was given to be read.
    #[must_use]
    pub fn length(&self, body: &[u8]) -> usize {
        let mut length = 0;
        self.pieces(body, |piece| length += piece.len());
        length
    }

    /// Writes the new document, which is as long as `out`.
    pub fn write(&self, body: &[u8], out: &mut [u8]) {
        let mut at = 0;
        self.pieces(body, |piece| {
            out[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        });
    }

    fn pieces<'p>(&'p self, body: &'p [u8], mut each: impl FnMut(&'p [u8])) {
        let body = self.spotted.instead.as_deref().unwrap_or(body);
        if self.spotted.transcoded {
            each(MARK);
        }
        let mut written = 0;
        for (span, text) in &self.edits {
            // No two addresses are in one place; if they were, the first would count.
            if span.start >= written && span.end <= body.len() {
                each(&body[written..span.start]);
                each(text.as_bytes());
                written = span.end;
            }
        }
        each(&body[written..]);
    }
}

impl Written {
    /// What to write for a new address: with the fragment of the old one, unless it has its own.
    #[inline]
    fn edit<'a>(&self, answer: Answer<'a>) -> Edit<'a> {
        let is_plain = answer.is_plain && !answer.has_fragment;
        // Most are written as they are, and fragments mostly stay where they are.
        if is_plain && self.fragment.is_none() && self.semicolons == 0 {
            return (at(self.start)..at(self.end), Cow::Borrowed(answer.address));
        }
        self.spelled(answer)
    }

    #[inline(never)]
    fn spelled<'a>(&self, answer: Answer<'a>) -> Edit<'a> {
        let address = answer.address;
        let (end, text) = if answer.has_fragment {
            (self.whole_end, self.manner.written(address))
        } else if let Some(fragment) = &self.fragment {
            let whole = address.to_owned() + &escaped(fragment);
            let text = self.manner.written(&whole).into_owned();
            (self.whole_end, Cow::Owned(text))
        } else if answer.is_plain {
            (self.end, Cow::Borrowed(address))
        } else {
            (self.end, self.manner.written(address))
        };
        let text = match self.semicolons {
            0 => text,
            number => Cow::Owned(";".repeat(number.into()) + &text),
        };
        (at(self.start)..at(end), text)
    }
}

/// A fragment in ASCII, as browsers have it.
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

impl<'s> Moved<'s> {
    fn new(spotted: &'s Spotted) -> Self {
        Self {
            spotted,
            known: std::array::from_fn(|_| Vec::new()),
        }
    }

    fn is_moved(&mut self, spot: &Written, is_free: bool) -> bool {
        let place = usize::from(spot.among == Among::Links) * 2 + usize::from(is_free);
        let known = &mut self.known[place];
        if known.is_empty() {
            known.resize(self.spotted.of(spot).0.len(), None);
        }
        let spotted = self.spotted;
        *known[at(spot.reference)].get_or_insert_with(|| spotted.leads_elsewhere(spot, is_free))
    }
}

impl Spotted {
    fn leads_elsewhere(&self, spot: &Written, is_free: bool) -> bool {
        let Some(bases) = &self.bases else {
            return false;
        };
        let reference = self.reference(spot);
        let before = bases.led(bases.base.as_ref(), reference);
        let base = if self.drops_base() {
            &bases.own
        } else {
            &bases.base
        };
        let after = if is_free {
            bases.led_freely(base.as_ref(), reference)
        } else {
            bases.led(base.as_ref(), reference)
        };
        before != after
    }
}
