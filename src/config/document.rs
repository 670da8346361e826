//! Changes a config file. Its comments and its order are kept.

use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::file::{self, ChosenProfile};
use super::file::{absolute, others_may_read, warn_readable};
use super::profile::{ConfigFile, Profile, in_file, unknown_key};
use super::settings::{Given, Settings};
use super::table::{FlagValue, SETTINGS};
use crate::client::BaseUrl;
use crate::error::Failure;
use crate::text;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A config file that is being changed. It may not exist yet.
pub(crate) struct ConfigDocument {
    pub(crate) path: PathBuf,
    /// The text of the file; `None` if it does not exist.
    before: Option<String>,
    document: DocumentMut,
    /// The profiles before the change.
    file: ConfigFile,
}

impl ConfigDocument {
    /// Reads the file at `path`, or the default one.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let document = Self::read(file::path(path)?)?;
        if document.file.has_secret() && others_may_read(&document.path) {
            warn_readable(&document.path);
        }
        Ok(document)
    }

    /// Reads the file again, without the change: another run may have changed it.
    pub(crate) fn read_again(&self) -> Result<Self, Failure> {
        Self::read(self.path.clone())
    }

    fn read(path: PathBuf) -> Result<Self, Failure> {
        let before = match file::read_text(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(file::unreadable(&path, error)),
        };
        let text = before.as_deref().unwrap_or_default();
        let file = ConfigFile::parse(text);
        let file = file.map_err(|mistake| in_file(mistake, &path))?;
        let mut document: DocumentMut = text.parse().map_err(|_| unsupported(&path))?;
        if document.is_empty() {
            move_comments_to_top(&mut document);
        }
        Ok(Self {
            path,
            before,
            document,
            file,
        })
    }

    /// Returns whether the file is the one that is read without `--config`.
    pub(crate) fn has_default_path(&self) -> bool {
        file::default_path().as_ref() == Some(&self.path)
    }

    /// Returns the name of the profile to change, which need not exist.
    pub(crate) fn profile_name(&self, requested: Option<&str>) -> Result<String, Failure> {
        let name = requested.or(self.file.default_profile.as_deref());
        match name.unwrap_or("default") {
            "" => Err(Failure::usage(
                "the name of the profile is empty",
                "name it with `--profile NAME`",
            )),
            name => Ok(name.to_owned()),
        }
    }

    /// Returns the name of the default profile, after the change.
    pub(crate) fn default_profile(&self) -> Option<&str> {
        self.document.get("default_profile")?.as_str()
    }

    /// Returns the settings in effect before the change, with the profile called `name` even if it does not exist.
    pub(crate) fn settings(&self, given: &Given, name: &str) -> Settings {
        let profile = self.file.profiles.get(name).cloned().unwrap_or_default();
        self.resolve(given, name, profile)
    }

    /// Returns the base URL of the profile called `name` before the change, as it is written.
    pub(crate) fn stored_base_url(&self, name: &str) -> Option<&str> {
        self.file.profiles.get(name)?.base_url.as_deref()
    }

    fn resolve(&self, given: &Given, name: &str, profile: Profile) -> Settings {
        let chosen = ChosenProfile {
            name: name.to_owned(),
            profile,
            ..ChosenProfile::default()
        };
        Settings::resolve(given, chosen, Some(self.path.clone()))
    }

    /// Sets `key` of the profile called `name`, which is created if needed.
    pub(crate) fn set(&mut self, name: &str, key: &str, value: impl Into<Value>) {
        put(self.profile(name), key, value.into());
    }

    /// Refers the profile called `name` to a secret in the file at `path`, and to no other secret.
    pub(crate) fn set_secret_file(&mut self, name: &str, path: &str) {
        let profile = self.profile(name);
        let (mut comments, mut behind) = (String::new(), String::new());
        for key in ["client_secret", "client_secret_command"] {
            let value = profile.get(key).and_then(Item::as_value);
            let comment = value.and_then(|value| value.decor().suffix()?.as_str());
            if let Some(comment) = comment.map(str::trim).filter(|text| is_comment(text)) {
                behind.extend([" ", comment]);
            }
            if let Some(key) = profile.key(key) {
                let comment = key.leaf_decor().prefix().and_then(|prefix| prefix.as_str());
                comments += comment.unwrap_or_default();
            }
            profile.remove(key);
        }
        put(profile, "client_secret_file", path.into());
        if comments.contains('#')
            && let Some(mut key) = profile.key_mut("client_secret_file")
        {
            let decor = key.leaf_decor_mut();
            let own = decor.prefix().and_then(|prefix| prefix.as_str());
            let own = own.unwrap_or_default().to_owned();
            decor.set_prefix(comments + &own);
        }
        let value = profile.get_mut("client_secret_file");
        if let Some(value) = value.and_then(Item::as_value_mut)
            && !behind.is_empty()
        {
            let decor = value.decor_mut();
            let own = decor.suffix().and_then(|suffix| suffix.as_str());
            let own = own.unwrap_or_default().trim_end().to_owned();
            decor.set_suffix(own + &behind);
        }
    }

    /// Makes the profile in effect the default: `default` if there is one, or the profile called `name`. Changes nothing
    /// if there is a default profile already.
    pub(crate) fn set_missing_default_profile(&mut self, name: &str) {
        if self.document.contains_key("default_profile") {
            return;
        }
        let is_default = self.file.profiles.contains_key("default");
        self.set_default_profile(if is_default { "default" } else { name });
    }

    fn set_default_profile(&mut self, name: &str) {
        let root = self.document.as_table_mut();
        let is_first = root.get_values().is_empty();
        put(root, "default_profile", name.into());
        let text = self.document.to_string();
        if !is_first || !text.starts_with("default_profile") {
            return;
        }
        // The key is now above the comments of the first table. The comments at the top of the file stay there, except for
        // one directly above the table.
        let (key, below) = text.split_once('\n').unwrap_or((&text, ""));
        let is_comment = |line: &&str| line.trim().is_empty() || line.starts_with('#');
        let comments = below.split_inclusive('\n').take_while(is_comment);
        let comments = &below[..comments.map(str::len).sum()];
        let normal = comments.replace('\r', "");
        let (heading, own) = normal.rsplit_once("\n\n").unwrap_or(("", &normal));
        let heading = match heading.trim_end() {
            "" => String::new(),
            heading => format!("{heading}\n"),
        };
        let (own, rest) = (own.trim_start_matches('\n'), &below[comments.len()..]);
        let gap = if own.is_empty() && rest.is_empty() {
            ""
        } else {
            "\n"
        };
        let moved = format!("{heading}{key}\n{gap}{own}{rest}");
        if let Ok(document) = moved.parse() {
            self.document = document;
        }
    }

    /// Returns the profile called `name`.
    fn profile(&mut self, name: &str) -> &mut dyn TableLike {
        let profiles = self.document.get("profiles").and_then(Item::as_table);
        let is_new = profiles.is_some_and(|profiles| !profiles.contains_key(name));
        let comments = self.document.trailing().as_str().unwrap_or_default();
        let comments = comments.to_owned();
        if is_new {
            self.document.set_trailing("");
        }
        let root = self.document.as_table_mut();
        let profiles = root.entry("profiles").or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let is_inline = profiles.is_inline_table();
        let profiles = profiles.as_table_like_mut().expect("checked when read");
        let profile = profiles.entry(name).or_insert_with(|| {
            if is_inline {
                return Item::Value(InlineTable::new().into());
            }
            // At the end of the file, after the comments there: these belong to the table before it.
            let mut table = Table::new();
            if is_new {
                table.set_position(Some(isize::MAX));
                table.decor_mut().set_prefix(format!("{comments}\n"));
            }
            Item::Table(table)
        });
        profile.as_table_like_mut().expect("checked when read")
    }

    /// Sets `key`, a setting of the profile called `name` or `default_profile`, to a value as a person types it.
    pub(crate) fn set_typed(&mut self, name: &str, key: &str, value: &str) -> Result<(), Failure> {
        if key == "default_profile" {
            if !self.file.profiles.contains_key(value) {
                return Err(in_file(file::no_profile(value, "", &self.file), &self.path));
            }
            self.set_default_profile(value);
            return Ok(());
        }
        self.set(name, key, typed_value(key, value)?);
        let changed = ConfigFile::parse(&self.document.to_string());
        let mut changed = changed.map_err(|_| unsupported(&self.path))?;
        let profile = changed.profiles.remove(name).unwrap_or_default();
        let settings = self.resolve(&Given::default(), name, profile);
        let allow_http = settings.client_options()?.allow_http;
        settings.parsed_base_url(/* allow_http: */ true)?;
        settings.secret()?;
        let secret_file = settings.secret_file.as_ref();
        let secret_file = secret_file.filter(|path| path.as_os_str() != "-" && !path.exists());
        if let Some(path) = secret_file.filter(|_| key == "client_secret_file") {
            log::warn!("the file `{}` does not exist yet", path.display());
        }
        // The two keys are set one after the other, in any order.
        if key == "base_url" && settings.parsed_base_url(allow_http).is_err() {
            log::warn!(
                "`base_url` is plain http to another machine, which also needs `trayscan config set allow_http true`"
            );
        }
        Ok(())
    }

    /// Returns the changed text; `None` if nothing changed.
    pub(crate) fn text(&self) -> Result<Option<String>, Failure> {
        let mut text = self.document.to_string();
        let before = self.before.as_deref().unwrap_or_default();
        // The crate drops both.
        if before.contains("\r\n") {
            text = text.replace("\r\n", "\n").replace('\n', "\r\n");
        }
        if before.starts_with(BYTE_ORDER_MARK) && !text.starts_with(BYTE_ORDER_MARK) {
            text.insert(0, BYTE_ORDER_MARK);
        }
        // A file that cannot be read again must not replace one that can.
        ConfigFile::parse(&text).map_err(|_| unsupported(&self.path))?;
        Ok((self.before.as_ref() != Some(&text)).then_some(text))
    }
}

/// Sets a key, and keeps the comments at it.
fn put(table: &mut dyn TableLike, key: &str, mut value: Value) {
    if let Some(item) = table.get_mut(key) {
        if let Some(old) = item.as_value() {
            // Its quotes are kept, too.
            if old.as_str().is_some_and(|old| value.as_str() == Some(old)) {
                return;
            }
            *value.decor_mut() = old.decor().clone();
        }
        *item = Item::Value(value);
    } else {
        table.insert(key, Item::Value(value));
    }
}

/// Moves the comments of a file without keys to its top: keys are added below them.
fn move_comments_to_top(document: &mut DocumentMut) {
    let comments = document.trailing().as_str().unwrap_or_default();
    let comments = comments.trim_end().to_owned();
    if !comments.is_empty() {
        document.set_trailing("");
        let decor = document.as_table_mut().decor_mut();
        decor.set_prefix(format!("{comments}\n\n"));
    }
}

/// Returns whether `text` is a comment on one line.
fn is_comment(text: &str) -> bool {
    text.starts_with('#') && !text.contains('\n')
}

fn unsupported(path: &Path) -> Failure {
    let message = format!("cannot change the config file `{}`", path.display());
    Failure::usage(message, "edit it by hand; it was left unchanged")
}

/// Returns the value of `key` in TOML.
pub(super) fn typed_value(key: &str, value: &str) -> Result<Value, Failure> {
    if key == "client_secret" {
        return Err(Failure::usage(
            "the client secret is not set this way: others could see it",
            "`trayscan login` asks for it and stores it in a separate file",
        ));
    }
    let Some(info) = SETTINGS.iter().find(|info| info.key == key) else {
        let keys = SETTINGS.iter().map(|info| info.key);
        let keys = keys.filter(|key| *key != "client_secret");
        let keys: Vec<&str> = keys.chain(["default_profile"]).collect();
        return Err(unknown_key(&[key], &keys));
    };
    let refused = || format!("`config set {key}`: the value `{value}` is invalid");
    let refuse = |expected: &str| Failure::usage(refused(), format!("it must be {expected}"));
    let text = toml::Value::from(value);
    let read = match info.value {
        FlagValue::Number { .. } => value.parse().map_or(text, toml::Value::Integer),
        FlagValue::Boolean => value.parse().map_or(text, toml::Value::Boolean),
        // A shell command may begin with a bracket, too.
        _ if key == "client_secret_command" && value.trim_start().starts_with('[') => {
            let list = "a list of texts, such as [\"pass\", \"show\", \"trayscan\"]";
            let is_meant = value.trim_start()[1..]
                .trim_start()
                .starts_with(['"', '\'']);
            match value.trim().parse() {
                Ok(read) => read,
                Err(_) if is_meant => return Err(refuse(list)),
                Err(_) => text,
            }
        }
        _ => text,
    };
    let checked = Profile::check(key, read.clone());
    checked.map_err(|mistake| mistake.with_message(refused()))?;
    match (info.value, &read) {
        (FlagValue::Number { least, example }, toml::Value::Integer(number)) => {
            if *number >= i64::from(least) {
                return Ok((*number).into());
            }
            let expected = format!("a whole number, at least {least}, such as {example}");
            Err(refuse(&expected))
        }
        (_, toml::Value::Boolean(is_set)) => Ok((*is_set).into()),
        (_, toml::Value::Array(list)) => Ok(list.iter().filter_map(toml::Value::as_str).collect()),
        _ => match key {
            "timeout" if text::duration(value).is_ok_and(|time| time.is_zero()) => {
                Err(refuse("longer than zero, such as 60s"))
            }
            "base_url" if !value.is_empty() => {
                // It is not quoted: it may contain a password.
                let name = "`config set base_url`: the value";
                let url = BaseUrl::parse_named(name, value, /* allow_http: */ true)?;
                url.refuse_version(name)?;
                Ok(value.into())
            }
            "client_secret_file" if value == "-" => Ok(value.into()),
            "client_secret_file" | "ca_cert" => Ok(stored_path(value)?.into()),
            _ => Ok(value.into()),
        },
    }
}

/// Returns a path that is the same from every folder. An empty one counts as not set.
fn stored_path(path: &str) -> Result<String, Failure> {
    if path.is_empty() || path.starts_with("~/") {
        Ok(path.to_owned())
    } else {
        absolute(Path::new(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use tempfile::TempDir;

    /// Opens a config file with `text`, changes it, and returns its new text.
    fn changed(text: &str, change: impl FnOnce(&mut ConfigDocument)) -> String {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).expect("a file");
        let mut document = ConfigDocument::open(Some(&path)).expect("a document");
        change(&mut document);
        let changed = document.text().expect("valid");
        changed.unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn comments_and_order_are_kept() {
        let text = "# Top.\n\n# Ours.\n[profiles.b] # B\n# Where.\nbase_url = 'https://a' # the one\nretries = 3\n\n# Last.\n[targets.Leek]\nusable_rate_min = 90 # percent\n# End.\n";
        let set = |document: &mut ConfigDocument| {
            document.set("b", "base_url", "https://new");
            document.set("b", "client_id", "x");
            document.set("b", "retries", 4);
        };
        let expected = text
            .replace("'https://a'", "\"https://new\"")
            .replace("retries = 3", "retries = 4\nclient_id = \"x\"");
        assert_eq!(changed(text, set), expected);
        let same = |document: &mut ConfigDocument| document.set("b", "base_url", "https://a");
        assert_eq!(changed(text, same), text, "the quotes are kept, too");
    }

    #[test]
    fn comments_stay_where_they_belong() {
        let set = |document: &mut ConfigDocument| document.set("a", "retries", 1);
        for (text, expected) in [
            (
                "# Mine.\n# Ours.",
                "# Mine.\n# Ours.\n\n[profiles.a]\nretries = 1\n",
            ),
            (
                "\u{feff}\r\n# Mine.\r\n",
                "\u{feff}\r\n# Mine.\r\n\r\n[profiles.a]\r\nretries = 1\r\n",
            ),
        ] {
            assert_eq!(changed(text, set), expected);
        }
        let set = |document: &mut ConfigDocument| document.set_default_profile("a");
        for (text, expected) in [
            (
                "# About a.\n[profiles.a]\n",
                "default_profile = \"a\"\n\n# About a.\n[profiles.a]\n",
            ),
            (
                "# Mine.\n\n# About a.\n[profiles.a]\n",
                "# Mine.\ndefault_profile = \"a\"\n\n# About a.\n[profiles.a]\n",
            ),
            (
                "# Mine.\r\n\r\n# About a.\r\n[profiles.a]\r\n",
                "# Mine.\r\ndefault_profile = \"a\"\r\n\r\n# About a.\r\n[profiles.a]\r\n",
            ),
            ("# Mine.\n", "# Mine.\n\ndefault_profile = \"a\"\n"),
        ] {
            assert_eq!(changed(text, set), expected);
        }
    }

    #[test]
    fn line_endings_and_byte_order_mark_are_kept() {
        let text = "\u{feff}# A\r\n[profiles.a]\r\nretries = 1 # one\r\n";
        let new = changed(text, |document| document.set("a", "api", "v2"));
        assert_eq!(new, format!("{text}api = \"v2\"\r\n"));
        let same = changed(text, |document| document.set("a", "retries", 1));
        assert_eq!(same, text);
    }

    #[test]
    fn a_list_is_stored_as_a_list() {
        let set = |value: &str| typed_value("client_secret_command", value);
        let list = set(r#"["pass", "show x"]"#).expect("a list");
        assert_eq!(list.to_string(), r#"["pass", "show x"]"#);
        let list = set(" [\"pass\"]\n").expect("a list");
        assert_eq!(list.to_string(), r#"["pass"]"#);
        for command in [
            "pass show x",
            "[ -n \"$HOME\" ] && echo s",
            "[[ 1 == 1 ]] && echo s",
        ] {
            let text = set(command).expect("text");
            assert_eq!(text.as_str(), Some(command));
        }
        for wrong in [r#"["pass" "show"]"#, "[]", "[1]", "['a'"] {
            assert!(set(wrong).is_err(), "{wrong}");
        }
        let other = typed_value("client_id", "[a]").expect("text");
        assert_eq!(other.as_str(), Some("[a]"));
    }

    #[test]
    fn every_spelling_of_a_profile_can_be_changed() {
        for (text, expected) in [
            ("", "[profiles.a]\nretries = 1\n"),
            ("profiles = {}\n", "profiles = { a = { retries = 1 } }\n"),
            (
                "profiles.a.api = \"v1\"\n",
                "profiles.a.api = \"v1\"\nprofiles.a.retries = 1\n",
            ),
            (
                "[profiles]\na = { api = \"v1\" } # A\n",
                "[profiles]\na = { api = \"v1\" , retries = 1 } # A\n",
            ),
            (
                "[profiles.b]\n",
                "[profiles.b]\n\n[profiles.a]\nretries = 1\n",
            ),
            (
                "profiles.b.api = \"v1\"\n",
                "profiles.b.api = \"v1\"\n\n[profiles.a]\nretries = 1\n",
            ),
        ] {
            let new = changed(text, |document| document.set("a", "retries", 1));
            assert_eq!(new, expected, "{text}");
        }
        let odd = changed("", |document| document.set("a.b \"c\"\n", "retries", 1));
        let file = ConfigFile::parse(&odd).expect("valid");
        assert!(file.profiles.contains_key("a.b \"c\"\n"), "{odd}");
    }

    #[test]
    fn a_profile_refers_to_one_secret() {
        let text = "[profiles.a]\n# From the operator.\nclient_secret = \"x\" # secret\nretries = 1\nclient_secret_command = \"y\"\n";
        let new = changed(text, |document| document.set_secret_file("a", "/s"));
        let expected = "[profiles.a]\nretries = 1\n# From the operator.\nclient_secret_file = \"/s\" # secret\n";
        assert_eq!(new, expected);
    }

    #[test]
    fn a_missing_default_profile_is_the_one_in_effect() {
        let new = |text: &str| changed(text, |document| document.set_missing_default_profile("a"));
        assert_eq!(new(""), "default_profile = \"a\"\n");
        let named = "default_profile = \"b\"\n[profiles.b]\n";
        assert_eq!(new(named), named);
        assert_eq!(
            new("[profiles.default]\n"),
            "default_profile = \"default\"\n\n[profiles.default]\n"
        );
        let template = new(&config::template());
        let top = "# Settings of trayscan. Flags and environment variables override them.\n# default_profile = \"default\"\ndefault_profile = \"default\"\n\n[profiles.default]\n# URL of the service.\n";
        assert!(template.starts_with(top), "{template}");
        let lost = config::template();
        let lost = lost.lines().filter(|line| !template.contains(*line));
        assert_eq!(lost.collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn values_are_stored_as_their_type() {
        let folder = std::env::current_dir().expect("a folder");
        let here = format!("\"{}\"", folder.join("s").display());
        for (key, value, expected) in [
            ("retries", "0", "0"),
            ("allow_http", "false", "false"),
            ("timeout", "5s", "\"5s\""),
            ("client_id", "12", "\"12\""),
            ("base_url", "http://a.example", "\"http://a.example\""),
            ("base_url", "", "\"\""),
            ("client_secret_file", "./s", &here),
            ("client_secret_file", "~/s", "\"~/s\""),
            ("client_secret_file", "-", "\"-\""),
            ("ca_cert", "s", &here),
            ("ca_cert", "", "\"\""),
        ] {
            let stored = typed_value(key, value).expect(key);
            assert_eq!(stored.to_string(), expected, "{key}");
        }
    }

    #[test]
    fn values_are_checked() {
        for (key, value, expected) in [
            ("retries", "1.5", "a whole number, such as 4"),
            ("retries", "4294967296", "a whole number, such as 4"),
            ("parallel", "0", "a whole number, at least 1, such as 4"),
            ("allow_http", "yes", "true or false"),
            ("api", "v3", "auto, v1 or v2"),
            ("timeout", "0s", "longer than zero, such as 60s"),
        ] {
            let refused = typed_value(key, value).expect_err(key).into_texts();
            let message = format!("`config set {key}`: the value `{value}` is invalid");
            assert_eq!(refused, (message, format!("it must be {expected}")));
        }
        for (key, value, message, hint) in [
            (
                "base_url",
                "https://u:hunter2@a.example",
                "`config set base_url`: the value contains a user name or a password",
                "it must be a URL such as https://scan.example.com/api",
            ),
            (
                "base_url",
                "https://a.example/api/v2",
                "`config set base_url`: the value `https://a.example/api/v2` contains the API version",
                "use https://a.example/api",
            ),
            (
                "client_secret",
                "hunter2",
                "the client secret is not set this way: others could see it",
                "`trayscan login` asks for it and stores it in a separate file",
            ),
        ] {
            let refused = typed_value(key, value).expect_err(key).into_texts();
            assert_eq!(refused, (message.to_owned(), hint.to_owned()));
        }
    }
}
