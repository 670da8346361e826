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

/// Returns the length of the string at the start of `block`, without its first quote, if it has no escapes and ends there;
/// `None` for any other. A multiple of 16 bytes is read.
#[allow(clippy::inline_always, reason = "most strings are short")]
#[inline(always)]
pub(super) fn short_string(block: &[u8]) -> Option<usize> {
    let mut before = 0;
    for chunk in block.as_chunks::<16>().0 {
        let special = special(*chunk);
        if special != 0 {
            let length = before + special.trailing_zeros() as usize;
            return (block[length] == b'"').then_some(length + 1);
        }
        before += 16;
    }
    None
}

/// As `string`, but an escape may be half of a surrogate pair.
pub(super) fn any_string(text: &[u8], has_escapes: &mut bool) -> Option<usize> {
    let (b'"', content) = text.split_first()? else {
        return None;
    };
    let length = plain(content)?;
    if content[length] == b'"' {
        return Some(length + 2);
    }
    *has_escapes = true;
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

/// Returns which of these bytes are a quote, a backslash or a control character, one bit each.
#[allow(clippy::inline_always, reason = "it is called for each string")]
#[inline(always)]
fn special(bytes: [u8; 16]) -> u32 {
    let bytes = u8x16::new(bytes);
    let is_control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    let is_quote = bytes.simd_eq(u8x16::splat(b'"'));
    let is_backslash = bytes.simd_eq(u8x16::splat(b'\\'));
    (is_control | is_quote | is_backslash).to_bitmask()
}

/// Returns the number of bytes before the first quote, backslash or control character.
#[allow(clippy::inline_always, reason = "most strings are short")]
#[inline(always)]
pub(super) fn plain(text: &[u8]) -> Option<usize> {
    let mut rest = text;
    while let Some((bytes, more)) = rest.split_first_chunk() {
        let special = special(*bytes);
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

#[allow(clippy::inline_always, reason = "it is short")]
#[inline(always)]
fn digits(text: &[u8]) -> usize {
    const DIGITS: BytePattern = BytePattern::new(b"00000000");
    if let Some(bytes) = text.first_chunk() {
        let others = DIGITS.misfits(u64::from_le_bytes(*bytes)) & TOPS;
        if others != 0 {
            // Later bytes may be wrong: the sum of the first one may be carried over.
            return others.trailing_zeros() as usize / 8;
        }
    }
    many_digits(text)
}

/// The same, one at a time.
#[inline(never)]
fn many_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the length of the whole number at the start of `text`.
#[allow(clippy::inline_always, reason = "it is short")]
#[inline(always)]
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
    /// By the number of bytes before the quote; eight if there is none.
    const PATTERNS: [BytePattern; 9] = [
        BytePattern::NEVER,
        BytePattern::NEVER,
        BytePattern::NEVER,
        BytePattern::NEVER,
        BytePattern::new(b"0.00\""),
        BytePattern::new(b"00.00\""),
        BytePattern::new(b"000.00\""),
        BytePattern::new(b"0000.00\""),
        BytePattern::NEVER,
    ];
    let word = u64::from_le_bytes(*text);
    // The first top bit is that of the first quote, unless a byte before it does not fit.
    let quotes = (word ^ (ONES * u64::from(b'"'))).wrapping_sub(ONES) & TOPS;
    let length = quotes.trailing_zeros() as usize / 8;
    PATTERNS[length].fits(word).then_some(length)
}

/// At most eight bytes, where `0` stands for any digit.
struct BytePattern {
    word: u64,
    /// The bits that are compared.
    mask: u64,
    /// What leaves the top bit of a byte clear if it is added to an allowed difference from the pattern.
    limits: u64,
}

impl BytePattern {
    /// Fits nothing.
    const NEVER: Self = Self {
        word: 0,
        mask: 0,
        limits: TOPS,
    };

    const fn new(pattern: &[u8]) -> Self {
        let (mut bytes, mut mask, mut limits) = ([0; 8], [0; 8], [0; 8]);
        let mut place = 0;
        while place < pattern.len() {
            bytes[place] = pattern[place];
            mask[place] = u8::MAX;
            limits[place] = if pattern[place] == b'0' {
                0x7f - 9
            } else {
                0x7f
            };
            place += 1;
        }
        Self {
            word: u64::from_le_bytes(bytes),
            mask: u64::from_le_bytes(mask),
            limits: u64::from_le_bytes(limits),
        }
    }

    #[inline]
    fn fits(&self, word: u64) -> bool {
        self.misfits(word) & TOPS == 0
    }

    /// Returns eight bytes, of which one has its top bit set if `word` does not fit.
    #[inline]
    fn misfits(&self, word: u64) -> u64 {
        let difference = (word ^ self.word) & self.mask;
        difference.wrapping_add(self.limits) | difference
    }
}

/// Returns the length of the date in quotes at the start of `text`.
#[inline]
pub(super) fn date(text: &[u8]) -> Option<usize> {
    const DAY: BytePattern = BytePattern::new(b"0000-00-");
    const MINUTE: BytePattern = BytePattern::new(b"00T00:00");
    const TIME: BytePattern = BytePattern::new(b"00:00:00");
    let (date, rest) = text.split_first_chunk::<20>()?;
    let word = |place: usize| {
        let bytes = date[place..].first_chunk();
        u64::from_le_bytes(*bytes.expect("there are twenty bytes"))
    };
    let misfits = DAY.misfits(word(1)) | MINUTE.misfits(word(9)) | TIME.misfits(word(12));
    if date[0] != b'"' || misfits & TOPS != 0 {
        return None;
    }
    // Two digits have the same order as the numbers that they write.
    let two = |place: usize| u16::from_be_bytes([date[place], date[place + 1]]);
    let number = u16::from_be_bytes;
    let is_early_day = (number(*b"01")..=number(*b"28")).contains(&two(9));
    let is_valid = (number(*b"01")..=number(*b"12")).contains(&two(6))
        && (is_early_day || is_late_day([two(1), two(3), two(6), two(9)]))
        && two(12) < number(*b"24")
        && date[15] < b'6'
        && date[18] < b'6';
    if !is_valid {
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

/// Returns whether a month has a day that is not one of the first 28. The parts of the date are two digits each: the
/// first and the last two of the year, the month and the day.
#[inline(never)]
fn is_late_day(date: [u16; 4]) -> bool {
    let [century, year, month, day] = date.map(|digits| {
        let [tens, ones] = digits.to_be_bytes();
        (tens - b'0') * 10 + (ones - b'0')
    });
    (29..=30).contains(&day) && month != 2
        || day == 31 && has_31_days(month)
        || day == 29 && is_leap_year(century, year)
}

/// Returns whether a year is a leap year, given its first two digits and its last two.
fn is_leap_year(century: u8, year: u8) -> bool {
    let decisive = if year == 0 { century } else { year };
    decisive.is_multiple_of(4)
}

fn has_31_days(month: u8) -> bool {
    matches!(month, 1 | 3 | 5 | 7 | 8 | 10 | 12)
}
