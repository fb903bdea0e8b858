//! The text of a file that is stored plain, as gzip (any number of members) or as zstd.

use std::io::{self, Cursor, Read};

use crate::warc::gzip::{self, Inflater, Start, Step};
use crate::warc::window::Window;
use crate::warc::zstd::FrameDecoder;

/// The maximum window of a zstd frame: 128 MiB, the largest that the `zstd` command decompresses without `--long`.
const ZSTD_WINDOW_LOG: u32 = 27;

/// How a compressed file is damaged. The text before the damage was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The file ends inside a member or frame.
    Truncated,
    /// The checksum is wrong, or the compressed data is invalid.
    Corrupt,
    /// Bytes after the last member that are neither a member nor padding.
    TrailingGarbage,
}

impl Damage {
    /// The error code, used for counting.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Corrupt => "corrupt",
            Self::TrailingGarbage => "trailing-garbage",
        }
    }

    /// Whether text is missing. Before trailing garbage it is complete.
    #[must_use]
    pub fn cuts_text(self) -> bool {
        self != Self::TrailingGarbage
    }
}

fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(b"\x1f\x8b")
}

/// A frame, or one of the 16 kinds of skippable frames that may precede it.
fn is_zstd(head: &[u8]) -> bool {
    matches!(
        head,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    )
}

/// Whether a file that begins like this is compressed.
#[must_use]
pub fn is_compressed(head: &[u8]) -> bool {
    is_gzip(head) || is_zstd(head)
}

/// The first bytes, which were inspected, and the rest of the file.
type FullInput<R> = io::Chain<Cursor<Vec<u8>>, R>;

enum Coding {
    Gzip(Box<Inflater>),
    Zstd(Box<FrameDecoder>),
}

struct Compressed<R> {
    coding: Coding,
    window: Window<FullInput<R>>,
    /// Whether a member or frame is being read.
    is_open: bool,
}

enum Text<R> {
    /// Unbuffered: the readers have their own buffers.
    Plain(FullInput<R>),
    Compressed(Compressed<R>),
    End,
}

/// Reads the text of a file. Damage ends the text like the end of the file, and is reported by [`Source::damage`].
pub struct Source<R: Read> {
    text: Text<R>,
    damage: Option<Damage>,
}

impl<R: Read> Source<R> {
    /// Inspects the first bytes to determine how the file is stored.
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
        let coding = if is_gzip {
            Coding::Gzip(Box::new(Inflater::new()))
        } else if is_zstd {
            Coding::Zstd(Box::new(FrameDecoder::new(&[], ZSTD_WINDOW_LOG)?))
        } else {
            return Ok(Self {
                text: Text::Plain(whole),
                damage: None,
            });
        };
        let window = Window::new(whole, 0);
        Ok(Self {
            text: Text::Compressed(Compressed {
                coding,
                window,
                is_open: false,
            }),
            damage: None,
        })
    }

    /// Whether reading includes inflating.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        !matches!(self.text, Text::Plain(_))
    }

    /// What truncated the text. Valid once the end was read.
    #[must_use]
    pub fn damage(&self) -> Option<Damage> {
        self.damage
    }
}

impl<R: Read> Compressed<R> {
    /// A piece of text, or the way the text ends.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Result<usize, Option<Damage>>> {
        loop {
            // The window is never moved back here.
            self.window.retain_from(self.window.offset());
            if !self.is_open {
                if let Err(end) = self.begin()? {
                    return Ok(Err(end));
                }
                self.is_open = true;
            }
            let step = match &mut self.coding {
                Coding::Gzip(inflater) => inflater.step(&mut self.window, buffer)?,
                Coding::Zstd(unpacker) => unpacker.step(&mut self.window, buffer)?,
            };
            match step {
                Step::Text(0) => {}
                Step::Text(written) => return Ok(Ok(written)),
                Step::End => self.is_open = false,
                Step::Damage(gzip::Damage::Truncated) => {
                    return Ok(Err(Some(Damage::Truncated)));
                }
                Step::Damage(_) => return Ok(Err(Some(Damage::Corrupt))),
            }
        }
    }

    /// Begins the next member or frame, or returns how the file ends.
    fn begin(&mut self) -> io::Result<Result<(), Option<Damage>>> {
        let is_first = self.window.offset() == 0;
        // Tapes and some tools pad the end with NULs.
        loop {
            let bytes = self.window.peek(1)?;
            let padding = bytes.iter().take_while(|&&byte| byte == 0).count();
            if bytes.is_empty() {
                return Ok(Err(None));
            }
            if padding == 0 {
                break;
            }
            self.window.consume(padding);
            self.window.retain_from(self.window.offset());
        }
        let start = match &mut self.coding {
            Coding::Gzip(inflater) => inflater.begin(&mut self.window)?,
            Coding::Zstd(unpacker) => unpacker.begin(&mut self.window)?,
        };
        Ok(match start {
            Start::Header(_) => Ok(()),
            Start::Truncated => Err(Some(Damage::Truncated)),
            // Skippable frames may have been the last ones.
            Start::Other if self.window.peek(1)?.is_empty() => Err(None),
            Start::Other if is_first => Err(Some(Damage::Corrupt)),
            Start::Other => Err(Some(Damage::TrailingGarbage)),
        })
    }
}

impl<R: Read> Read for Source<R> {
    /// I/O errors are passed on; errors in the content are damage.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let end = match &mut self.text {
            Text::Plain(whole) => return whole.read(buffer),
            Text::Compressed(compressed) => match compressed.read(buffer)? {
                Ok(written) => return Ok(written),
                Err(end) => end,
            },
            Text::End => return Ok(0),
        };
        self.text = Text::End;
        self.damage = end;
        Ok(0)
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
    fn plain_gzip_and_zstd_give_the_same_text() {
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
    fn damage_is_reported_and_text_before_it_is_returned() {
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
        let (before, damage) = read(&[&frame[..], b"rubbish"].concat());
        assert_eq!(damage, Some(Damage::TrailingGarbage));
        assert_eq!(before, text);
    }

    #[test]
    fn text_before_damage_is_returned_to_the_last_byte() {
        // A stored block of deflate, or a raw one of zstd, then one of an invalid type.
        let deflated = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\0\x03\0\xfc\xffabc\x07rest";
        assert_eq!(read(deflated), (b"abc".to_vec(), Some(Damage::Corrupt)));
        let frame = b"\x28\xb5\x2f\xfd\0\0\x18\0\0abc\x06\0\0rest";
        assert_eq!(read(frame), (b"abc".to_vec(), Some(Damage::Corrupt)));
        // With any output buffer size.
        for file in [&deflated[..], &deflated[..18], &frame[..], &frame[..12]] {
            let mut source = Source::new(file).expect("memory");
            let mut text = Vec::new();
            let mut room = [0; 2];
            while let read @ 1.. = source.read(&mut room).expect("memory") {
                text.extend_from_slice(&room[..read]);
            }
            assert_eq!(text, b"abc");
            assert!(source.damage().is_some());
        }
    }
}
