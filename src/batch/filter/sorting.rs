//! `--sort`: the order of the batches.

use super::names::field;
use crate::batch::decimal;
use crate::batch::timestamp::Timestamp;
use crate::batch::{BATCH_ID, Batch, COLUMNS, CREATION_DATE, FieldType};
use crate::error::{self, Failure};
use crate::secret;

/// The order of `--sort`: several keys, the most important first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sorting {
    pub(crate) keys: Vec<SortKey>,
}

/// One field to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortKey {
    pub(crate) column: usize,
    pub(crate) descending: bool,
}

impl Sorting {
    /// Parses `A,B:desc,C:asc`.
    pub(crate) fn parse(words: &str) -> Result<Self, Failure> {
        let mut keys: Vec<SortKey> = Vec::new();
        for word in words.split(',').map(str::trim) {
            let key = SortKey::parse(word, words)?;
            if keys.iter().any(|other| other.column == key.column) {
                let name = COLUMNS[key.column].name;
                return Err(Failure::new(
                    error::Kind::Usage,
                    format!("`--sort` names `{name}` twice"),
                )
                .hint("name each field once"));
            }
            keys.push(key);
        }
        Ok(Self { keys })
    }

    /// Appends the key of `batch` to `key`. Keys compare, byte by byte, as their batches do: those without a value
    /// are last, and ties are broken by creation date and id.
    pub(crate) fn write_key(&self, batch: &Batch, key: &mut Vec<u8>) {
        for SortKey { column, descending } in &self.keys {
            write_key(batch, *column, *descending, key);
        }
        write_key(batch, CREATION_DATE, false, key);
        write_key(batch, BATCH_ID, false, key);
    }
}

impl SortKey {
    /// Parses `FIELD`, `FIELD:asc` or `FIELD:desc`, one of the `words` of the flag.
    fn parse(word: &str, words: &str) -> Result<Self, Failure> {
        let usage = |why: &str| {
            let message = format!("`--sort {}`: {why}", secret::brief(words));
            Failure::new(error::Kind::Usage, message)
        };
        let (name, direction) = word.split_once(':').unwrap_or((word, "asc"));
        if name.is_empty() {
            return Err(usage("a field is missing")
                .hint("write one field, or several with commas: `--sort crop_type,batch_name`"));
        }
        let column = field(name)?;
        let descending = match direction {
            "asc" => false,
            "desc" => true,
            _ => {
                let direction = secret::brief(direction);
                return Err(
                    usage(&format!("unknown direction `{direction}`")).hint(format!(
                        "write `{name}`, or `{name}:desc` for the largest first"
                    )),
                );
            }
        };
        Ok(Self { column, descending })
    }
}

fn write_key(batch: &Batch, column: usize, descending: bool, key: &mut Vec<u8>) {
    let Some(value) = batch.typed(column) else {
        return key.push(1);
    };
    key.push(0);
    let start = key.len();
    match COLUMNS[column].kind {
        FieldType::Integer | FieldType::Decimal => decimal::write_key(&value, key),
        FieldType::Date => {
            if let Some(date) = Timestamp::parse(&value) {
                date.write_key(key);
            }
        }
        FieldType::Text | FieldType::Boolean => {
            // Two zeros end the text. A zero in it gets a mark, so that no text is the start of another key.
            for part in value.as_bytes().split_inclusive(|byte| *byte == 0) {
                key.extend_from_slice(part);
                if part.ends_with(&[0]) {
                    key.push(u8::MAX);
                }
            }
            key.extend_from_slice(&[0, 0]);
        }
    }
    if descending {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::batch::decimal::compare as compare_numbers;
    use crate::batch::find_column;
    use crate::batch::sample as batch;
    use proptest::prelude::*;

    fn key(sorting: &Sorting, batch: &Batch) -> Vec<u8> {
        let mut key = Vec::new();
        sorting.write_key(batch, &mut key);
        key
    }

    /// Compares values, and nulls as the last.
    fn compare(kind: FieldType, left: Option<&str>, right: Option<&str>) -> Ordering {
        match (left, right) {
            (Some(left), Some(right)) => match kind {
                FieldType::Integer | FieldType::Decimal => compare_numbers(left, right),
                FieldType::Date => Timestamp::parse(left).cmp(&Timestamp::parse(right)),
                FieldType::Text | FieldType::Boolean => left.cmp(right),
            },
            (left, right) => left.is_none().cmp(&right.is_none()),
        }
    }

    proptest! {
        #[test]
        fn keys_compare_as_their_batches(
            texts in prop::collection::vec(prop_oneof![Just(None), "[a\u{0}\u{1}\u{ff}\u{10ffff}]{0,3}".prop_map(Some)], 2),
            numbers in prop::collection::vec("-?0{0,2}[0-9]{1,3}(\\.[0-9]{1,3})?", 2),
            dates in prop::collection::vec("(19|20)[67]0-0[12]-0[1-9]T00:00:0[01](\\.[0-9]{1,2})?(Z|\\+00:00)", 2),
            ids in prop::collection::vec("[a\u{0}\u{1}]{1,3}", 2),
        ) {
            let batches: Vec<Batch> = (0..2)
                .map(|place| {
                    let json = |text: &str| serde_json::to_string(text).expect("a string");
                    let comment = texts[place].as_deref().map_or("null".to_owned(), json);
                    batch(&[
                        ("comment", &comment),
                        ("avg_germination_rate", &json(&numbers[place])),
                        ("batch_creation_date", &json(&dates[place])),
                        ("batch_id", &json(&ids[place])),
                    ])
                })
                .collect();
            for word in ["comment", "avg_germination_rate", "batch_creation_date", "batch_id"] {
                let column = find_column(word).expect("a field");
                let by = |column: usize| {
                    let values = [&batches[0], &batches[1]].map(|batch| batch.typed(column));
                    compare(COLUMNS[column].kind, values[0].as_deref(), values[1].as_deref())
                };
                let ties = by(CREATION_DATE).then(by(BATCH_ID));
                let sorting = Sorting::parse(word).expect(word);
                let keys = |sorting: &Sorting| key(sorting, &batches[0]).cmp(&key(sorting, &batches[1]));
                prop_assert_eq!(keys(&sorting), by(column).then(ties), "{}", word);
                let has_null = batches.iter().any(|batch| batch.typed(column).is_none());
                let reversed = if has_null { by(column) } else { by(column).reverse() };
                let descending = Sorting::parse(&format!("{word}:desc")).expect(word);
                prop_assert_eq!(keys(&descending), reversed.then(ties), "{}", word);
            }
        }
    }

    #[test]
    fn later_keys_decide_between_equal_ones() {
        let batches = [
            [
                ("batch_id", "\"a\""),
                ("crop_type", "\"Leek\""),
                ("number_of_images", "9"),
            ],
            [
                ("batch_id", "\"b\""),
                ("crop_type", "null"),
                ("number_of_images", "12"),
            ],
            [
                ("batch_id", "\"c\""),
                ("crop_type", "\"Kale\""),
                ("number_of_images", "9"),
            ],
            [
                ("batch_id", "\"d\""),
                ("crop_type", "\"Leek\""),
                ("number_of_images", "12"),
            ],
            [
                ("batch_id", "\"e\""),
                ("crop_type", "\"Leek\""),
                ("number_of_images", "9"),
            ],
        ]
        .map(|changes| batch(&changes));
        for (words, expected) in [
            ("crop_type,number_of_images", "caedb"),
            ("crop_type,number_of_images:desc", "cdaeb"),
            ("crop_type:desc, number_of_images:asc", "aedcb"),
            ("number_of_images,crop_type:desc", "aecdb"),
            ("number_of_images:desc,crop_type", "dbcae"),
            ("crop_type,batch_id:desc", "cedab"),
        ] {
            let sorting = Sorting::parse(words).expect(words);
            let mut sorted = batches.to_vec();
            sorted.sort_by_key(|batch| key(&sorting, batch));
            let ids: String = sorted.iter().map(Batch::id).collect();
            assert_eq!(ids, expected, "{words}");
        }
    }

    #[test]
    fn mistakes_are_refused() {
        for (words, why) in [
            ("", "a field is missing"),
            ("crop_type,", "a field is missing"),
            (",crop_type", "a field is missing"),
            (":desc", "a field is missing"),
            ("crop", "there is no field `crop`"),
            ("crop_type,crop", "there is no field `crop`"),
            ("crop_type:down", "unknown direction `down`"),
            ("crop_type:", "unknown direction ``"),
            ("crop_type:desc:asc", "unknown direction `desc:asc`"),
            ("-crop_type", "there is no field `-crop_type`"),
            (
                "crop_type,batch_id,crop_type:desc",
                "`--sort` names `crop_type` twice",
            ),
        ] {
            let message = Sorting::parse(words).expect_err(words).to_string();
            assert!(message.contains(why), "{words}: {message}");
        }
    }

    #[test]
    fn sorting_puts_nulls_last_both_ways() {
        let rates = ["\"9.00\"", "\"87.50\"", "null", "\"-1.00\""];
        let sorted = |word: &str| {
            let sorting = Sorting::parse(word).expect(word);
            let mut batches: Vec<Batch> = rates
                .iter()
                .map(|rate| batch(&[("avg_germination_rate", rate)]))
                .collect();
            batches.sort_by_key(|batch| key(&sorting, batch));
            let column = find_column("avg_germination_rate").expect("a field");
            batches
                .iter()
                .map(|batch| batch.json(column).map(String::from))
                .collect::<Vec<_>>()
        };
        let texts = |order: [usize; 4]| {
            order
                .map(|place| Some(rates[place].to_owned()).filter(|rate| rate != "null"))
                .to_vec()
        };
        assert_eq!(sorted("avg_germination_rate"), texts([3, 0, 1, 2]));
        assert_eq!(sorted("avg_germination_rate:desc"), texts([1, 0, 3, 2]));
    }
}
