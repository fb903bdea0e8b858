//! The hosts of a log: numbers for names, server software, and how often tags were sent.

use std::collections::HashMap;

/// A host without its pairs.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Its name and port, in lower case.
    pub name: Box<str>,
    /// Successful visits.
    pub visits: u32,
    /// Those of them that had a tag.
    pub tagged: u32,
    /// Those of them that had a date.
    pub dated: u32,
    /// Its last `Server` header, up to the version; an index of `Hosts::servers`.
    pub server: Option<u32>,
}

/// How often a host sent an indicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// At every successful visit.
    Always,
    /// At some successful visits.
    Sometimes,
    /// At no successful visit.
    Never,
}

impl Host {
    /// How often the host sent a tag.
    #[must_use]
    pub fn tags(&self) -> Presence {
        match self.tagged {
            0 => Presence::Never,
            tagged if tagged == self.visits => Presence::Always,
            _ => Presence::Sometimes,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Hosts {
    pub all: Vec<Host>,
    pub servers: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    server_numbers: HashMap<Box<str>, u32>,
    /// The host of the last URL: logs are often sorted.
    last: Option<u32>,
    last_text: Vec<u8>,
    /// The server software of the last visit: most hosts use few kinds.
    last_server: Option<u32>,
    last_header: Vec<u8>,
    name: String,
}

impl Hosts {
    /// The number of a host; None if there are too many.
    pub(super) fn number(&mut self, authority: &[u8]) -> Option<u32> {
        if self.last.is_some() && self.last_text == authority {
            return self.last;
        }
        self.name.clear();
        self.name.push_str(&String::from_utf8_lossy(authority));
        self.name.make_ascii_lowercase();
        let number = if let Some(number) = self.numbers.get(self.name.as_str()) {
            *number
        } else {
            let number = u32::try_from(self.all.len()).ok()?;
            let name: Box<str> = self.name.as_str().into();
            self.all.push(Host {
                name: name.clone(),
                ..Host::default()
            });
            self.numbers.insert(name, number);
            number
        };
        self.last_text.clear();
        self.last_text.extend_from_slice(authority);
        self.last = Some(number);
        self.last
    }

    /// Records the server software of a host.
    pub(super) fn note_server(&mut self, host: u32, header: &[u8]) {
        const LONGEST: usize = 40; // bytes; our limit for the name of a product
        if self.last_server.is_some() && self.last_header == header {
            self.all[host as usize].server = self.last_server;
            return;
        }
        let end = header
            .iter()
            .position(|byte| matches!(byte, b'/' | b' ' | b'('))
            .unwrap_or(header.len());
        let name = String::from_utf8_lossy(&header[..end.min(LONGEST)]);
        let number = if let Some(number) = self.server_numbers.get(name.as_ref()) {
            *number
        } else {
            let number = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
            self.servers.push(name.as_ref().into());
            self.server_numbers.insert(name.as_ref().into(), number);
            number
        };
        self.last_header.clear();
        self.last_header.extend_from_slice(header);
        self.last_server = Some(number);
        self.all[host as usize].server = self.last_server;
    }
}

/// Host and port of a web URL, verbatim, without userinfo.
pub(super) fn authority(uri: &[u8]) -> Option<&[u8]> {
    let scheme = uri.iter().position(|&byte| byte == b':')?;
    let name = &uri[..scheme];
    if !name.eq_ignore_ascii_case(b"https") && !name.eq_ignore_ascii_case(b"http") {
        return None;
    }
    let rest = uri[scheme + 1..].strip_prefix(b"//")?;
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
        .unwrap_or(rest.len());
    let whole = &rest[..end];
    let name = whole
        .iter()
        .rposition(|&byte| byte == b'@')
        .map_or(whole, |at| &whole[at + 1..]);
    (!name.is_empty()).then_some(name)
}
