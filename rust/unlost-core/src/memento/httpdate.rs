//! Parses dates of HTTP headers and link-format, including malformed ones that archives produce, to 14 digits in UTC.

/// A date as `YYYYMMDDhhmmss`, in ASCII digits.
pub type Digits = [u8; 14];

const MONTHS: [&[u8; 3]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// Parses `Mon, 10 Feb 2014 00:00:01 GMT`. The weekday is ignored and may be missing, days may have one digit, dashes
/// may replace spaces, months may be spelled out, and the zone may be missing (UTC) or an offset. 14 digits are
/// accepted too. A leap second becomes the second before it.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Digits> {
    let text = text.trim_ascii();
    if text.len() == 14 && text.iter().all(u8::is_ascii_digit) {
        return from_digits(text);
    }
    if let Some(digits) = parse_canonical(text) {
        return Some(digits);
    }
    let mut rest = text;
    let weekday = take_while(&mut rest, u8::is_ascii_alphabetic);
    if !weekday.is_empty() {
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
    }
    let day = number(take_while(&mut rest, u8::is_ascii_digit), 1, 2)?;
    separator(&mut rest)?;
    let name = take_while(&mut rest, u8::is_ascii_alphabetic);
    let begin = name.get(..3).filter(|_| name.len() <= 9)?;
    let month = MONTHS
        .iter()
        .position(|month| begin.eq_ignore_ascii_case(&month[..]))?;
    separator(&mut rest)?;
    let year = number(take_while(&mut rest, u8::is_ascii_digit), 4, 4)?;
    let clock = rest.trim_ascii_start();
    if clock.len() == rest.len() || clock.len() < 8 || clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let moment = DateTime {
        year,
        month: u32::try_from(month).ok()? + 1,
        day,
        hour: number(&clock[..2], 2, 2)?,
        minute: number(&clock[3..5], 2, 2)?,
        second: number(&clock[6..8], 2, 2)?,
    };
    moment
        .checked()?
        .minus_minutes(offset(clock[8..].trim_ascii_start())?)
        .map(DateTime::digits)
}

/// Parses an ISO 8601 date: `2014-02-10T00:00:01Z`. A space may replace the `T`. Fractions of seconds are dropped.
/// Seconds, the time of day and the zone (UTC) may be missing; the zone may be an offset.
#[must_use]
pub fn parse_iso(text: &[u8]) -> Option<Digits> {
    let mut rest = text.trim_ascii();
    let year = number(take_while(&mut rest, u8::is_ascii_digit), 4, 4)?;
    let month = two_digits(b'-', &mut rest)?;
    let day = two_digits(b'-', &mut rest)?;
    let (mut hour, mut minute, mut second) = (0, 0, 0);
    let mut zone = 0;
    if let Some((b'T' | b't' | b' ', time)) = rest.split_first() {
        rest = time;
        hour = number(take_while(&mut rest, u8::is_ascii_digit), 2, 2)?;
        minute = two_digits(b':', &mut rest)?;
        if rest.starts_with(b":") {
            second = two_digits(b':', &mut rest)?;
            if let Some(fraction) = rest.strip_prefix(b".") {
                rest = fraction;
                number(take_while(&mut rest, u8::is_ascii_digit), 1, 9)?;
            }
        }
        zone = offset(rest.trim_ascii_start())?;
    } else if !rest.is_empty() {
        return None;
    }
    let moment = DateTime {
        year,
        month,
        day,
        hour,
        minute,
        second,
    };
    moment.checked()?.minus_minutes(zone).map(DateTime::digits)
}

/// Two digits after a separator.
fn two_digits(separator: u8, rest: &mut &[u8]) -> Option<u32> {
    *rest = rest.strip_prefix(&[separator])?;
    number(take_while(rest, u8::is_ascii_digit), 2, 2)
}

/// Parses a date in the standard form, which almost all have, in a quarter of the time; None for all others.
fn parse_canonical(text: &[u8]) -> Option<Digits> {
    let text: &[u8; 29] = text.try_into().ok()?;
    let is_plain = text[..3].iter().all(u8::is_ascii_alphabetic)
        && text[3..5] == *b", "
        && (text[7], text[11], text[16]) == (b' ', b' ', b' ')
        && (text[19], text[22]) == (b':', b':')
        && text[25..] == *b" GMT";
    if !is_plain {
        return None;
    }
    let month = MONTHS
        .iter()
        .position(|month| text[8..11].eq_ignore_ascii_case(&month[..]))?;
    let month = u8::try_from(month).ok()? + 1;
    let mut out = [b'0'; 14];
    out[..4].copy_from_slice(&text[12..16]);
    out[4] += month / 10;
    out[5] += month % 10;
    for (at, from) in [(6, 5), (8, 17), (10, 20), (12, 23)] {
        out[at..at + 2].copy_from_slice(&text[from..from + 2]);
    }
    from_digits(&out)
}

/// Parses 14 digits that are a valid date.
#[must_use]
pub fn from_digits(text: &[u8]) -> Option<Digits> {
    if text.len() != 14 {
        return None;
    }
    let moment = DateTime {
        year: number(&text[..4], 4, 4)?,
        month: number(&text[4..6], 2, 2)?,
        day: number(&text[6..8], 2, 2)?,
        hour: number(&text[8..10], 2, 2)?,
        minute: number(&text[10..12], 2, 2)?,
        second: number(&text[12..], 2, 2)?,
    };
    Some(moment.checked()?.digits())
}

/// Formats a date as `Mon, 10 Feb 2014 00:00:01 GMT`.
#[must_use]
pub fn to_http(digits: &Digits) -> [u8; 29] {
    const DAYS: &[u8; 21] = b"ThuFriSatSunMonTueWed"; // the first day of 1970 was a Thursday
    const NAMES: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let moment = DateTime::of(digits);
    let day = usize::try_from(moment.days().rem_euclid(7)).unwrap_or(0) * 3;
    let month = (moment.month.clamp(1, 12) - 1) as usize * 3;
    out[..3].copy_from_slice(&DAYS[day..day + 3]);
    out[5..7].copy_from_slice(&digits[6..8]);
    out[8..11].copy_from_slice(&NAMES[month..month + 3]);
    out[12..16].copy_from_slice(&digits[..4]);
    out[17..19].copy_from_slice(&digits[8..10]);
    out[20..22].copy_from_slice(&digits[10..12]);
    out[23..25].copy_from_slice(&digits[12..]);
    out
}

/// Formats a date as `2014-02-10T00:00:01Z`.
#[must_use]
pub fn to_iso(digits: &Digits) -> [u8; 20] {
    let mut out = *b"1970-01-01T00:00:00Z";
    out[..4].copy_from_slice(&digits[..4]);
    for (at, from) in [(5, 4), (8, 6), (11, 8), (14, 10), (17, 12)] {
        out[at..at + 2].copy_from_slice(&digits[from..from + 2]);
    }
    out
}

/// Seconds since 1970.
#[must_use]
pub fn to_seconds(digits: &Digits) -> i64 {
    let moment = DateTime::of(digits);
    let of_day = moment.hour * 3600 + moment.minute * 60 + moment.second;
    moment.days() * 86_400 + i64::from(of_day)
}

fn take_while<'a>(rest: &mut &'a [u8], belongs: fn(&u8) -> bool) -> &'a [u8] {
    let end = rest.iter().take_while(|&byte| belongs(byte)).count();
    let (taken, after) = rest.split_at(end);
    *rest = after;
    taken
}

fn separator(rest: &mut &[u8]) -> Option<()> {
    let gap = take_while(rest, |byte| byte.is_ascii_whitespace() || *byte == b'-');
    (!gap.is_empty()).then_some(())
}

fn number(digits: &[u8], at_least: usize, at_most: usize) -> Option<u32> {
    if digits.len() < at_least || digits.len() > at_most {
        return None;
    }
    digits.iter().try_fold(0, |value, &byte| {
        byte.is_ascii_digit()
            .then(|| value * 10 + u32::from(byte - b'0'))
    })
}

/// The offset of a zone from UTC in minutes.
fn offset(zone: &[u8]) -> Option<i64> {
    let known: [&[u8]; 5] = [b"", b"gmt", b"utc", b"ut", b"z"];
    if known.iter().any(|name| zone.eq_ignore_ascii_case(name)) {
        return Some(0);
    }
    let (&sign, digits) = zone.split_first()?;
    let (hours, minutes) = match digits.len() {
        4 => (&digits[..2], &digits[2..]),
        5 if digits[2] == b':' => (&digits[..2], &digits[3..]),
        _ => return None,
    };
    let (hours, minutes) = (number(hours, 2, 2)?, number(minutes, 2, 2)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let ahead = i64::from(hours * 60 + minutes);
    match sign {
        b'+' => Some(ahead),
        b'-' => Some(-ahead),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct DateTime {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

impl DateTime {
    /// The digits must be a valid date.
    fn of(digits: &Digits) -> Self {
        let value = |from: usize, to: usize| {
            digits[from..to].iter().fold(0, |value, &byte| {
                value * 10 + u32::from(byte.wrapping_sub(b'0'))
            })
        };
        Self {
            year: value(0, 4),
            month: value(4, 6),
            day: value(6, 8),
            hour: value(8, 10),
            minute: value(10, 12),
            second: value(12, 14),
        }
    }

    /// Days since 1970. A year is counted from March, so that the leap day is its last.
    fn days(self) -> i64 {
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        let year = if month <= 2 { year - 1 } else { year };
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(self.day) - 1;
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
            - 719_468
    }

    fn checked(self) -> Option<Self> {
        let sound = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in(self.year, self.month)).contains(&self.day)
            && self.hour <= 23
            && self.minute <= 59
            && self.second <= 60;
        sound.then_some(Self {
            second: self.second.min(59),
            ..self
        })
    }

    /// The offset is less than a day, so that at most one month boundary is crossed.
    fn minus_minutes(self, minutes: i64) -> Option<Self> {
        let total = i64::from(self.hour * 60 + self.minute) - minutes;
        let of_day = u32::try_from(total.rem_euclid(24 * 60)).ok()?;
        let mut moved = Self {
            hour: of_day / 60,
            minute: of_day % 60,
            ..self
        };
        match total.div_euclid(24 * 60) {
            0 => {}
            1 => moved.step_forward(),
            _ => moved.step_back(),
        }
        (1..=9999).contains(&moved.year).then_some(moved)
    }

    fn step_forward(&mut self) {
        self.day += 1;
        if self.day > days_in(self.year, self.month) {
            (self.day, self.month) = (1, self.month + 1);
        }
        if self.month > 12 {
            (self.month, self.year) = (1, self.year + 1);
        }
    }

    fn step_back(&mut self) {
        self.day -= 1;
        if self.day == 0 {
            self.month -= 1;
            if self.month == 0 {
                (self.month, self.year) = (12, self.year - 1);
            }
            self.day = days_in(self.year, self.month);
        }
    }

    fn digits(self) -> Digits {
        let mut out = [b'0'; 14];
        let fields = [
            (self.year / 100, 0),
            (self.year % 100, 2),
            (self.month, 4),
            (self.day, 6),
            (self.hour, 8),
            (self.minute, 10),
            (self.second, 12),
        ];
        for (value, at) in fields {
            // All values are below 100.
            out[at] = b'0' + u8::try_from(value / 10 % 10).unwrap_or(0);
            out[at + 1] = b'0' + u8::try_from(value % 10).unwrap_or(0);
        }
        out
    }
}

fn days_in(year: u32, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Option<String> {
        parse(text.as_bytes()).map(|digits| String::from_utf8_lossy(&digits).into_owned())
    }

    #[test]
    fn malformed_dates_are_parsed() {
        for text in [
            "Mon, 10 Feb 2014 00:00:01 GMT",
            "Fri 10 Feb 2014 00:00:01 utc",
            "10-Feb-2014 00:00:01",
            "Monday, 10 February 2014 01:00:01 +0100",
            "Sun, 9 Feb 2014 23:30:01 -00:30",
            "20140210000001",
        ] {
            assert_eq!(
                parse_text(text).as_deref(),
                Some("20140210000001"),
                "{text}"
            );
        }
    }

    #[test]
    fn iso_dates_are_parsed() {
        for text in [
            "2014-02-10T00:00:01Z",
            " 2014-02-10 00:00:01 ",
            "2014-02-10T00:00:01.123456789Z",
            "2014-02-10T01:00:01+01:00",
            "2014-02-09t23:30:01.0-0030",
        ] {
            let digits = parse_iso(text.as_bytes());
            assert_eq!(digits.as_ref(), Some(b"20140210000001"), "{text}");
        }
        assert_eq!(parse_iso(b"2014-02-10").as_ref(), Some(b"20140210000000"));
        assert_eq!(
            parse_iso(b"2014-02-10T07:08Z").as_ref(),
            Some(b"20140210070800")
        );
        for text in [
            "2014-02",
            "2014-2-10",
            "2014-02-30",
            "2014-02-10T",
            "2014-02-10T00:00:01.",
            "2014-02-10x",
        ] {
            assert_eq!(parse_iso(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn offsets_cross_month_and_year_boundaries() {
        let cases = [
            ("01 Mar 2012 00:00:00 +0001", Some("20120229235900")),
            ("31 Dec 2013 23:59:60 -0001", Some("20140101000059")),
            ("01 Jan 0001 00:00:00 +0100", None),
            ("31 Dec 9999 23:59:59 -0100", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_text(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn invalid_date_is_none() {
        for text in [
            "",
            "Mon, 30 Feb 2014 00:00:01 GMT",
            "Mon, 10 Foo 2014 00:00:01 GMT",
            "Mon, 10 Feb 14 00:00:01 GMT",
            "Mon, 10 Feb 2014 24:00:01 GMT",
            "Mon, 10 Feb 2014 00:00:01 +2400",
            "20141310000001",
        ] {
            assert_eq!(parse_text(text), None, "{text}");
        }
    }
}
