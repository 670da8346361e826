//! Reads a condition of `--where`: `FIELD OP VALUE`.

use super::condition::{Condition, OPERATORS, Operator, Test};
use super::joins;
use super::mistakes::{self, Spelling, mistake};
use super::names::field;
use super::wanted::{Wanted, WantedList};
use crate::batch::date::{self, Clock, Problem};
use crate::batch::timestamp::Timestamp;
use crate::batch::{COLUMNS, FieldType, is_number};
use crate::error::Failure;
use crate::text::one_line;

/// Characters that `\` makes ordinary in the values of `=` and `!=`.
const ESCAPED: &str = ",\\=!<>~ ";

impl Condition {
    /// Parses a condition; dates refer to `clock`.
    pub(crate) fn parse(expression: &str, clock: &Clock) -> Result<Self, Failure> {
        let refuse = |mistake: Failure| {
            let shown = mistakes::flag(&one_line(expression));
            let message = format!("{shown}: {mistake}");
            mistake.with_message(message)
        };
        let text = expression.trim_start();
        let (is_negated, bare) = match text.strip_prefix('!') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let end = bare.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let (name, rest) = bare.split_at(end.unwrap_or(bare.len()));
        let is_spaced = rest.starts_with(char::is_whitespace);
        let rest = rest.trim_start();
        let operator = OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign));
        let Some((sign, operator)) = operator else {
            let name = mistakes::whole_name(bare, name);
            if name.is_empty() {
                return Err(refuse(mistake("the field is missing")));
            }
            let column = field(name)?;
            joins::check(bare, name.len(), false).map_err(refuse)?;
            if !rest.is_empty() || COLUMNS[column].kind != FieldType::Boolean {
                return Err(refuse(mistakes::no_operator(name, rest)));
            }
            let wanted = if is_negated { "false" } else { "true" };
            let test = Test::AnyOf(WantedList::new(vec![Wanted::Text(wanted.to_owned())]));
            return Ok(Self { column, test });
        };
        if name.is_empty() {
            return Err(refuse(mistake("the field is missing")));
        }
        let column = field(name)?;
        let value = match &rest[sign.len()..] {
            // A space in `comment= a` counts; in `comment = a`, it does not.
            value if COLUMNS[column].kind == FieldType::Text && !is_spaced => value,
            value => value.trim_start(),
        };
        let spelling = Spelling {
            column,
            sign,
            value,
        };
        if is_negated {
            return Err(refuse(spelling.negated()));
        }
        spelling.check().map_err(refuse)?;
        let is_free = COLUMNS[column].kind == FieldType::Text && !spelling.is_list();
        joins::check(bare, bare.len() - value.len(), is_free).map_err(refuse)?;
        let test = read_test(*operator, &spelling, clock).map_err(refuse)?;
        Ok(Self { column, test })
    }
}

fn read_test(operator: Operator, spelling: &Spelling<'_>, clock: &Clock) -> Result<Test, Failure> {
    let one = |value: &str| read_value(value, spelling, clock);
    let any = || -> Result<WantedList, Failure> {
        let values = split(spelling)?;
        let values: Result<_, _> = values.iter().map(|value| one(value)).collect();
        values.map(WantedList::new)
    };
    Ok(match (operator, spelling.value) {
        (Operator::Equal, "") => Test::IsNull,
        (Operator::NotEqual, "") => Test::IsNotNull,
        (_, "") => return Err(mistake("the value is missing")),
        (Operator::Equal, _) => Test::AnyOf(any()?),
        (Operator::NotEqual, _) => Test::NoneOf(any()?),
        (Operator::Contains, value) => Test::Contains(value.to_lowercase()),
        (operator, value) => Test::Ordered(operator, one(value)?),
    })
}

/// Reads one value by the type of the field.
fn read_value(value: &str, spelling: &Spelling<'_>, clock: &Clock) -> Result<Wanted, Failure> {
    match COLUMNS[spelling.column].kind {
        FieldType::Boolean if spelling.is_list() && !matches!(value, "true" | "false") => {
            Err(spelling.no_boolean())
        }
        FieldType::Text | FieldType::Boolean => Ok(Wanted::Text(value.to_owned())),
        FieldType::Integer | FieldType::Decimal if is_number(value) => {
            Ok(Wanted::Number(value.to_owned()))
        }
        FieldType::Integer | FieldType::Decimal => Err(spelling.no_number(value)),
        // A fraction of a second, as the service writes it.
        FieldType::Date => {
            match Timestamp::parse(value) {
                Some(instant) => Ok(Wanted::Instant(instant)),
                None => date::parse(value, clock)
                    .map(Wanted::of_date)
                    .map_err(|problem| match problem {
                        // It is possible in UTC.
                        Problem::Fraction(_) => spelling.no_date(value, &Problem::Unknown),
                        problem => spelling.no_date(value, &problem),
                    }),
            }
        }
    }
}

/// Splits the value of `=` or `!=` at its commas, and takes `\` away.
fn split(spelling: &Spelling<'_>) -> Result<Vec<String>, Failure> {
    let mut values = vec![String::new()];
    let mut letters = spelling.value.chars();
    while let Some(letter) = letters.next() {
        let ordinary = match letter {
            ',' => {
                values.push(String::new());
                continue;
            }
            '\\' => match letters.next() {
                Some(next) if ESCAPED.contains(next) => next,
                next => return Err(spelling.no_escape(next, ESCAPED)),
            },
            letter => letter,
        };
        if let Some(value) = values.last_mut() {
            value.push(ordinary);
        }
    }
    if values.iter().any(String::is_empty) {
        return Err(spelling.empty_value());
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
