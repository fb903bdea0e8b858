//! Deflate in one of its three coats; of gzip, any number of members behind each other.

use flate2::{Decompress, FlushDecompress, Status};

use super::PIECE;
use super::unpacker::{Broken, CUT, DAMAGED, Take};

const GZIP: [u8; 2] = [0x1f, 0x8b];

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Gzip,
    Zlib,
    Raw,
}

impl Form {
    fn stream(self) -> Decompress {
        match self {
            Self::Gzip => Decompress::new_gzip(15),
            Self::Zlib => Decompress::new(true),
            Self::Raw => Decompress::new(false),
        }
    }
}

pub struct Zlib {
    form: Form,
    stream: Decompress,
    is_over: bool,
    /// Whether only rubbish comes from here on.
    is_behind: bool,
    /// The first byte of a member, if the other one is to come.
    has_half_magic: bool,
    has_given: bool,
    room: Vec<u8>,
}

impl Zlib {
    pub fn new(form: Form) -> Self {
        Self {
            form,
            stream: form.stream(),
            is_over: false,
            is_behind: false,
            has_half_magic: false,
            has_given: false,
            room: vec![0; PIECE],
        }
    }

    pub fn is_gzip(&self) -> bool {
        self.form == Form::Gzip
    }

    pub fn feed(&mut self, data: &[u8], take: &mut Take) -> Result<(), Broken> {
        let joined;
        let mut data = data;
        if self.has_half_magic && !data.is_empty() {
            self.has_half_magic = false;
            joined = [&GZIP[..1], data].concat();
            data = &joined;
        }
        let mut is_full = false;
        while !data.is_empty() || is_full {
            if self.is_over {
                let known = data.len().min(GZIP.len());
                if !self.is_gzip() || self.is_behind || data[..known] != GZIP[..known] {
                    self.is_behind = true; // zeros and other rubbish, which every reader passes over
                    return Ok(());
                }
                if known < GZIP.len() {
                    self.has_half_magic = true;
                    return Ok(());
                }
                self.stream = self.form.stream();
                self.is_over = false;
            }
            // What has a header and then means nothing is no deflate, unless something came before: so the first byte
            // of text is waited for in the smallest steps.
            let is_doubtful = self.form == Form::Zlib && !self.has_given;
            let input = if is_doubtful {
                &data[..data.len().min(1)]
            } else {
                data
            };
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            let outcome = self
                .stream
                .decompress(input, &mut self.room, FlushDecompress::None);
            let read = usize::try_from(self.stream.total_in() - read).unwrap_or(0);
            let written = usize::try_from(self.stream.total_out() - written).unwrap_or(0);
            let Ok(status) = outcome else {
                // Of what has no header, that it is deflate at all is believed once a piece of it came without damage.
                if self.has_given {
                    take(&self.room[..written]);
                }
                return Err(DAMAGED);
            };
            self.is_over = status == Status::StreamEnd;
            is_full = written == PIECE && !self.is_over;
            data = &data[read..];
            if written > 0 {
                self.has_given = true;
                if !take(&self.room[..written]) {
                    return Ok(());
                }
            } else if read == 0 && !self.is_over {
                return Err(DAMAGED); // it wants a dictionary, which nobody has
            }
        }
        Ok(())
    }

    pub fn end(&self) -> Result<(), Broken> {
        if self.is_over { Ok(()) } else { Err(CUT) }
    }
}
