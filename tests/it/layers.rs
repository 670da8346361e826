//! The layout of `src`: folders import only what is below them, and no two files import each other in a circle.
//!
//! Read from the text of the sources: `use` declarations, and paths such as `crate::batch::Batch` or `text::brief` in
//! the code. Unit tests may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders and files of `src`, from the lowest layer to the highest.
const LAYERS: [&str; 21] = [
    "error", "text", "terminal", "secret", "batch", "client", "postgres", "storage", "fetch",
    "formats", "pipeline", "archive", "analysis", "probe", "server", "config", "cli", "export",
    "verify", "commands", "fuzz",
];

/// The path of a module, such as `["formats", "csv", "write"]`; empty for the root.
type Module = Vec<String>;

#[test]
fn every_entry_of_src_has_a_layer() {
    let sources = Sources::read();
    let entries: BTreeSet<&str> = sources
        .files
        .keys()
        .filter_map(|module| module.first().map(String::as_str))
        .collect();
    let layers = BTreeSet::from(LAYERS);
    assert_eq!(entries, layers);
}

#[test]
fn folders_import_only_what_is_below_them() {
    let upward = Sources::read().upward_imports();
    assert!(upward.is_empty(), "upward imports:\n{}", upward.join("\n"));
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let circles = Sources::read().circles();
    assert!(circles.is_empty(), "circles:\n{}", circles.join("\n"));
}

#[test]
fn threads_belong_to_a_run() {
    // Others would not know its secrets. The runtime and the demo server, which knows none, start their own.
    let own = ["terminal", "commands::runtime", "server::catalog"];
    for (module, code) in &Sources::read().files {
        let module = module.join("::");
        let starts = ["thread::spawn", "thread::Builder"].iter();
        let is_own = own.iter().any(|own| module.starts_with(own));
        assert!(
            is_own || !starts.clone().any(|start| code.contains(start)),
            "{module}: use `terminal::spawn`"
        );
    }
}

#[test]
fn an_upward_import_is_found() {
    let mut sources = Sources::read();
    let lines = [
        ("csv", "use crate::commands::run;"),
        ("json", "use crate::{error::Failure, export::ExportSink};"),
        ("table", "use super::super::verify::Comparison;"),
        ("xlsx", "fn f() { crate::cli::command(); }"),
    ];
    for (module, line) in lines {
        sources.add(&["formats", module], line);
    }
    sources.add(
        &["formats", "parquet"],
        "use crate::batch::Batch; // use crate::cli::Cli;",
    );
    let mut upward = sources.upward_imports();
    upward.sort_unstable();
    let expected = ["commands", "export", "verify", "cli"];
    assert_eq!(upward.len(), lines.len(), "{upward:?}");
    for ((found, (module, _)), target) in upward.iter().zip(lines).zip(expected) {
        let start = format!("formats::{module} imports {target}");
        assert!(found.starts_with(&start), "{found}");
    }
}

#[test]
fn a_circle_is_found() {
    let mut sources = Sources::read();
    sources.add(&["batch", "timestamp"], "use super::range::Range;");
    let circles = sources.circles();
    assert_eq!(circles.len(), 1, "{circles:?}");
    assert!(circles[0].contains("batch::range") && circles[0].contains("batch::timestamp"));
}

/// All modules of the crate that have a file.
struct Sources {
    files: BTreeMap<Module, String>,
}

impl Sources {
    fn read() -> Self {
        let mut files = BTreeMap::new();
        read_folder(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &[],
            &mut files,
        );
        // Files with unit tests are declared after `#[cfg(test)]`.
        for (module, code) in files.clone() {
            for declaration in code.split("#[cfg(test)]\n").skip(1) {
                let line = declaration.lines().next().unwrap_or_default();
                let name = line.trim_start_matches("pub(crate) ").strip_prefix("mod ");
                if let Some(name) = name.and_then(|name| name.strip_suffix(';')) {
                    files.remove(&[&module[..], &[name.to_owned()]].concat());
                }
            }
        }
        assert!(files.len() > 100, "the sources were not found");
        Self { files }
    }

    /// Adds a line to a module.
    fn add(&mut self, module: &[&str], line: &str) {
        let module: Module = module.iter().map(ToString::to_string).collect();
        let code = self.files.get_mut(&module).expect("an existing module");
        *code = format!("{}{code}", code_of(line));
    }

    fn upward_imports(&self) -> Vec<String> {
        let layer = |module: &Module| LAYERS.iter().position(|name| *name == module[0]);
        let mut upward = Vec::new();
        for (module, imports) in self.imports() {
            for target in imports.iter().filter(|target| !target.is_empty()) {
                // The root may import everything.
                if module.is_empty() || module[0] == "main" || module[0] == target[0] {
                    continue;
                }
                if layer(target) > layer(&module) {
                    upward.push(format!(
                        "{} imports {}",
                        module.join("::"),
                        target.join("::")
                    ));
                }
            }
        }
        upward
    }

    /// Returns groups of modules in which each imports all others, directly or indirectly.
    fn circles(&self) -> Vec<String> {
        let imports = self.imports();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> = imports
            .keys()
            .map(|module| (module, reachable(module, &imports)))
            .collect();
        let mut circles = BTreeSet::new();
        for (module, targets) in &reached {
            let circle: Vec<String> = targets
                .iter()
                .filter(|target| {
                    reached
                        .get(*target)
                        .is_some_and(|back| back.contains(module))
                })
                .map(|target| target.join("::"))
                .collect();
            if circle.len() > 1 {
                circles.insert(circle.join(", "));
            }
        }
        circles.into_iter().collect()
    }

    /// Returns which other modules each module imports from. A re-export counts for the module that defines the item.
    fn imports(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let scopes: BTreeMap<&Module, Scope> = self
            .files
            .iter()
            .map(|(module, code)| (module, self.scope(module, code)))
            .collect();
        let mut all = BTreeMap::new();
        for (module, code) in &self.files {
            let scope = &scopes[module];
            let mut imports = BTreeSet::new();
            for (name, path) in &scope.names {
                // A re-export is not a dependency, and an imported module counts only through the paths in the code.
                if !scope.exports.contains(name) && !self.files.contains_key(path) {
                    imports.extend(defining_module(path, &scopes));
                }
            }
            for path in code_paths(code) {
                let Some(path) = self.resolve(module, &path, scope) else {
                    continue;
                };
                imports.extend(defining_module(&path, &scopes));
            }
            imports.remove(module);
            all.insert(module.clone(), imports);
        }
        all
    }

    /// Reads the names that a module declares with `use`.
    fn scope(&self, module: &Module, code: &str) -> Scope {
        let mut scope = Scope::default();
        for (is_export, tree) in use_declarations(code) {
            for (path, name) in use_leaves(&tree, &[]) {
                let Some(path) = self.absolute(module, &path) else {
                    continue;
                };
                if is_export {
                    scope.exports.insert(name.clone());
                }
                scope.names.insert(name, path);
            }
        }
        scope
    }

    /// Returns a path from the root of the crate; `None` for other crates.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut base = module.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
                base.extend_from_slice(rest);
                return Some(base);
            }
            child => {
                base.push(child.to_owned());
                return self.files.contains_key(&base).then(|| {
                    base.extend_from_slice(&rest[1..]);
                    base
                });
            }
        }
        base.extend_from_slice(&rest[1..]);
        Some(base)
    }

    /// Resolves a path in the code, which may begin with an imported name.
    fn resolve(&self, module: &Module, path: &[String], scope: &Scope) -> Option<Module> {
        if let Some(imported) = scope.names.get(&path[0]) {
            let mut absolute = imported.clone();
            absolute.extend_from_slice(&path[1..]);
            return Some(absolute);
        }
        self.absolute(module, path)
    }
}

/// The names that a module declares with `use`.
#[derive(Default)]
struct Scope {
    names: BTreeMap<String, Module>,
    /// The names that other modules may import from it.
    exports: BTreeSet<String>,
}

fn read_folder(folder: &Path, module: &[String], files: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut child = module.to_vec();
        if path.is_dir() {
            child.push(name);
            read_folder(&path, &child, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            match name.as_str() {
                "main" => continue,
                "mod" | "lib" => {}
                _ => child.push(name),
            }
            let text = fs::read_to_string(&path).unwrap();
            files.insert(child, code_of(&text));
        }
    }
}

/// Returns the text without comments and unit tests.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut is_test = false;
    for line in text.lines() {
        // Formatted sources: a module ends with a brace in the first column.
        if is_test {
            is_test = line != "}";
            continue;
        }
        if code.ends_with("#[cfg(test)]\n") && line.ends_with('{') {
            is_test = true;
            continue;
        }
        code.push_str(line.split("//").next().unwrap());
        code.push('\n');
    }
    code
}

/// Returns the trees of all `use` declarations, and whether each is visible to others.
fn use_declarations(code: &str) -> Vec<(bool, String)> {
    let mut declarations = Vec::new();
    let mut rest = code;
    while let Some(place) = rest.find("use ") {
        let line = rest[..place].rfind('\n').map_or(0, |end| end + 1);
        let before = rest[line..place].trim();
        rest = &rest[place + 4..];
        let is_export = before.starts_with("pub");
        if !(before.is_empty() || is_export && before.ends_with(['b', ')'])) {
            continue;
        }
        let Some((tree, after)) = rest.split_once(';') else {
            break;
        };
        declarations.push((is_export, tree.to_owned()));
        rest = after;
    }
    declarations
}

/// Returns the path of each leaf of a `use` tree, and its name in the module.
fn use_leaves(tree: &str, before: &[String]) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    if let Some(start) = tree.find('{') {
        let mut path = before.to_vec();
        path.extend(words(&tree[..start]));
        let inner = tree[start + 1..].trim_end().trim_end_matches('}');
        return branches(inner)
            .iter()
            .flat_map(|branch| use_leaves(branch, &path))
            .collect();
    }
    let (path, alias) = tree
        .split_once(" as ")
        .map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let mut full = before.to_vec();
    full.extend(words(path));
    if full.last().is_some_and(|word| word == "self") && full.len() > 1 {
        full.pop();
    }
    let Some(last) = full.last() else {
        return Vec::new();
    };
    let name = alias.unwrap_or(last).trim().to_owned();
    vec![(full, name)]
}

fn words(path: &str) -> impl Iterator<Item = String> {
    path.split("::")
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
}

/// Splits at the commas outside braces.
fn branches(inner: &str) -> Vec<String> {
    let mut depth = 0;
    let mut branches = vec![String::new()];
    for letter in inner.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches.push(String::new());
                continue;
            }
            _ => {}
        }
        branches.last_mut().unwrap().push(letter);
    }
    branches.retain(|branch| !branch.trim().is_empty());
    branches
}

/// Returns the paths with at least two segments in the code, except in `use` declarations.
fn code_paths(code: &str) -> Vec<Vec<String>> {
    let mut code = code.to_owned();
    for (_, tree) in use_declarations(&code.clone()) {
        code = code.replace(&format!("use {tree};"), "");
    }
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    code.split(|letter| !is_word(letter))
        .filter(|path| path.contains("::") && !path.starts_with(':'))
        .map(|path| words(path).collect())
        .collect()
}

/// Returns the module that defines the item at `path`.
fn defining_module(path: &Module, scopes: &BTreeMap<&Module, Scope>) -> Option<Module> {
    let mut path = path.clone();
    // Chains of re-exports are short, and none is circular.
    for _ in 0..10 {
        let length = (0..=path.len())
            .rev()
            .find(|length| scopes.contains_key(&path[..*length].to_vec()))?;
        let module = path[..length].to_vec();
        let Some(exported) = path
            .get(length)
            .and_then(|name| scopes[&module].names.get(name))
        else {
            return Some(module);
        };
        let mut next = exported.clone();
        next.extend_from_slice(&path[length + 1..]);
        // `use self::Item` in a function.
        if next == path {
            return Some(module);
        }
        path = next;
    }
    panic!("{path:?} leads nowhere");
}

fn reachable<'a>(
    module: &'a Module,
    imports: &'a BTreeMap<Module, BTreeSet<Module>>,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![module];
    while let Some(module) = next.pop() {
        for target in imports.get(module).into_iter().flatten() {
            if reached.insert(target) {
                next.push(target);
            }
        }
    }
    reached
}
