//! The password file of PostgreSQL's own programs: one `host:port:database:user:password` per line.

use std::fs::{self, Metadata};
use std::path::PathBuf;

/// Finds the password for a connection (host, port, database and user) in the file at `path`, or in the default one.
pub(super) fn find(connection: [&str; 4], path: Option<PathBuf>) -> Option<String> {
    let path = path.or_else(default_path)?;
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    if is_open(&metadata) {
        log::warn!(
            "ignoring the password file `{}`, because other users can read it; restrict it with chmod 600",
            path.display()
        );
        return None;
    }
    let read = fs::read_to_string(&path).inspect_err(|error| {
        let path = path.display();
        log::warn!("ignoring the password file `{path}`, because it cannot be read: {error}");
    });
    let text = read.ok()?;
    text.lines().find_map(|line| password(line, connection))
}

#[cfg(unix)]
fn default_path() -> Option<PathBuf> {
    let dirs = directories::BaseDirs::new()?;
    Some(dirs.home_dir().join(".pgpass"))
}

#[cfg(not(unix))]
fn default_path() -> Option<PathBuf> {
    let dirs = directories::BaseDirs::new()?;
    Some(dirs.config_dir().join("postgresql").join("pgpass.conf"))
}

/// Returns whether users other than the owner have access.
#[cfg(unix)]
fn is_open(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open(_: &Metadata) -> bool {
    false
}

/// Returns the password of a matching line.
fn password(line: &str, connection: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut rest = line.chars();
    for value in connection {
        let (is_star, text, is_last) = field(&mut rest);
        if !(is_star || text == value) || is_last {
            return None;
        }
    }
    // The last field ends with the line.
    let (_, password, _) = field(&mut rest);
    Some(password).filter(|password| !password.is_empty())
}

/// Reads a field up to a colon. Also returns whether it is a star, which matches everything, and whether the line
/// ends with it.
fn field(rest: &mut std::str::Chars<'_>) -> (bool, String, bool) {
    let (mut text, mut is_escaped) = (String::new(), false);
    while let Some(letter) = rest.next() {
        match letter {
            ':' => return (text == "*" && !is_escaped, text, false),
            '\\' => {
                is_escaped = true;
                text.extend(rest.next());
            }
            other => text.push(other),
        }
    }
    (text == "*" && !is_escaped, text, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_match_field_by_field() {
        for (line, expected) in [
            (r"db.example:5432:pla\:nts:me:secret", Some("secret")),
            (r"*:*:*:*:se\:cr\\et", Some(r"se:cr\et")),
            (r"*:*:*:me:a:b", Some("a")),
            (r"\*:*:*:me:secret", None),
            (r"*:5433:*:me:secret", None),
            (r"*:*:pla:me:secret", None),
            (r"#*:*:*:*:secret", None),
            (r"*:*:*:*:", None),
            (r"*:*:*:me", None),
            ("", None),
        ] {
            let found = password(line, ["db.example", "5432", "pla:nts", "me"]);
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }
}
