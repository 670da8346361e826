//! Changes a config file. Its comments and its order are kept.

use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::file::{self, ChosenProfile};
use super::path::{others_may_read, warn_readable};
use super::profile::{ConfigFile, Profile, in_file};
use super::settings::{Given, Settings};
use super::typed::typed_value;
use crate::error::Failure;
use crate::text;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A config file that is being changed. It may not exist yet.
pub(crate) struct ConfigDocument {
    path: PathBuf,
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
        let file = ConfigFile::parse(text).and_then(|file| file.targets().map(|_| file));
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
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
        let is_new = !root.contains_key("default_profile");
        put(root, "default_profile", name.into());
        if is_new && root.get_values().len() == 1 {
            self.move_heading();
        }
    }

    /// Moves the comments at the top of the file above `default_profile`, which is now its first key. A comment directly
    /// above the first table belongs to the table.
    fn move_heading(&mut self) {
        let root = self.document.as_table_mut();
        let heading = first_table(root).and_then(|table| {
            let decor = table.decor_mut();
            let prefix = decor.prefix()?.as_str()?.replace('\r', "");
            let (heading, own) = prefix.rsplit_once("\n\n").unwrap_or(("", &prefix));
            decor.set_prefix(format!("\n{}", own.trim_start_matches('\n')));
            Some(heading.trim_end().to_owned())
        });
        if let (Some(heading), Some(mut key)) = (heading, root.key_mut("default_profile"))
            && !heading.is_empty()
        {
            key.leaf_decor_mut().set_prefix(format!("{heading}\n"));
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
            let names: Vec<&str> = self.file.profiles.keys().map(String::as_str).collect();
            if !names.contains(&value) {
                return Err(no_profile(value, &names));
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

/// Returns the first table that has a header.
fn first_table(table: &mut Table) -> Option<&mut Table> {
    let mut first: Option<(isize, Vec<String>)> = None;
    find_first(table, &mut Vec::new(), &mut first);
    let (_, path) = first?;
    path.iter().try_fold(table, |table, key| {
        table.get_mut(key).and_then(Item::as_table_mut)
    })
}

fn find_first(table: &Table, path: &mut Vec<String>, first: &mut Option<(isize, Vec<String>)>) {
    for (key, item) in table {
        let Some(inner) = item.as_table() else {
            continue;
        };
        path.push(key.to_owned());
        if let Some(position) = inner.position().filter(|_| !inner.is_implicit())
            && first.as_ref().is_none_or(|(before, _)| position < *before)
        {
            *first = Some((position, path.clone()));
        }
        find_first(inner, path, first);
        path.pop();
    }
}

fn no_profile(name: &str, names: &[&str]) -> Failure {
    let quoted = text::for_shell(name);
    let hint = match text::nearest(name, names.iter().copied()) {
        _ if names.is_empty() => format!("create it with `trayscan login --profile {quoted}`"),
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!(
            "available profiles: {}; `trayscan login --profile {quoted}` creates it",
            names.join(", ")
        ),
    };
    Failure::usage(format!("no profile `{name}` in the config file"), hint)
}

fn unsupported(path: &Path) -> Failure {
    let message = format!("cannot change the config file `{}`", path.display());
    Failure::usage(message, "edit it by hand; it was left unchanged")
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::config;

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
}
