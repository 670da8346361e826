//! The name of a table.

use super::quoted;

/// The longest name that PostgreSQL keeps; it would cut others, and find them no more.
pub(super) const LONGEST_NAME: usize = 63;

/// The name of a table, as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableName {
    /// Nothing where the server's search path decides.
    pub(super) schema: Option<String>,
    pub(super) name: String,
}

impl TableName {
    /// Writes it for SQL.
    pub(super) fn quoted(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", quoted(schema), quoted(&self.name)),
            None => quoted(&self.name),
        }
    }

    /// Reads `name` or `schema.name`, each perhaps in double quotes, which then may hold dots.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (first, rest) = part(text)?;
        let (schema, name) = match rest {
            "" => (None, first),
            rest => {
                let (name, rest) = part(rest.strip_prefix('.')?)?;
                if !rest.is_empty() {
                    return None;
                }
                (Some(first), name)
            }
        };
        let fits = |name: &String| (1..=LONGEST_NAME).contains(&name.len());
        (fits(&name) && schema.as_ref().is_none_or(fits)).then_some(Self { schema, name })
    }
}

/// Takes one name off the front of `text`.
fn part(text: &str) -> Option<(String, &str)> {
    let Some(inside) = text.strip_prefix('"') else {
        let end = text.find('.').unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut name = String::new();
    let mut rest = inside;
    loop {
        let (before, after) = rest.split_once('"')?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_they_are() {
        for (table, sql) in [
            ("batches", r#""batches""#),
            ("Batches", r#""Batches""#),
            ("a.b", r#""a"."b""#),
            (r#""a.b""#, r#""a.b""#),
            (r#""a""b"."c d""#, r#""a""b"."c d""#),
            ("x; drop table y --", r#""x; drop table y --""#),
            ("a\"b", "\"a\"\"b\""),
        ] {
            let found = TableName::parse(table).expect(table);
            assert_eq!(found.quoted(), sql);
        }
        let long = "x".repeat(64);
        for table in ["", ".", "a.", ".a", "a.b.c", "\"a", "\"a\"b", &long] {
            assert_eq!(TableName::parse(table), None, "{table}");
        }
    }
}
