//! The text of a file, whether it is stored plain, as gzip (of any number of members) or as zstd.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::GzDecoder;

/// How much is read from the file at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// How a compressed file ends before its end. What came before was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The file ends inside a member or frame.
    Truncated,
    /// What is stored is not what was compressed: wrong checksum, or bytes that mean nothing.
    Corrupt,
    /// Bytes behind the last member that are neither a member nor padding.
    TrailingGarbage,
}

impl Damage {
    /// A word for counting by kind.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Corrupt => "corrupt",
            Self::TrailingGarbage => "trailing-garbage",
        }
    }
}

fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(b"\x1f\x8b")
}

/// A frame, or one of the 16 kinds of skippable frames that may come before it.
fn is_zstd(head: &[u8]) -> bool {
    matches!(
        head,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    )
}

/// Whether a file that begins so has to be decompressed.
#[must_use]
pub fn is_compressed(head: &[u8]) -> bool {
    is_gzip(head) || is_zstd(head)
}

/// The first bytes, which were looked at, and the rest of the file.
type Whole<R> = io::Chain<Cursor<Vec<u8>>, R>;
type Raw<R> = BufReader<Whole<R>>;

enum Text<R: Read> {
    /// Without a buffer: whoever reads text has one, and a second would cost a copy.
    Plain(Whole<R>),
    /// The decoder of the member that is being read; the file itself between members.
    Gzip(Option<Box<GzDecoder<Raw<R>>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Raw<R>>>),
    End,
}

/// Reads the text of a file. Damage ends it like the end of the file does, and can be asked for then.
pub struct Source<R: Read> {
    text: Text<R>,
    damage: Option<Damage>,
}

impl<R: Read> Source<R> {
    /// Looks at the first bytes to tell how the file is stored.
    pub fn new(mut file: R) -> io::Result<Self> {
        let mut magic = vec![0; 4];
        let mut filled = 0;
        while filled < magic.len() {
            match file.read(&mut magic[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        magic.truncate(filled);
        let (is_gzip, is_zstd) = (is_gzip(&magic), is_zstd(&magic));
        let whole = Cursor::new(magic).chain(file);
        let buffered = |whole| BufReader::with_capacity(BUFFER_BYTES, whole);
        let text = if is_gzip {
            Text::Gzip(Some(Box::new(GzDecoder::new(buffered(whole)))))
        } else if is_zstd {
            let decoder = zstd::stream::read::Decoder::with_buffer(buffered(whole))?;
            Text::Zstd(Box::new(decoder))
        } else {
            Text::Plain(whole)
        };
        Ok(Self { text, damage: None })
    }

    /// What ended the text early, once the end was read.
    #[must_use]
    pub fn damage(&self) -> Option<Damage> {
        self.damage
    }

    fn end(&mut self, damage: Option<Damage>) -> usize {
        self.text = Text::End;
        self.damage = damage;
        0
    }

    /// Goes on to the next gzip member; says whether there is one.
    fn next_member(&mut self) -> io::Result<bool> {
        let Text::Gzip(decoder) = &mut self.text else {
            return Ok(false);
        };
        let Some(finished) = decoder.take() else {
            return Ok(false);
        };
        let mut raw = finished.into_inner();
        // Tapes and some tools pad the end with NULs.
        loop {
            let buffer = raw.fill_buf()?;
            match buffer.iter().position(|&byte| byte != 0) {
                Some(start) => {
                    raw.consume(start);
                    break;
                }
                None if buffer.is_empty() => {
                    self.end(None);
                    return Ok(false);
                }
                None => {
                    let all = buffer.len();
                    raw.consume(all);
                }
            }
        }
        if raw.fill_buf()?.first() != Some(&0x1f) {
            self.end(Some(Damage::TrailingGarbage));
            return Ok(false);
        }
        *decoder = Some(Box::new(GzDecoder::new(raw)));
        Ok(true)
    }
}

/// Errors of the file are passed on; errors of its contents are damage.
fn damage_of(error: &io::Error) -> Option<Damage> {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Some(Damage::Truncated),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::Other => {
            Some(Damage::Corrupt)
        }
        _ => None,
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match &mut self.text {
                Text::Plain(whole) => return whole.read(buffer),
                Text::Gzip(Some(decoder)) => decoder.read(buffer),
                Text::Zstd(decoder) => decoder.read(buffer),
                Text::Gzip(None) | Text::End => return Ok(0),
            };
            match result {
                Ok(0) if buffer.is_empty() => return Ok(0),
                Ok(0) => {
                    if !self.next_member()? {
                        return Ok(0);
                    }
                }
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => match damage_of(&error) {
                    Some(damage) => return Ok(self.end(Some(damage))),
                    None => return Err(error),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn read(file: &[u8]) -> (Vec<u8>, Option<Damage>) {
        let mut source = Source::new(file).expect("memory");
        let mut text = Vec::new();
        source.read_to_end(&mut text).expect("memory");
        (text, source.damage())
    }

    #[test]
    fn plain_gzip_and_zstd_read_alike() {
        let text = b"a line\nanother\n".repeat(10_000);
        let (first, second) = text.split_at(77);
        let members = [gzip(first), gzip(second), gzip(b"")].concat();
        let frames = [
            zstd::encode_all(first, 3).expect("memory"),
            zstd::encode_all(second, 3).expect("memory"),
        ]
        .concat();
        for file in [
            &text,
            &members,
            &frames,
            &[members.clone(), vec![0; 999]].concat(),
        ] {
            assert_eq!(read(file), (text.clone(), None));
        }
        assert_eq!(read(b""), (Vec::new(), None));
        assert_eq!(read(b"\x1f"), (b"\x1f".to_vec(), None));
    }

    #[test]
    fn damage_is_told_and_what_came_before_is_kept() {
        let text = b"a line\nanother\n".repeat(1000);
        let whole = gzip(&text);
        let mut flipped = whole.clone();
        let crc = flipped.len() - 8;
        flipped[crc] ^= 1;
        assert_eq!(read(&flipped), (text.clone(), Some(Damage::Corrupt)));
        assert_eq!(
            read(&[&whole[..], b"rubbish"].concat()),
            (text.clone(), Some(Damage::TrailingGarbage))
        );
        for cut in [11, whole.len() / 2, whole.len() - 1] {
            let (before, damage) = read(&[&whole[..], &whole[..cut]].concat());
            assert_eq!(damage, Some(Damage::Truncated), "{cut}");
            assert!(before.starts_with(&text));
        }
        let frame = zstd::encode_all(&text[..], 3).expect("memory");
        let (_, damage) = read(&frame[..frame.len() - 3]);
        assert_eq!(damage, Some(Damage::Truncated));
    }
}
