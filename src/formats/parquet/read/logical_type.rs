//! What the values of columns mean, whoever wrote them.

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use ::parquet::schema::types::ColumnDescriptor;
use chrono::DateTime;

use crate::batch::FieldType;

/// What the values of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Text,
    Integer,
    /// So many digits are behind the point.
    Decimal(usize),
    /// So many are a second.
    Instant(i64),
    Boolean,
}

/// Tells what the values of a column mean; nothing where that is not what a batch has there.
pub(super) fn form(descriptor: &ColumnDescriptor, kind: FieldType) -> Option<ColumnType> {
    let physical = descriptor.physical_type();
    let is_whole = matches!(physical, Physical::INT32 | Physical::INT64);
    let logical = descriptor.logical_type_ref();
    let converted = descriptor.converted_type();
    match kind {
        // Bytes without a type are no text to other readers.
        FieldType::Text => {
            let is_text = matches!(
                logical,
                Some(LogicalType::String | LogicalType::Enum | LogicalType::Json)
            ) || converted == ConvertedType::UTF8;
            (physical == Physical::BYTE_ARRAY && is_text).then_some(ColumnType::Text)
        }
        FieldType::Boolean => (physical == Physical::BOOLEAN).then_some(ColumnType::Boolean),
        FieldType::Integer => {
            let plain = matches!(logical, None | Some(LogicalType::Integer(_)));
            (is_whole && plain).then_some(ColumnType::Integer)
        }
        FieldType::Decimal => {
            let is_decimal = matches!(logical, Some(LogicalType::Decimal(_)))
                || converted == ConvertedType::DECIMAL;
            let has_digits = is_whole
                || matches!(
                    physical,
                    Physical::FIXED_LEN_BYTE_ARRAY | Physical::BYTE_ARRAY
                );
            let scale = usize::try_from(descriptor.type_scale()).ok()?;
            (has_digits && is_decimal && scale <= DIGITS).then_some(ColumnType::Decimal(scale))
        }
        FieldType::Date => match (logical, converted) {
            // Without a zone, it is no instant: other readers show it as a local time.
            (Some(LogicalType::Timestamp(timestamp)), _)
                if is_whole && timestamp.is_adjusted_to_u_t_c =>
            {
                Some(ColumnType::Instant(match timestamp.unit {
                    TimeUnit::MILLIS => MILLIS,
                    TimeUnit::MICROS => MICROS,
                    TimeUnit::NANOS => NANOS,
                }))
            }
            (None, ConvertedType::TIMESTAMP_MILLIS) if is_whole => {
                Some(ColumnType::Instant(MILLIS))
            }
            (None, ConvertedType::TIMESTAMP_MICROS) if is_whole => {
                Some(ColumnType::Instant(MICROS))
            }
            // As Spark has written dates for many years.
            _ if physical == Physical::INT96 => Some(ColumnType::Instant(NANOS)),
            _ => None,
        },
    }
}

const MILLIS: i64 = 1000;
const MICROS: i64 = 1_000_000;
const NANOS: i64 = 1_000_000_000;

/// Digits of the longest decimal that 128 bits hold.
const DIGITS: usize = 38;

/// Reads a whole number from its bytes, big end first; nothing where it is too long.
pub(super) fn whole(bytes: &[u8]) -> Option<i128> {
    let sign = match bytes.first() {
        Some(first) if first & 0x80 != 0 => 0xff,
        _ => 0,
    };
    let padding = bytes.len().saturating_sub(size_of::<i128>());
    let (padding, digits) = bytes.split_at(padding);
    let mut whole = [sign; size_of::<i128>()];
    let start = whole.len() - digits.len();
    whole[start..].copy_from_slice(digits);
    let whole = i128::from_be_bytes(whole);
    let fits = padding.iter().all(|byte| *byte == sign) && (whole < 0) == (sign != 0);
    fits.then_some(whole)
}

/// Writes a number as what it means; nothing where no date is that far away.
pub(super) fn written(number: i128, form: ColumnType) -> Option<String> {
    match form {
        ColumnType::Decimal(scale) if scale > 0 => {
            let sign = if number < 0 { "-" } else { "" };
            let digits = format!("{:0width$}", number.unsigned_abs(), width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            Some(format!("{sign}{whole}.{fraction}"))
        }
        ColumnType::Instant(parts) => {
            let number = i64::try_from(number).ok()?;
            let (second, rest) = (number.div_euclid(parts), number.rem_euclid(parts));
            let moment = DateTime::from_timestamp(second, 0)?;
            let whole = moment.format("%Y-%m-%dT%H:%M:%S");
            if rest == 0 {
                return Some(format!("{whole}Z"));
            }
            let width = parts.ilog10() as usize;
            Some(format!("{whole}.{rest:0width$}Z"))
        }
        _ => Some(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_what_they_mean() {
        for (number, form, expected) in [
            (8750, ColumnType::Decimal(2), "87.50"),
            (-5, ColumnType::Decimal(2), "-0.05"),
            (
                i128::from(i64::MIN),
                ColumnType::Decimal(18),
                "-9.223372036854775808",
            ),
            (7, ColumnType::Decimal(0), "7"),
            (-7, ColumnType::Integer, "-7"),
            (0, ColumnType::Instant(1000), "1970-01-01T00:00:00Z"),
            (-1, ColumnType::Instant(1000), "1969-12-31T23:59:59.999Z"),
            (
                1_500_000,
                ColumnType::Instant(1_000_000),
                "1970-01-01T00:00:01.500000Z",
            ),
        ] {
            assert_eq!(written(number, form).as_deref(), Some(expected));
        }
        assert_eq!(
            written(i128::from(i64::MAX), ColumnType::Instant(1000)),
            None
        );
        assert_eq!(written(i128::MAX, ColumnType::Instant(1000)), None);
    }

    #[test]
    fn bytes_are_numbers_of_any_length() {
        let long = |first: u8, last: u8| {
            let mut bytes = vec![first; 20];
            bytes[19] = last;
            whole(&bytes)
        };
        for (bytes, number) in [
            (&[][..], Some(0)),
            (&[0x22, 0x2e], Some(8750)),
            (&[0xff], Some(-1)),
            (&[0x00, 0xff], Some(255)),
            (&[0xff, 0x00], Some(-256)),
        ] {
            assert_eq!(whole(bytes), number);
        }
        assert_eq!(long(0, 7), Some(7));
        assert_eq!(long(0xff, 0xfe), Some(-2));
        assert_eq!(long(1, 7), None);
        assert_eq!(whole(&[0x80; 17]), None);
        assert_eq!(whole(&i128::MIN.to_be_bytes()), Some(i128::MIN));
    }
}
