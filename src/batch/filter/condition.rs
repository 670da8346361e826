//! A condition of `--where`, and which batches it holds for.

use std::cmp::Ordering;

use super::wanted::{Wanted, WantedList};
use crate::batch::{Batch, COLUMNS};

/// One `--where` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(super) column: usize,
    pub(super) test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    IsNull,
    IsNotNull,
    /// Equal to any of the values.
    AnyOf(WantedList),
    /// Different from all of the values.
    NoneOf(WantedList),
    Ordered(Operator, Wanted),
    /// Contains this lower-case text.
    Contains(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
}

/// Longer ones first, so that `<=` is not read as `<`.
pub(super) const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Contains),
];

impl Condition {
    /// Returns whether the condition is true. Null matches only a test for null.
    pub(crate) fn holds(&self, batch: &Batch) -> bool {
        let value = batch.typed(self.column);
        let Some(value) = value else {
            return self.test == Test::IsNull;
        };
        let value = value.as_ref();
        match &self.test {
            Test::IsNull => false,
            Test::IsNotNull => true,
            Test::AnyOf(wanted) => wanted.contains(value),
            Test::NoneOf(wanted) => !wanted.contains(value),
            Test::Ordered(operator, wanted) => wanted
                .order(value)
                .is_some_and(|order| operator.accepts(order)),
            Test::Contains(part) => value.to_lowercase().contains(part.as_str()),
        }
    }

    /// Returns the name of the field.
    pub(super) fn field(&self) -> &'static str {
        COLUMNS[self.column].name
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
