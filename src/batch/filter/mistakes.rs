//! Mistakes in conditions of `--where`, each with the right spelling.

use crate::batch::date::{FORMS, Problem};
use crate::batch::{COLUMNS, FieldType, find_column, is_number};
use crate::error::Failure;

/// Returns what is wrong with a condition. A hint on what to write instead may replace the general one.
pub(super) fn mistake(why: impl Into<String>) -> Failure {
    let hint = "write FIELD OP VALUE with one of = != < <= > >= ~, such as 'crop_type=Tomato'";
    Failure::usage(why, hint)
}

/// Shows a condition as users write it.
pub(super) fn flag(condition: &str) -> String {
    format!("`{}`", argument(condition))
}

/// Returns a condition as it is written on the command line, quoted for a shell.
pub(super) fn argument(condition: &str) -> String {
    format!("--where '{}'", condition.replace('\'', r"'\''"))
}

/// Operators of other languages, and ours. The words of one that begins with another come first.
const OTHER_OPERATORS: [(&str, &str); 26] = [
    ("≠", "!="),
    ("≤", "<="),
    ("≥", ">="),
    ("!", "!="),
    (":", "="),
    ("is not null", "!="),
    ("is null", "="),
    ("is not", "!="),
    ("is", "="),
    ("equals", "="),
    ("eq", "="),
    ("not in", "!="),
    ("not", "!="),
    ("ne", "!="),
    ("in", "="),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
    ("before", "<"),
    ("after", ">"),
    ("contains", "~"),
    ("includes", "~"),
    ("matches", "~"),
    ("ilike", "~"),
    ("like", "~"),
];

/// Explains a condition on the field `name` without an operator; `rest` is the text after the name.
pub(super) fn no_operator(name: &str, rest: &str) -> Failure {
    if rest.starts_with("!~") {
        let hint = "`~` has no opposite; exclude whole values with `!=`";
        return mistake("`!~` is not an operator").hint(hint);
    }
    for (word, sign) in OTHER_OPERATORS {
        let begins = rest
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word));
        let is_word = word.starts_with(|letter: char| letter.is_ascii_alphabetic());
        if !begins || is_word && rest[word.len()..].starts_with(|letter: char| letter != ' ') {
            continue;
        }
        // Such as `! =` or `is =`.
        let value = rest[word.len()..].trim().trim_start_matches('=');
        let mut value = value.trim_start().to_owned();
        if word.ends_with("in") {
            let inner = value.trim_matches(['(', ')']).split(',');
            value = inner.map(str::trim).collect::<Vec<_>>().join(",");
        }
        let right = flag(&format!("{name}{sign}{value}"));
        return mistake(format!("`{word}` is not an operator")).hint(format!("write {right}"));
    }
    mistake("the operator is missing")
}

/// Returns the name of the field of a condition that begins with `name`: with the words up to an operator, if `name`
/// alone is not a field.
pub(super) fn whole_name<'a>(condition: &'a str, name: &'a str) -> &'a str {
    if find_column(name).is_some() {
        return name;
    }
    let signs = condition.find(['=', '!', '<', '>', '~']);
    condition[..signs.unwrap_or(condition.len())].trim()
}

/// Returns a number with commas as it is meant: `1,234` has thousands, `87,5` has decimals.
fn without_comma(value: &str) -> Option<String> {
    let mut parts = value.split(',').skip(1).peekable();
    parts.peek()?;
    let right = if parts.all(|part| part.len() == 3) {
        value.replace(',', "")
    } else {
        value.replacen(',', ".", 1)
    };
    is_number(&right).then_some(right)
}

/// A condition as it was written.
pub(super) struct Spelling<'a> {
    pub(super) column: usize,
    pub(super) sign: &'a str,
    pub(super) value: &'a str,
}

impl Spelling<'_> {
    pub(super) fn name(&self) -> &'static str {
        COLUMNS[self.column].name
    }

    fn kind(&self) -> FieldType {
        COLUMNS[self.column].kind
    }

    /// Returns whether commas split the value.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.sign, "=" | "!=")
    }

    /// Shows the condition with another operator and value.
    fn with(&self, sign: &str, value: &str) -> String {
        flag(&format!("{}{sign}{value}", self.name()))
    }

    /// Finds mistakes that would otherwise be taken for a value.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.check_operator()?;
        if self.kind().is_numeric() && self.value.contains('%') {
            let numbers = self.value.split(',').map(|value| {
                let number = value.trim_end().strip_suffix('%');
                number.map_or(value, str::trim)
            });
            let numbers: Vec<&str> = numbers.collect();
            if numbers.iter().all(|number| is_number(number)) {
                let right = self.with(self.sign, &numbers.join(","));
                let why = "the value is a number without `%`";
                return Err(mistake(why).hint(format!("write {right}")));
            }
        }
        Ok(())
    }

    /// Finds operators of other languages.
    fn check_operator(&self) -> Result<(), Failure> {
        let next = self.value.chars().next();
        let is_text = matches!(self.kind(), FieldType::Text | FieldType::Boolean);
        let (typed, sign) = match (self.sign, next) {
            ("=", Some('=')) => ("==", "="),
            ("!=", Some('=')) => ("!==", "!="),
            ("=", Some('~')) => ("=~", "~"),
            ("<", Some('>')) => ("<>", "!="),
            ("=", Some('<')) if !is_text => ("=<", "<="),
            ("=", Some('>')) if !is_text => ("=>", ">="),
            _ => return Ok(()),
        };
        let value = self.value.trim_start_matches(['=', '~', '>', '<']);
        let right = self.with(sign, value.trim_start());
        let literal = if is_text && self.is_list() {
            let literal = self.with(self.sign, &format!("\\{}", self.value));
            format!(
                "; for a text that begins with `{}`, write {literal}",
                &self.value[..1]
            )
        } else {
            String::new()
        };
        Err(mistake(format!("`{typed}` is not an operator"))
            .hint(format!("write {right}{literal}")))
    }

    /// Explains a condition with `!` before its field.
    pub(super) fn negated(&self) -> Failure {
        let opposite = match self.sign {
            "=" => "!=",
            "!=" => "=",
            "<" => ">=",
            "<=" => ">",
            ">" => "<=",
            ">=" => "<",
            _ => {
                let hint = "`~` has no opposite; exclude whole values with `!=`";
                return mistake("`!` does not go with `~`").hint(hint);
            }
        };
        let right = self.with(opposite, self.value);
        mistake("`!` goes only with the name of a boolean field").hint(format!("write {right}"))
    }

    pub(super) fn no_boolean(&self) -> Failure {
        let name = self.name();
        mistake("the value is neither true nor false").hint(format!(
            "write {} or {}",
            flag(name),
            flag(&format!("!{name}"))
        ))
    }

    pub(super) fn no_number(&self, value: &str) -> Failure {
        let no_number = mistake("the value is not a number such as 80.5");
        match self.blanks_removed(is_number) {
            Some(right) => no_number.hint(right),
            None => match without_comma(value) {
                Some(right) => no_number.hint(format!("write {}", self.with(self.sign, &right))),
                None => no_number,
            },
        }
    }

    pub(super) fn no_date(&self, value: &str, problem: &Problem) -> Failure {
        let why = problem
            .reason()
            .map(|why| why.replacen("it", "the value", 1));
        let why = why.unwrap_or_else(|| "the value is not a date such as 2026-05-01".to_owned());
        let spelled = |right: &str| {
            let value = self.value.replacen(value, right, 1);
            argument(&format!("{}{}{value}", self.name(), self.sign))
        };
        let hint = self
            .blanks_removed(|part| !part.is_empty() && part != value)
            .filter(|_| value.trim() != value)
            .or_else(|| problem.advice(value, spelled));
        mistake(why).hint(hint.unwrap_or_else(|| FORMS.to_owned()))
    }

    /// Says how to write the values without blanks, if `is_valid` accepts them then.
    fn blanks_removed(&self, is_valid: impl Fn(&str) -> bool) -> Option<String> {
        let parts: Vec<&str> = if self.is_list() {
            self.value.split(',').map(str::trim).collect()
        } else {
            vec![self.value.trim()]
        };
        let right = parts.join(",");
        (right != self.value && parts.iter().all(|part| is_valid(part))).then(|| {
            let right = self.with(self.sign, &right);
            format!("spaces count; write {right}")
        })
    }

    /// Refuses `\` before the character `next`.
    pub(super) fn no_escape(&self, next: Option<char>, escaped: &str) -> Failure {
        let mut right = String::new();
        let mut letters = self.value.chars().peekable();
        while let Some(letter) = letters.next() {
            right.push(letter);
            if letter == '\\' {
                let next = letters.next_if(|next| escaped.contains(*next));
                right.push(next.unwrap_or('\\'));
            }
        }
        let why = match next {
            Some(next) => format!("`\\{next}` is not an escape"),
            None => "the value ends with a single `\\`".to_owned(),
        };
        let right = self.with(self.sign, &right);
        mistake(why).hint(format!("for a backslash in a value, write {right}"))
    }

    pub(super) fn empty_value(&self) -> Failure {
        let values: Vec<&str> = self
            .value
            .split(',')
            .filter(|part| !part.is_empty())
            .collect();
        let name = self.name();
        let right = match values[..] {
            [] => String::new(),
            _ => format!("write {}; ", self.with(self.sign, &values.join(","))),
        };
        mistake("a value in the list is empty").hint(format!(
            "{right}`\\,` is a comma in a value, and {} matches null",
            flag(&format!("{name}="))
        ))
    }
}
