//! The types of columns, and the text of their values.

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use ::parquet::schema::types::ColumnDescriptor;
use chrono::{DateTime, SecondsFormat};

use crate::batch::FieldType;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Text,
    Integer,
    /// The number of digits after the decimal point.
    Decimal(usize),
    /// The number of units per second.
    Instant(i64),
    Boolean,
}

/// Returns the type of a column; `None` if it does not match the field.
pub(super) fn column_type(descriptor: &ColumnDescriptor, kind: FieldType) -> Option<ColumnType> {
    let physical = descriptor.physical_type();
    let is_whole = matches!(physical, Physical::INT32 | Physical::INT64);
    let logical = descriptor.logical_type_ref();
    let converted = descriptor.converted_type();
    match kind {
        // To other readers, bytes without a type are not text.
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
            // Older readers go by this type.
            let plain_before = matches!(
                converted,
                ConvertedType::NONE
                    | ConvertedType::INT_8
                    | ConvertedType::INT_16
                    | ConvertedType::INT_32
                    | ConvertedType::INT_64
                    | ConvertedType::UINT_8
                    | ConvertedType::UINT_16
                    | ConvertedType::UINT_32
                    | ConvertedType::UINT_64
            );
            (is_whole && plain && plain_before).then_some(ColumnType::Integer)
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
            // Without a time zone, it is not an instant: other readers show it as local time.
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
            // Spark wrote dates in this type for many years.
            _ if physical == Physical::INT96 => Some(ColumnType::Instant(NANOS)),
            _ => None,
        },
    }
}

const MILLIS: i64 = 1000;
const MICROS: i64 = 1_000_000;
const NANOS: i64 = 1_000_000_000;

/// The most digits of a decimal in 128 bits.
const DIGITS: usize = 38;

/// Reads a big-endian integer; `None` if it is too long.
pub(super) fn big_endian(bytes: &[u8]) -> Option<i128> {
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

/// Appends a number, formatted as its type, to `out`; `None` if the date is out of range.
pub(super) fn write_number(number: i128, column_type: ColumnType, out: &mut String) -> Option<()> {
    match column_type {
        ColumnType::Decimal(scale) if scale > 0 => {
            if number < 0 {
                out.push('-');
            }
            let mut buffer = itoa::Buffer::new();
            let digits = buffer.format(number.unsigned_abs());
            out.extend((digits.len()..=scale).map(|_| '0'));
            out.push_str(digits);
            out.insert(out.len() - scale, '.');
        }
        ColumnType::Instant(parts) => {
            let number = i64::try_from(number).ok()?;
            let (second, rest) = (number.div_euclid(parts), number.rem_euclid(parts));
            let nanos = u32::try_from(rest * (NANOS / parts)).ok()?;
            let digits = match (rest, parts) {
                (0, _) => SecondsFormat::Secs,
                (_, MILLIS) => SecondsFormat::Millis,
                (_, MICROS) => SecondsFormat::Micros,
                _ => SecondsFormat::Nanos,
            };
            let moment = DateTime::from_timestamp(second, nanos)?;
            out.push_str(&moment.to_rfc3339_opts(digits, true));
        }
        _ => out.push_str(itoa::Buffer::new().format(number)),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::parquet::schema::types::{ColumnPath, Type};

    use super::*;

    #[test]
    fn numbers_are_formatted_as_their_type() {
        for (number, column_type, expected) in [
            (8750, ColumnType::Decimal(2), "87.50"),
            (100, ColumnType::Decimal(2), "1.00"),
            (50, ColumnType::Decimal(2), "0.50"),
            (0, ColumnType::Decimal(2), "0.00"),
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
            let mut text = String::from("before ");
            assert_eq!(write_number(number, column_type, &mut text), Some(()));
            assert_eq!(text, format!("before {expected}"));
        }
        for number in [i64::MAX.into(), i128::MAX] {
            let written = write_number(number, ColumnType::Instant(1000), &mut String::new());
            assert_eq!(written, None);
        }
    }

    #[test]
    fn integers_are_no_decimals_or_dates_to_older_readers() {
        for (converted, is_integer) in [
            (ConvertedType::NONE, true),
            (ConvertedType::INT_64, true),
            (ConvertedType::UINT_64, true),
            (ConvertedType::DECIMAL, false),
            (ConvertedType::TIMESTAMP_MICROS, false),
            (ConvertedType::TIME_MICROS, false),
        ] {
            let is_decimal = converted == ConvertedType::DECIMAL;
            let (precision, scale) = if is_decimal { (9, 2) } else { (-1, -1) };
            let column = Type::primitive_type_builder("images", Physical::INT64)
                .with_converted_type(converted)
                .with_precision(precision)
                .with_scale(scale);
            let column = Arc::new(column.build().expect("a type"));
            let column = ColumnDescriptor::new(column, 0, 0, ColumnPath::from("images"));
            let found = column_type(&column, FieldType::Integer);
            assert_eq!(found.is_some(), is_integer, "{converted}");
        }
    }

    #[test]
    fn integers_may_have_any_length() {
        let long = |first: u8, last: u8| {
            let mut bytes = vec![first; 20];
            bytes[19] = last;
            big_endian(&bytes)
        };
        for (bytes, number) in [
            (&[][..], Some(0)),
            (&[0x22, 0x2e], Some(8750)),
            (&[0xff], Some(-1)),
            (&[0x00, 0xff], Some(255)),
            (&[0xff, 0x00], Some(-256)),
        ] {
            assert_eq!(big_endian(bytes), number);
        }
        assert_eq!(long(0, 7), Some(7));
        assert_eq!(long(0xff, 0xfe), Some(-2));
        assert_eq!(long(1, 7), None);
        assert_eq!(big_endian(&[0x80; 17]), None);
        assert_eq!(big_endian(&i128::MIN.to_be_bytes()), Some(i128::MIN));
    }
}
