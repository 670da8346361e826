//! `--fields`: which fields to write.

use super::names::field;
use crate::batch::COLUMNS;
use crate::error::{self, Failure};

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
