//! The rows of a page: its captures in the format of pywb, oldest first.

use std::io::{self, Write};

use super::output::Output;
use super::random::Random;
use super::tables::{FIRST_YEAR, STATUSES, YEARS};

/// A page whose captures are written.
pub(super) struct Page<'a> {
    pub(super) key: &'a [u8],
    /// Its spellings in JSON form; captures have one or the other.
    pub(super) urls: &'a [&'a [u8]],
    pub(super) mime: &'a str,
}

/// Leap days are ignored: captures are not counted by day.
const YEAR_SECONDS: u32 = 365 * DAY_SECONDS;
const DAY_SECONDS: u32 = 86_400;
const MONTHS: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// One in this many captures is the same as the previous one. Our assumption: the papers do not count them.
const UNCHANGED: u64 = 4;

const BASE32: [u8; 32] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

pub(super) struct Rows<W: Write> {
    out: Output<W>,
    /// The cumulative share of captures up to each year, of 2^32.
    until_year: [u64; YEARS.len()],
    /// Month and day of each day of a year, as digits.
    days: Vec<[u8; 4]>,
    /// The capture times of the page, in seconds since the first year.
    moments: Vec<u32>,
    digest: [u8; 32],
}

impl<W: Write> Rows<W> {
    pub(super) fn new(out: Output<W>) -> Self {
        let all: u64 = YEARS.iter().map(|year| year.captures >> 8).sum();
        let mut so_far = 0;
        let until_year = YEARS.map(|year| {
            // A 256th, so that 32 more bits fit.
            so_far += year.captures >> 8;
            (so_far << 32) / all
        });
        let days = (1..)
            .zip(MONTHS)
            .flat_map(|(month, length)| (1..=length).map(move |day| (month, day)))
            .map(|(month, day)| {
                let [a, b] = two_digits(month);
                let [c, d] = two_digits(u32::from(day));
                [a, b, c, d]
            })
            .collect();
        Self {
            out,
            until_year,
            days,
            moments: Vec::new(),
            digest: [b'A'; 32],
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.out.finish()
    }

    /// Writes `count` rows with different times.
    pub(super) fn write(
        &mut self,
        page: &Page<'_>,
        count: u64,
        random: &mut Random,
    ) -> io::Result<()> {
        let mut moments = std::mem::take(&mut self.moments);
        moments.clear();
        moments.extend((0..count).map(|_| self.moment(random)));
        moments.sort_unstable();
        let mut earliest = 0;
        for (i, moment) in moments.iter().enumerate() {
            let moment = (*moment).max(earliest);
            earliest = moment + 1;
            if i == 0 || random.below(UNCHANGED) > 0 {
                self.change_digest(random);
            }
            self.row(page, moment, random)?;
        }
        self.moments = moments;
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation)] // 32 bits, a year's number, a year's seconds
    fn moment(&self, random: &mut Random) -> u32 {
        let bits = random.bits();
        let share = bits >> 32;
        let year = self.until_year.partition_point(|&until| until <= share);
        let second = ((bits & 0xffff_ffff) * u64::from(YEAR_SECONDS)) >> 32;
        year as u32 * YEAR_SECONDS + second as u32
    }

    #[allow(clippy::cast_possible_truncation)] // 5 bits
    fn change_digest(&mut self, random: &mut Random) {
        for part in self.digest.chunks_mut(12) {
            let mut bits = random.bits();
            for letter in part {
                *letter = BASE32[bits as usize & 31];
                bits >>= 5;
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)] // all are bounded where they are drawn
    fn row(&mut self, page: &Page<'_>, moment: u32, random: &mut Random) -> io::Result<()> {
        let bits = random.bits();
        let year = moment / YEAR_SECONDS;
        let day = moment % YEAR_SECONDS / DAY_SECONDS;
        let (status, mime) = kind(year, bits & 0xffff, page.mime);
        let url = match page.urls {
            [url] => url,
            urls => urls[random.below(urls.len() as u64) as usize],
        };
        let mut date = [0; 8];
        date[..2].copy_from_slice(&two_digits((FIRST_YEAR + year) / 100));
        date[2..4].copy_from_slice(&two_digits((FIRST_YEAR + year) % 100));
        date[4..].copy_from_slice(&self.days[day as usize]);
        let second = moment % DAY_SECONDS;
        let mut time = [0; 6];
        time[..2].copy_from_slice(&two_digits(second / 3600));
        time[2..4].copy_from_slice(&two_digits(second / 60 % 60));
        time[4..].copy_from_slice(&two_digits(second % 60));

        // Lengths from 10^2 to 10^6 bytes, log-uniform.
        let length = ((bits >> 16 & 0xffff) + 200) << (bits >> 32 & 3);
        let offset = bits >> 34;
        let line = self.out.line();
        line.extend_from_slice(page.key);
        line.push(b' ');
        line.extend_from_slice(&date);
        line.extend_from_slice(&time);
        line.extend_from_slice(b" {\"url\": \"");
        line.extend_from_slice(url);
        line.extend_from_slice(b"\", \"mime\": \"");
        line.extend_from_slice(mime.as_bytes());
        line.extend_from_slice(b"\", \"status\": \"");
        line.extend_from_slice(status);
        line.extend_from_slice(b"\", \"digest\": \"sha1:");
        line.extend_from_slice(&self.digest);
        line.extend_from_slice(b"\", \"length\": \"");
        push_number(length, line);
        line.extend_from_slice(b"\", \"offset\": \"");
        push_number(offset, line);
        line.extend_from_slice(b"\", \"filename\": \"CRAWL-");
        line.extend_from_slice(&date);
        line.push(b'-');
        for number in [bits >> 8, bits >> 24] {
            line.extend_from_slice(&two_digits((number % 100) as u32));
        }
        line.push(b'-');
        line.extend_from_slice(&two_digits((bits % 12) as u32));
        line.extend_from_slice(b".warc.gz\"}\n");
        self.out.end_line()
    }
}

/// Status and media type of a capture; errors and redirects are HTML, whatever the page is.
#[allow(clippy::cast_possible_truncation)] // a year's number
fn kind(year: u32, bits: u64, mime: &str) -> (&'static [u8], &str) {
    // Captures that had to be moved after the last year have its shares.
    let classes = YEARS[(year as usize).min(YEARS.len() - 1)].classes;
    let mut share = (bits * 10_000) >> 16;
    for (class, part) in classes.into_iter().enumerate() {
        if share < part {
            let status = STATUSES[class][usize::from(bits % 8 == 0)];
            return (status, if class == 0 { mime } else { "text/html" });
        }
        share -= part;
    }
    (b"-", "warc/revisit")
}

#[allow(clippy::cast_possible_truncation)] // a digit
fn two_digits(number: u32) -> [u8; 2] {
    [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]
}

#[allow(clippy::cast_possible_truncation)] // a digit
fn push_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = number;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}
