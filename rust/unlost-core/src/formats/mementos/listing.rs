//! `TimeMap`s of archives, read straight into copies.

use std::borrow::Cow;

use super::address::{has_web_host, joined};
use super::{Draft, Mementos};
use crate::formats::linkformat::{self, Fault, Memento, TakesMementos, TimeMap};

/// How much text the addresses of one list may have. Links may be relative, and make much of little: what comes after
/// is left out, and counted.
pub const MAX_TEXT_BYTES: usize = 1 << 27;

struct Listing<'a, 'b> {
    draft: Draft<'a>,
    archive: u32,
    base: &'b [u8],
}

impl<'a> TakesMementos<'a> for Listing<'a, '_> {
    fn take(&mut self, memento: Memento<'a>) -> Result<(), Fault> {
        if self.draft.text_bytes() >= MAX_TEXT_BYTES {
            return Err(Fault::TooLarge);
        }
        let mut address = match memento.uri {
            Cow::Borrowed(uri) => Cow::Borrowed(uri.as_bytes()),
            Cow::Owned(uri) => Cow::Owned(uri.into_bytes()),
        };
        if !has_web_host(&address) {
            address = Cow::Owned(joined(self.base, &address));
            if !has_web_host(&address) {
                return Err(Fault::BadUri);
            }
        }
        let added = self.draft.add(&memento.datetime, self.archive, address);
        added.map_err(|_| Fault::TooLarge)
    }
}

/// Reads a whole `TimeMap` of an archive. Never fails: what cannot be read is counted. Links are relative to `base`, an
/// address with a host; a copy whose address is not one of the web is a fault.
#[must_use]
pub fn read<'a>(text: &'a [u8], archive: &str, base: &str) -> TimeMap<'a, Mementos> {
    let mut draft = Draft::default();
    let archive = draft.archive(archive);
    let found = linkformat::read_into(
        text,
        Listing {
            draft,
            archive,
            base: base.as_bytes(),
        },
    );
    TimeMap {
        original: found.original,
        itself: found.itself,
        timegate: found.timegate,
        timemaps: found.timemaps,
        mementos: found.mementos.draft.finish(),
        others: found.others,
        faults: found.faults,
    }
}
