//! Parses `TimeMap`s of archives directly into mementos.

use std::borrow::Cow;

use super::url::{has_web_host, resolve};
use super::{MementoListBuilder, Mementos};
use crate::memento::link_format::{self, Fault, Memento, MementoSink, TimeMap};

/// The maximum total length of the URLs of one `TimeMap`. Our limit, since relative links can expand a small text to a
/// large one. Mementos beyond it are dropped and counted.
pub const MAX_TEXT_BYTES: usize = 1 << 27;

struct Listing<'a, 'b> {
    builder: MementoListBuilder<'a>,
    archive: u32,
    base: &'b [u8],
}

impl<'a> MementoSink<'a> for Listing<'a, '_> {
    fn take(&mut self, memento: Memento<'a>) -> Result<(), Fault> {
        if self.builder.text_bytes() >= MAX_TEXT_BYTES {
            return Err(Fault::TooLarge);
        }
        let mut url = match memento.uri {
            Cow::Borrowed(uri) => Cow::Borrowed(uri.as_bytes()),
            Cow::Owned(uri) => Cow::Owned(uri.into_bytes()),
        };
        if !has_web_host(&url) {
            url = Cow::Owned(resolve(self.base, &url));
            if !has_web_host(&url) {
                return Err(Fault::BadUri);
            }
        }
        let added = self.builder.add(&memento.datetime, self.archive, url);
        added.map_err(|_| Fault::TooLarge)
    }
}

/// Parses the `TimeMap` of an archive. Never fails: errors are counted. Links are relative to `base`, a URL with a
/// host; a memento whose URL is not a web URL is a fault.
#[must_use]
pub fn read<'a>(text: &'a [u8], archive: &str, base: &str) -> TimeMap<'a, Mementos> {
    let mut builder = MementoListBuilder::default();
    let archive = builder.archive(archive);
    let timemap = link_format::read_into(
        text,
        Listing {
            builder,
            archive,
            base: base.as_bytes(),
        },
    );
    TimeMap {
        original: timemap.original,
        self_link: timemap.self_link,
        timegate: timemap.timegate,
        timemaps: timemap.timemaps,
        mementos: timemap.mementos.builder.finish(),
        other_links: timemap.other_links,
        faults: timemap.faults,
    }
}
