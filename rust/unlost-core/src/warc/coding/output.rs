//! The end of the decoder chain: counts and hashes the output, and retains its first bytes.

use sha1::{Digest, Sha1};

use super::{Body, NotDecoded};

/// What to compute for a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyOptions {
    /// Whether to compute its SHA-1.
    pub with_digest: bool,
    /// How many of its first bytes to return.
    pub head: usize,
    /// The maximum decoded length in bytes.
    pub limit: u64,
}

impl BodyOptions {
    pub(super) fn without_limit(self) -> Self {
        Self {
            limit: u64::MAX,
            ..self
        }
    }
}

pub struct Output {
    hash: Option<Sha1>,
    len: u64,
    head: Vec<u8>,
    options: BodyOptions,
    is_over: bool,
}

impl Output {
    pub fn new(options: BodyOptions) -> Self {
        Self {
            hash: options.with_digest.then(Sha1::new),
            len: 0,
            head: Vec::new(),
            options,
            is_over: false,
        }
    }

    pub fn feed(&mut self, data: &[u8]) {
        if self.is_over || data.is_empty() {
            return;
        }
        let left = usize::try_from(self.options.limit - self.len).unwrap_or(usize::MAX);
        self.is_over = data.len() > left;
        let data = &data[..data.len().min(left)];
        self.len += data.len() as u64;
        if let Some(hash) = &mut self.hash {
            hash.update(data);
        }
        let room = self.options.head.saturating_sub(self.head.len());
        self.head.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// Whether there was more output than the limit.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn head_len(&self) -> u64 {
        self.head.len() as u64
    }

    pub fn into_body(self, is_broken: bool, not_decoded: Option<NotDecoded>) -> Body {
        Body {
            digest: self.hash.map(|hash| hash.finalize().into()),
            len: self.len,
            head: self.head,
            is_broken,
            not_decoded,
        }
    }
}
