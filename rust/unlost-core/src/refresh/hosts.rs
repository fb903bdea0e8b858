//! The hosts of a log: numbers for names, what servers call themselves, how often tags were sent.

use std::collections::HashMap;

/// What is known of a host beside its pairs.
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
    /// What its `Server` header said last, up to the version; a number of `Hosts::servers`.
    pub server: Option<u32>,
}

/// How often a host sent an indicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// At every successful visit.
    Always,
    /// At some.
    Sometimes,
    /// At none.
    Never,
}

impl Host {
    /// How often it sent a tag.
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
    /// The host of the last address: logs are often sorted.
    last: Option<(Box<[u8]>, u32)>,
}

impl Hosts {
    /// The number of the host of an address; None if it has none.
    pub(super) fn number(&mut self, uri: &[u8]) -> Option<u32> {
        let authority = authority(uri)?;
        if let Some((text, number)) = &self.last {
            if **text == *authority {
                return Some(*number);
            }
        }
        let name = String::from_utf8_lossy(authority).to_ascii_lowercase();
        let number = if let Some(number) = self.numbers.get(name.as_str()) {
            *number
        } else {
            let number = u32::try_from(self.all.len()).ok()?;
            let name = name.into_boxed_str();
            self.all.push(Host {
                name: name.clone(),
                ..Host::default()
            });
            self.numbers.insert(name, number);
            number
        };
        self.last = Some((authority.into(), number));
        Some(number)
    }

    /// Notes what a server calls itself.
    pub(super) fn note_server(&mut self, host: u32, header: &[u8]) {
        const LONGEST: usize = 40; // bytes: what is longer is no product's name
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
        self.all[host as usize].server = Some(number);
    }
}

/// Host and port of an address of the web, as they stand there, without a user's name.
fn authority(uri: &[u8]) -> Option<&[u8]> {
    let scheme = uri.iter().position(|&byte| byte == b':')?;
    if !matches!(
        uri[..scheme].to_ascii_lowercase().as_slice(),
        b"http" | b"https"
    ) {
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
