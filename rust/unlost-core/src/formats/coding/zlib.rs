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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the stream.
    Inside,
    /// Behind its end, where another member may begin.
    Behind,
    /// Behind its end and the first byte of what may be another member.
    HalfMagic,
    /// Behind all members: zeros and other rubbish, which every reader passes over.
    Rubbish,
}

pub struct Zlib {
    form: Form,
    stream: Decompress,
    place: Place,
    has_given: bool,
    room: Vec<u8>,
}

impl Zlib {
    pub fn new(form: Form) -> Self {
        Self {
            form,
            stream: form.stream(),
            place: Place::Inside,
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
        if self.place == Place::HalfMagic && !data.is_empty() {
            self.place = Place::Behind;
            joined = [&GZIP[..1], data].concat();
            data = &joined;
        }
        let mut is_full = false;
        while !data.is_empty() || is_full {
            if self.place != Place::Inside {
                let known = data.len().min(GZIP.len());
                let may_begin = self.is_gzip() && data[..known] == GZIP[..known];
                if self.place == Place::Rubbish || !may_begin {
                    self.place = Place::Rubbish;
                    return Ok(());
                }
                if known < GZIP.len() {
                    self.place = Place::HalfMagic;
                    return Ok(());
                }
                self.stream = self.form.stream();
                self.place = Place::Inside;
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
                if self.has_given || self.is_gzip() {
                    take(&self.room[..written]);
                }
                return Err(DAMAGED);
            };
            let is_over = status == Status::StreamEnd;
            if is_over {
                self.place = Place::Behind;
            }
            is_full = written == PIECE && !is_over;
            data = &data[read..];
            if written > 0 {
                self.has_given = true;
                if !take(&self.room[..written]) {
                    return Ok(());
                }
            } else if read == 0 && !is_over {
                return Err(DAMAGED); // it wants a dictionary, which nobody has
            }
        }
        Ok(())
    }

    pub fn end(&self) -> Result<(), Broken> {
        if self.place == Place::Inside {
            Err(CUT)
        } else {
            Ok(())
        }
    }
}
