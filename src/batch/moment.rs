//! Instants as the service writes them: UTC, to any fraction of a second.

use chrono::NaiveDate;

/// An instant. Orders as time does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    /// Whole seconds since 1970.
    pub(crate) second: i64,
    /// The digits behind the second, without the zeros that say nothing.
    fraction: Box<str>,
}

impl Moment {
    /// The first second that four digits of a year can write.
    pub(crate) const FIRST: i64 = -62_135_596_800;

    /// Reads `YYYY-MM-DDTHH:MM:SSZ`, with or without a fraction of the second.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_suffix('Z')?;
        let (whole, fraction) = match rest.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return None,
            None => (rest, ""),
        };
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self {
            second: whole_second(whole)?,
            fraction: fraction.trim_end_matches('0').into(),
        })
    }

    /// Returns it in milliseconds since 1970; nothing where it is finer than that.
    pub(crate) fn milliseconds(&self) -> Option<i64> {
        self.parts(3)
    }

    /// Returns it in microseconds since 1970; nothing where it is finer than that.
    #[cfg(feature = "postgres")]
    pub(crate) fn microseconds(&self) -> Option<i64> {
        self.parts(6)
    }

    /// Returns it in parts of a second, which so many digits can write.
    fn parts(&self, digits: usize) -> Option<i64> {
        if self.fraction.len() > digits {
            return None;
        }
        let fraction = format!("{:0<digits$}", self.fraction).parse::<i64>().ok()?;
        let parts = 10_i64.pow(u32::try_from(digits).ok()?);
        self.second.checked_mul(parts)?.checked_add(fraction)
    }

    /// The very start of a second.
    pub(crate) fn at(second: i64) -> Self {
        Self {
            second,
            fraction: "".into(),
        }
    }
}

/// Reads `YYYY-MM-DDTHH:MM:SS`, in exactly this shape, as seconds since 1970.
pub(crate) fn whole_second(text: &str) -> Option<i64> {
    let bytes: &[u8; 19] = text.as_bytes().try_into().ok()?;
    let [
        ..,
        b'-',
        _,
        _,
        b'-',
        _,
        _,
        b'T',
        _,
        _,
        b':',
        _,
        _,
        b':',
        _,
        _,
    ] = bytes
    else {
        return None;
    };
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0, |number, byte| {
            let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
            Some(number * 10 + digit)
        })
    };
    let year = i32::try_from(number(0, 4)?).ok()?;
    let day = NaiveDate::from_ymd_opt(year, number(5, 7)?, number(8, 10)?)?;
    let time = day.and_hms_opt(number(11, 13)?, number(14, 16)?, number(17, 19)?)?;
    Some(time.and_utc().timestamp())
}

#[cfg(test)]
mod tests {
    use super::Moment;

    fn at(text: &str) -> Moment {
        Moment::parse(text).expect(text)
    }

    #[test]
    fn fractions_order_within_their_second() {
        assert!(at("2026-05-01T06:00:00Z") < at("2026-05-01T06:00:00.001Z"));
        assert!(at("2026-05-01T06:00:00.49Z") < at("2026-05-01T06:00:00.5Z"));
        assert!(at("2026-05-01T06:00:00.999999Z") < at("2026-05-01T06:00:01Z"));
        assert_eq!(at("2026-05-01T06:00:00.50Z"), at("2026-05-01T06:00:00.5Z"));
        assert_eq!(at("2026-05-01T06:00:00.000Z"), Moment::at(1_777_615_200));
    }

    #[test]
    fn milliseconds_are_exact_or_none() {
        for (text, expected) in [
            ("1970-01-01T00:00:01.5Z", Some(1500)),
            ("1970-01-01T00:00:01.0250Z", Some(1025)),
            ("1969-12-31T23:59:59.999Z", Some(-1)),
            ("9999-12-31T23:59:59.999Z", Some(253_402_300_799_999)),
            ("1970-01-01T00:00:01.0005Z", None),
        ] {
            assert_eq!(at(text).milliseconds(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_utc_is_no_moment() {
        for text in [
            "2026-05-01T06:00:00",
            "2026-05-01T06:00:00+00:00",
            "2026-05-01T06:00:00+02:00",
            "2026-05-01 06:00:00Z",
            "2026-05-01",
            "2026-05-01T06:00:00.Z",
            "2026-05-01T06:00:00.5.5Z",
            "2026-02-29T06:00:00Z",
            "2026-05-01T24:00:00Z",
            "",
            "Z",
            "2026-05-01T06:00:00.-5Z",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
