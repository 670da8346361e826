//! Conditions, fields and sorting: `--where`, `--fields` and `--sort`.

use std::cmp::Ordering;

use super::date::{self, Bound, Clock};
use super::decimal::{self, compare as compare_numbers, is_number};
use super::timestamp::Timestamp;
use super::{BATCH_ID, Batch, COLUMNS, CREATION_DATE, FieldType, find_column};
use crate::error::{self, Failure};
use crate::text;

/// Returns the column called `name`, or an error that lists all fields.
fn field(name: &str) -> Result<usize, Failure> {
    find_column(name).ok_or_else(|| {
        let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        let hint = match text::nearest(name, names.iter().copied()) {
            Some(nearest) => format!(
                "did you mean `{nearest}`? available fields: {}",
                names.join(", ")
            ),
            None => format!("available fields: {}", names.join(", ")),
        };
        Failure::new(error::Kind::Usage, format!("there is no field `{name}`")).hint(hint)
    })
}

/// The fields to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    /// Columns in the order of the output.
    pub(crate) columns: Vec<usize>,
    /// Whether the fields were listed explicitly, so that unknown fields are left out.
    pub(crate) named: bool,
}

impl Fields {
    pub(crate) fn all() -> Self {
        Self {
            columns: (0..COLUMNS.len()).collect(),
            named: false,
        }
    }

    /// Parses `a,b,c` or `-a,-b`.
    pub(crate) fn parse(words: &str) -> Result<Self, Failure> {
        let words: Vec<&str> = words
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .collect();
        let minus = words.iter().filter(|word| word.starts_with('-')).count();
        let usage = |message: &str| Failure::new(error::Kind::Usage, message.to_owned());
        if words.is_empty() {
            return Err(usage("`--fields` is empty").hint(format!(
                "available fields: {}",
                COLUMNS.map(|column| column.name).join(", ")
            )));
        }
        if minus > 0 && minus < words.len() {
            return Err(usage("`--fields` mixes fields to write and fields to leave out")
                .hint("list either the fields to write, or the fields to leave out, each with a minus"));
        }
        let mut columns = Vec::new();
        for word in &words {
            let column = field(word.strip_prefix('-').unwrap_or(word))?;
            if columns.contains(&column) {
                return Err(usage(&format!(
                    "`--fields` names `{}` twice",
                    COLUMNS[column].name
                )));
            }
            columns.push(column);
        }
        if minus == 0 {
            return Ok(Self {
                columns,
                named: true,
            });
        }
        let kept: Vec<usize> = (0..COLUMNS.len())
            .filter(|column| !columns.contains(column))
            .collect();
        if kept.is_empty() {
            return Err(usage("`--fields` leaves out all fields"));
        }
        Ok(Self {
            columns: kept,
            named: false,
        })
    }

    /// Returns whether every field is written, including unknown ones.
    pub(crate) fn is_everything(&self) -> bool {
        !self.named && self.columns.len() == COLUMNS.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
}

/// Longer ones first, so that `<=` is not read as `<`.
const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Contains),
];

/// One `--where` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    column: usize,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    IsNull,
    IsNotNull,
    Boolean(bool),
    Number(Operator, String),
    Instant(Operator, Timestamp),
    Text(Operator, String),
}

impl Condition {
    /// Parses a condition; dates refer to `clock`.
    pub(crate) fn parse(expression: &str, clock: Clock) -> Result<Self, Failure> {
        let refuse = |why: &str| {
            Failure::new(
                error::Kind::Usage,
                format!("`--where '{expression}'`: {why}"),
            )
            .hint("write FIELD OP VALUE with one of = != < <= > >= ~, such as 'crop_type=Tomato'")
        };
        let text = expression.trim();
        let (negated, bare) = text
            .strip_prefix('!')
            .map_or((false, text), |rest| (true, rest.trim()));
        let end = bare.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let Some(end) = end else {
            let column = field(bare)?;
            if COLUMNS[column].kind != FieldType::Boolean {
                return Err(refuse("the operator is missing"));
            }
            return Ok(Self {
                column,
                test: Test::Boolean(!negated),
            });
        };
        let rest = bare[end..].trim_start();
        let operator = OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign));
        let Some((sign, operator)) = operator.filter(|_| !negated) else {
            return Err(refuse("the operator is missing"));
        };
        let column = field(&bare[..end])?;
        let value = rest[sign.len()..].trim();
        let test = match (operator, value, COLUMNS[column].kind) {
            (Operator::Equal, "", _) => Test::IsNull,
            (Operator::NotEqual, "", _) => Test::IsNotNull,
            (_, "", _) => return Err(refuse("the value is missing")),
            (Operator::Equal | Operator::NotEqual, value, FieldType::Boolean)
                if !matches!(value, "true" | "false") =>
            {
                return Err(refuse("the value is neither true nor false"));
            }
            (Operator::Contains, value, _) => Test::Text(Operator::Contains, value.to_lowercase()),
            (operator, value, FieldType::Integer | FieldType::Decimal) if is_number(value) => {
                Test::Number(*operator, value.to_owned())
            }
            (_, _, FieldType::Integer | FieldType::Decimal) => {
                return Err(refuse("the value is not a number such as 80.5"));
            }
            (operator, value, FieldType::Date) => {
                let moment = instant(value, clock)
                    .ok_or_else(|| refuse("the value is not a date such as 2026-05-01"))?;
                Test::Instant(*operator, moment)
            }
            (operator, value, _) => Test::Text(*operator, value.to_owned()),
        };
        Ok(Self { column, test })
    }

    /// Returns whether the condition is true. Null matches only a test for null.
    pub(crate) fn holds(&self, batch: &Batch) -> bool {
        let value = batch.typed(self.column);
        let Some(value) = value else {
            return self.test == Test::IsNull;
        };
        match &self.test {
            Test::IsNull => false,
            Test::IsNotNull => true,
            Test::Boolean(wanted) => (value == "true") == *wanted,
            Test::Number(operator, number) => operator.accepts(compare_numbers(&value, number)),
            Test::Instant(operator, moment) => {
                Timestamp::parse(&value).is_some_and(|value| operator.accepts(value.cmp(moment)))
            }
            Test::Text(Operator::Contains, part) => value.to_lowercase().contains(part.as_str()),
            Test::Text(operator, text) => operator.accepts(value.as_ref().cmp(text.as_str())),
        }
    }
}

impl Operator {
    fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Contains => false,
        }
    }
}

/// Parses a date, with a fraction as the service writes it, or in any form that `--start` accepts. A period
/// means its first second.
fn instant(text: &str, clock: Clock) -> Option<Timestamp> {
    Timestamp::parse(text).or_else(|| match date::parse(text, clock).ok()? {
        Bound::Second(second) | Bound::Period { first: second, .. } => {
            Some(Timestamp::at(second.timestamp()))
        }
    })
}

/// One `--sort` option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sorting {
    pub(crate) column: usize,
    pub(crate) descending: bool,
}

impl Sorting {
    /// Parses `FIELD`, `FIELD:asc` or `FIELD:desc`.
    pub(crate) fn parse(word: &str) -> Result<Self, Failure> {
        let (name, direction) = word.split_once(':').unwrap_or((word, "asc"));
        let descending = match direction {
            "asc" => false,
            "desc" => true,
            _ => {
                return Err(Failure::new(
                    error::Kind::Usage,
                    format!("`--sort {word}`: unknown direction"),
                )
                .hint("write FIELD, or FIELD:desc for the largest first"));
            }
        };
        Ok(Self {
            column: field(name)?,
            descending,
        })
    }

    /// Appends the key of `batch` to `key`. Keys compare, byte by byte, as their batches do: those without a value
    /// are last, and ties are broken by creation date and id.
    pub(crate) fn write_key(&self, batch: &Batch, key: &mut Vec<u8>) {
        write_key(batch, self.column, self.descending, key);
        write_key(batch, CREATION_DATE, false, key);
        write_key(batch, BATCH_ID, false, key);
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
    use super::*;
    use crate::batch::Zone;
    use proptest::prelude::*;

    fn batch(changes: &[(&str, &str)]) -> Batch {
        let field = |column: &crate::batch::Column| {
            let changed = changes.iter().find(|(name, _)| *name == column.name);
            let value = changed.map_or(
                match column.kind {
                    FieldType::Text => "\"Tomato\"",
                    FieldType::Date => "\"2026-05-01T06:00:00.5Z\"",
                    FieldType::Integer => "12",
                    FieldType::Decimal => "\"87.50\"",
                    FieldType::Boolean => "false",
                },
                |(_, value)| value,
            );
            format!("\"{}\":{value}", column.name)
        };
        let fields: Vec<String> = COLUMNS.iter().map(field).collect();
        Batch::read(&format!("{{{}}}", fields.join(",")))
            .batch
            .expect("a batch")
    }

    fn holds(expression: &str, changes: &[(&str, &str)]) -> bool {
        Condition::parse(expression, Clock::new(Zone::UTC))
            .expect(expression)
            .holds(&batch(changes))
    }

    #[test]
    fn conditions_compare_by_what_a_field_holds() {
        for expression in [
            "crop_type=Tomato",
            "crop_type = Tomato",
            "crop_type!=Leek",
            "crop_type~MAT",
            "crop_type>Leek",
            "avg_germination_rate=87.5",
            "avg_germination_rate<100",
            "avg_germination_rate>=9.00",
            "number_of_images<=12",
            "number_of_images!=12.5",
            "avg_germination_rate~7.5",
            "batch_creation_date>2026-05-01T06:00:00Z",
            "batch_creation_date=2026-05-01T06:00:00.50Z",
            "batch_creation_date>=2026-05",
            "batch_creation_date<2026-05-02",
            "!warnings",
            "warnings=false",
            "comment!=",
        ] {
            assert!(holds(expression, &[]), "{expression}");
        }
        for expression in [
            "crop_type=tomato",
            "crop_type<Tomato",
            "avg_germination_rate>100",
            "number_of_images<9",
            "warnings",
            "batch_creation_date<=2026-05-01T06:00:00Z",
            "comment=",
        ] {
            assert!(!holds(expression, &[]), "{expression}");
        }
    }

    #[test]
    fn null_matches_nothing_but_the_question_for_it() {
        let null = [("comment", "null"), ("avg_germination_rate", "null")];
        assert!(holds("comment=", &null));
        for expression in [
            "comment!=",
            "comment=x",
            "comment!=x",
            "comment~x",
            "avg_germination_rate<1",
            "avg_germination_rate!=1",
        ] {
            assert!(!holds(expression, &null), "{expression}");
        }
    }

    #[test]
    fn mistakes_in_conditions_are_reported() {
        let message = |expression| {
            Condition::parse(expression, Clock::new(Zone::UTC))
                .expect_err(expression)
                .to_string()
        };
        assert_eq!(message("crop=Tomato"), "there is no field `crop`");
        assert!(message("crop_type").contains("the operator is missing"));
        assert!(message("crop_type?x").contains("the operator is missing"));
        assert!(message("!crop_type=x").contains("the operator is missing"));
        assert!(message("crop_type<").contains("the value is missing"));
        assert!(message("avg_germination_rate<high").contains("the value is not a number"));
        assert!(message("batch_creation_date>soon").contains("the value is not a date"));
    }

    #[test]
    fn fields_are_chosen_or_left_out() {
        let names = |words: &str| {
            let fields = Fields::parse(words).expect(words);
            (
                fields
                    .columns
                    .iter()
                    .map(|&column| COLUMNS[column].name)
                    .collect::<Vec<_>>(),
                fields.named,
            )
        };
        assert_eq!(
            names("warnings, batch_id"),
            (vec!["warnings", "batch_id"], true)
        );
        let (left, named) = names("-comment,-analysis_link");
        assert_eq!((left.len(), named), (16, false));
        for words in ["", ",", "crop", "batch_id,-comment", "batch_id,batch_id"] {
            assert!(Fields::parse(words).is_err(), "{words}");
        }
    }

    proptest! {
        #[test]
        fn any_choice_of_fields_is_kept_in_its_order(mut columns in Just((0..18).collect::<Vec<usize>>()).prop_shuffle(), count in 1_usize..18) {
            columns.truncate(count);
            let words: Vec<&str> = columns.iter().map(|&column| COLUMNS[column].name).collect();
            let fields = Fields::parse(&words.join(",")).expect("fields");
            prop_assert_eq!(&fields.columns, &columns);
            let minus: Vec<String> = words.iter().map(|word| format!("-{word}")).collect();
            let others = Fields::parse(&minus.join(",")).expect("fields");
            prop_assert_eq!(others.columns.len(), 18 - count);
            prop_assert!(others.columns.iter().all(|column| !columns.contains(column)));
            prop_assert!(others.columns.is_sorted());
        }
    }

    fn key(sorting: Sorting, batch: &Batch) -> Vec<u8> {
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
                let keys = |sorting| key(sorting, &batches[0]).cmp(&key(sorting, &batches[1]));
                prop_assert_eq!(keys(sorting), by(column).then(ties), "{}", word);
                let has_null = batches.iter().any(|batch| batch.typed(column).is_none());
                let reversed = if has_null { by(column) } else { by(column).reverse() };
                let descending = Sorting { descending: true, ..sorting };
                prop_assert_eq!(keys(descending), reversed.then(ties), "{}", word);
            }
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
            batches.sort_by_key(|batch| key(sorting, batch));
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
