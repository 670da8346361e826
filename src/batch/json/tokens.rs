//! Values: the length of each kind at the start of a text, if it is valid there.
//!
//! Several bytes are compared at a time. The caller checks what follows a value.

use wide::u8x16;

/// Any integer with at most this many digits fits.
const SAFE_DIGITS: usize = 18;

pub(super) fn boolean(text: &[u8]) -> Option<usize> {
    if text.starts_with(b"true") {
        Some(4)
    } else {
        text.starts_with(b"false").then_some(5)
    }
}

/// Returns the length of the number at the start of `text`.
pub(super) fn number(text: &[u8]) -> Option<usize> {
    let mut position = usize::from(text.first() == Some(&b'-'));
    let whole = digits(&text[position..]);
    if whole == 0 || whole > 1 && text[position] == b'0' {
        return None;
    }
    position += whole;
    if text.get(position) == Some(&b'.') {
        let fraction = digits(&text[position + 1..]);
        position += 1 + fraction;
        if fraction == 0 {
            return None;
        }
    }
    if let Some(b'e' | b'E') = text.get(position) {
        position += 1;
        position += usize::from(matches!(text.get(position), Some(b'+' | b'-')));
        let exponent = digits(&text[position..]);
        position += exponent;
        if exponent == 0 {
            return None;
        }
    }
    Some(position)
}

/// Returns the length of the string at the start of `text`, including quotes. Its escapes are valid text; sets
/// `has_escapes` if there is one.
#[inline]
pub(super) fn string(text: &[u8], has_escapes: &mut bool) -> Option<usize> {
    let (b'"', content) = text.split_first()? else {
        return None;
    };
    let length = plain(content)?;
    if content[length] == b'"' {
        return Some(length + 2);
    }
    *has_escapes = true;
    escaped_string(text, length + 1, |escape| match hex(escape)? {
        0xdc00..=0xdfff => None,
        // The other half of the pair follows.
        0xd800..=0xdbff => {
            let is_pair =
                escape.get(4..6)? == b"\\u" && (0xdc00..=0xdfff).contains(&hex(&escape[6..])?);
            is_pair.then_some(10)
        }
        _ => Some(4),
    })
}

/// The same, but an escape may be half of a surrogate pair.
pub(super) fn any_string(text: &[u8]) -> Option<usize> {
    let (b'"', content) = text.split_first()? else {
        return None;
    };
    let length = plain(content)?;
    if content[length] == b'"' {
        return Some(length + 2);
    }
    escaped_string(text, length + 1, |escape| hex(escape).map(|_| 4))
}

/// Returns the length of a string whose first quote, backslash or control character is at `position`. `unicode`
/// returns the length of an escape after `\u`; `None` if it is not valid.
#[inline(never)]
fn escaped_string(
    text: &[u8],
    mut position: usize,
    unicode: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    loop {
        position += match text[position] {
            b'"' => return Some(position + 1),
            b'\\' => match text.get(position + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                b'u' => 2 + unicode(&text[position + 2..])?,
                _ => return None,
            },
            _ => return None,
        };
        // Many escapes follow another one.
        if *text.get(position)? != b'\\' {
            position += plain(&text[position..])?;
        }
    }
}

/// Returns the value of the four hexadecimal digits at the start of `text`.
#[inline]
pub(in crate::batch) fn hex(text: &[u8]) -> Option<u32> {
    let digits = text.first_chunk::<4>()?;
    let value = digits.iter().fold(0, |value, digit| {
        value << 4 | HEX_DIGITS[usize::from(*digit)]
    });
    (value <= 0xffff).then_some(value)
}

/// The value of each hexadecimal digit; a large number for any other byte.
const HEX_DIGITS: [u32; 256] = {
    let mut values = [1 << 16; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value as usize] as usize] = value;
        values[b"0123456789ABCDEF"[value as usize] as usize] = value;
        value += 1;
    }
    values
};

/// The value 1 in each of eight bytes, and the top bit of each.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Returns the top bit of each of eight bytes that is less than `limit` (at most 128). A match may cause
/// false matches in later bytes; the first one is always correct.
#[inline]
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & TOPS
}

/// Returns the number of bytes before the first quote, backslash or control character.
#[allow(clippy::inline_always, reason = "most strings are short")]
#[inline(always)]
pub(super) fn plain(text: &[u8]) -> Option<usize> {
    let mut rest = text;
    while let Some((bytes, more)) = rest.split_first_chunk() {
        let bytes = u8x16::new(*bytes);
        let is_control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
        let is_quote = bytes.simd_eq(u8x16::splat(b'"'));
        let is_backslash = bytes.simd_eq(u8x16::splat(b'\\'));
        let special = (is_control | is_quote | is_backslash).to_bitmask();
        if special != 0 {
            return Some(text.len() - rest.len() + special.trailing_zeros() as usize);
        }
        rest = more;
    }
    Some(text.len() - rest.len() + rest.iter().position(|byte| is_special(*byte))?)
}

#[inline]
fn is_special(byte: u8) -> bool {
    matches!(byte, ..b' ' | b'"' | b'\\')
}

#[inline]
fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the length of the whole number at the start of `text`.
#[inline]
pub(super) fn integer(text: &[u8]) -> Option<usize> {
    let count = digits(text);
    let is_plain = (1..=SAFE_DIGITS).contains(&count) && (text[0] != b'0' || count == 1);
    is_plain.then_some(count)
}

/// Returns the length of the decimal number in quotes at the start of `text`.
#[allow(clippy::inline_always, reason = "nearly all numbers have two decimals")]
#[inline(always)]
pub(super) fn decimal(text: &[u8]) -> Option<usize> {
    match text.split_first_chunk() {
        Some((b"\"", rest)) => match rest.first_chunk().and_then(short_decimal) {
            Some(length) => Some(length + 2),
            None => any_decimal(rest),
        },
        _ => None,
    }
}

/// Returns the length of any decimal number in quotes, of which `text` has all but the first quote.
#[inline(never)]
fn any_decimal(text: &[u8]) -> Option<usize> {
    let mut position = usize::from(text.first() == Some(&b'-'));
    let mut count = digits(text.get(position..)?);
    position += count;
    if count > 0 && text.get(position) == Some(&b'.') {
        count = digits(&text[position + 1..]);
        position += 1 + count;
    }
    (count > 0 && text.get(position) == Some(&b'"')).then_some(position + 2)
}

/// Returns the length of a decimal number with two decimals that ends with a quote within these eight bytes;
/// `None` for any other.
#[allow(clippy::inline_always, reason = "as for `decimal`")]
#[inline(always)]
pub(super) fn short_decimal(text: &[u8; 8]) -> Option<usize> {
    /// The last bytes of the number.
    const PATTERN: BytePattern = BytePattern::new(*b"00000.00");
    let word = u64::from_le_bytes(*text);
    let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
    let length = quotes.trailing_zeros() as usize / 8;
    if !(4..8).contains(&length) {
        return None;
    }
    // The number moves to the end of the word. Bytes before it are zero.
    let before = 64 - 8 * length;
    let difference = (word << before) ^ (PATTERN.word >> before << before);
    PATTERN.allows(difference).then_some(length)
}

/// Eight bytes, where `0` stands for any digit.
struct BytePattern {
    word: u64,
    /// What leaves the top bit of a byte clear if it is added to an allowed difference from the pattern.
    limits: u64,
}

impl BytePattern {
    const fn new(bytes: [u8; 8]) -> Self {
        let mut limits = [0x7f; 8];
        let mut place = 0;
        while place < bytes.len() {
            if bytes[place] == b'0' {
                limits[place] -= 9;
            }
            place += 1;
        }
        Self {
            word: u64::from_le_bytes(bytes),
            limits: u64::from_le_bytes(limits),
        }
    }

    /// Returns whether bytes that differ from the pattern in these bits match it.
    #[inline]
    fn allows(&self, difference: u64) -> bool {
        (difference.wrapping_add(self.limits) | difference) & TOPS == 0
    }

    #[inline]
    fn fits(&self, bytes: &[u8]) -> bool {
        let word = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        word.is_some_and(|word| self.allows(word ^ self.word))
    }
}

/// Returns the length of the date in quotes at the start of `text`.
#[inline]
pub(super) fn date(text: &[u8]) -> Option<usize> {
    const DAY: BytePattern = BytePattern::new(*b"0000-00-");
    const MINUTE: BytePattern = BytePattern::new(*b"00T00:00");
    const TIME: BytePattern = BytePattern::new(*b"00:00:00");
    let (date, rest) = text.split_first_chunk::<20>()?;
    let has_pattern = date[0] == b'"'
        && DAY.fits(&date[1..])
        && MINUTE.fits(&date[9..])
        && TIME.fits(&date[12..]);
    if !has_pattern {
        return None;
    }
    let two = |place: usize| (date[place] - b'0') * 10 + (date[place + 1] - b'0');
    let (month, day) = (two(6), two(9));
    let is_day = (1..=28).contains(&day)
        || (29..=30).contains(&day) && month != 2
        || day == 31 && has_31_days(month)
        || day == 29 && is_leap_year(two(1), two(3));
    let fits = (1..=12).contains(&month) && is_day && two(12) < 24 && two(15) < 60 && two(18) < 60;
    if !fits {
        return None;
    }
    let mut position = 0;
    if rest.first() == Some(&b'.') {
        let count = digits(&rest[1..]);
        position = if count > 0 { 1 + count } else { return None };
    }
    // Leap seconds are left to the general parser.
    let zone = rest.get(position..)?;
    if zone.starts_with(b"Z\"") {
        Some(20 + position + 2)
    } else {
        zone.starts_with(b"+00:00\"").then_some(20 + position + 7)
    }
}

/// Returns whether a year is a leap year, given its first two digits and its last two.
fn is_leap_year(century: u8, year: u8) -> bool {
    let decisive = if year == 0 { century } else { year };
    decisive.is_multiple_of(4)
}

fn has_31_days(month: u8) -> bool {
    matches!(month, 1 | 3 | 5 | 7 | 8 | 10 | 12)
}
