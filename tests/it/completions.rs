//! The completion scripts, in real shells.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::harness::{Run, run, trayscan};

/// What a shell offers.
type Offered = BTreeSet<String>;

fn set(words: &[&str]) -> Offered {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints what bash offers for the words on standard input, one per line.
const BASH: &str = r#"
source "$SCRIPT"
mapfile -t COMP_WORDS
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE=$LINE COMP_POINT=${#LINE}
read -r _ _ function _ < <(complete -p trayscan)
$function
printf '%s\n' "${COMPREPLY[@]}"
"#;

/// Types $LINE and a tab into an interactive zsh, and prints what it offers and any errors, one per line.
const ZSH: &str = r#"
zmodload zsh/zpty || exit
zpty z zsh -f -i
zpty -w z 'source $SETUP'
while zpty -r z line; do [[ $line == *ready* ]] && break; done
zpty -w -n z "$LINE"$'\t'
integer inside=0
while zpty -r z; do :; done | while IFS= read -r line; do
    if [[ $line == *$'\0'* ]]; then
        (( inside++ )) && exit
    elif (( inside )); then
        print -r -- ${line%$'\r'}
    fi
done
"#;

/// Replaces the command that shows what is offered by one that prints it.
const ZSH_SETUP: &str = r#"
PROMPT=
autoload -U compinit
compinit -u -C -d ~/.zcompdump
source $SCRIPT
bindkey '^I' complete-word
mark() { print -r -- $'\0' }
compprefuncs=(mark)
comppostfuncs=(mark exit)
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a hits
    builtin compadd -A hits "$@"
    local hit
    for hit in $hits; do print -r -- $IPREFIX$hit; done
}
print ready
"#;

impl Shell {
    const ALL: [Self; 3] = [Self::Bash, Self::Zsh, Self::Fish];

    fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    fn script(self) -> String {
        format!("script.{}", self.name())
    }
}

/// A folder with files, a config file, and a script for each installed shell.
struct Desk {
    folder: TempDir,
    shells: Vec<Shell>,
}

impl Desk {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let is_there = |shell: &Shell| {
            let there = Run::new(shell.name()).args(["-c", "true"]).succeeds();
            if !there {
                eprintln!("skipped: {} is not installed", shell.name());
            }
            there
        };
        let shells: Vec<Shell> = Shell::ALL.into_iter().filter(is_there).collect();
        for shell in &shells {
            let script = run(&["completions", shell.name()]).expect(0).stdout;
            fs::write(folder.path().join(shell.script()), script).unwrap();
        }
        let config = folder.path().join(".config/trayscan");
        fs::create_dir_all(&config).unwrap();
        let profiles = "[profiles.default]\n[profiles.staging]\n[profiles.stable]\n";
        fs::write(config.join("config.toml"), profiles).unwrap();
        fs::write(
            folder.path().join("other.toml"),
            "[profiles.\"$(touch x)\"]\n",
        )
        .unwrap();
        fs::write(folder.path().join("zsh-setup"), ZSH_SETUP).unwrap();
        for name in ["batches.db", "batches.csv"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("batches.d")).unwrap();
        Self { folder, shells }
    }

    /// Returns what `shell` offers for the last word of `line`.
    #[track_caller]
    fn offered(&self, shell: Shell, line: &str) -> Offered {
        let mut command = Run::new(shell.name());
        let program = PathBuf::from(env!("CARGO_BIN_EXE_trayscan"));
        let path = format!(
            "{}:{}",
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap_or_default()
        );
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("TERM", "dumb")
            .env("LINE", line)
            .env("SCRIPT", self.folder.path().join(shell.script()))
            .env("SETUP", self.folder.path().join("zsh-setup"))
            .current_dir(self.folder.path());
        let ended = match shell {
            Shell::Bash => {
                command.args(["--norc", "-c", BASH]);
                command.output_for(bash_words(line).join("\n") + "\n")
            }
            Shell::Zsh => command.args(["-f", "-c", ZSH]).output(),
            Shell::Fish => {
                let print = "source $SCRIPT; complete -C\"$LINE\"";
                command.args(["-N", "-c", print]).output()
            }
        };
        assert_eq!(
            (ended.code, &*ended.stderr),
            (Some(0), ""),
            "{shell:?} {line}: {ended:?}"
        );
        let typed = line.rsplit(' ').next().unwrap();
        let lines = ended.stdout.lines().filter(|line| !line.is_empty());
        let words = lines.map(|line| match shell {
            // Bash replaces only what follows the last `=` or `:`, and escapes special characters.
            Shell::Bash => {
                let before = typed.rfind(['=', ':']).map_or(0, |index| index + 1);
                format!("{}{}", &typed[..before], line.replace('\\', ""))
            }
            Shell::Zsh => line.replace('\\', ""),
            // With its meaning after a tab.
            Shell::Fish => line.split('\t').next().unwrap().to_owned(),
        });
        // Some shells mark folders.
        words
            .map(|word| word.trim_end_matches('/').to_owned())
            .collect()
    }

    /// Asserts that all shells offer exactly this.
    #[track_caller]
    fn assert_offers(&self, line: &str, words: &[&str]) {
        for shell in &self.shells {
            assert_eq!(self.offered(*shell, line), set(words), "{shell:?}: {line}");
        }
    }

    /// Asserts that all shells offer at least this, and nothing with these in it.
    #[track_caller]
    fn assert_offers_some(&self, line: &str, words: &[&str], never: &[&str]) {
        for shell in &self.shells {
            let offered = self.offered(*shell, line);
            let what = format!("{shell:?}: {line}: {offered:?}");
            assert!(offered.is_superset(&set(words)), "{what}");
            let is_wrong = |word: &String| never.iter().any(|part| word.contains(part));
            assert!(!offered.iter().any(is_wrong), "{what}");
        }
    }
}

/// Splits a line as bash does: at blanks, and around `=` and `:`.
fn bash_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in line.split(' ') {
        let mut pieces = vec![String::new()];
        for character in word.chars() {
            let is_break = |text: &str| text.ends_with(['=', ':']);
            let is_new = is_break(pieces.last().unwrap()) != is_break(&character.to_string());
            if is_new && !pieces.last().unwrap().is_empty() {
                pieces.push(String::new());
            }
            pieces.last_mut().unwrap().push(character);
        }
        words.extend(pieces);
    }
    words
}

#[test]
fn commands_and_options_are_offered() {
    let desk = Desk::new();
    desk.assert_offers_some(
        "trayscan ",
        &["export", "sync", "man"],
        &["batches", "profiles"],
    );
    desk.assert_offers("trayscan su", &["summary"]);
    desk.assert_offers("trayscan --color never con", &["config"]);
    desk.assert_offers("trayscan export --fie", &["--fields"]);
    desk.assert_offers("trayscan export --sinc", &["--since"]);
    desk.assert_offers("trayscan sync batches.db --status --max", &["--max-age"]);
    desk.assert_offers_some(
        "trayscan config ",
        &["path", "show", "init"],
        &["export", "batches"],
    );
    desk.assert_offers("trayscan -q config show --prof", &["--profile"]);
    desk.assert_offers("trayscan config show --fie", &[]);
}

#[test]
fn choices_are_offered() {
    let desk = Desk::new();
    desk.assert_offers("trayscan export -f x", &["xlsx"]);
    desk.assert_offers("trayscan export --format=nd", &["--format=ndjson"]);
    desk.assert_offers("trayscan --color ", &["auto", "always", "never"]);
    desk.assert_offers("trayscan export --allow-http=t", &["--allow-http=true"]);
    desk.assert_offers("trayscan sync a.db --status -f p", &["prometheus"]);
    desk.assert_offers("trayscan man ver", &["verify"]);
    desk.assert_offers("trayscan config set def", &["default_profile"]);
    desk.assert_offers("trayscan config set ret", &["retries", "retry_wait"]);
    let line = "trayscan config set --profile staging client";
    let keys = ["client_id", "client_secret_file", "client_secret_command"];
    desk.assert_offers(line, &keys);
    desk.assert_offers("trayscan config set retries ret", &[]);
    let shells = ["bash", "elvish", "fish", "powershell", "zsh"];
    desk.assert_offers("trayscan completions ", &shells);
}

#[test]
fn conditions_are_a_field_and_an_operator() {
    let desk = Desk::new();
    for shell in &desk.shells {
        let words = match shell {
            // It would add a space after a field.
            Shell::Fish => set(&["crop_type=", "crop_type!="]),
            Shell::Bash | Shell::Zsh => set(&["crop_type"]),
        };
        assert_eq!(
            desk.offered(*shell, "trayscan export --where crop"),
            words,
            "{shell:?}"
        );
    }
    let operators =
        ["=", "!=", "<", "<=", ">", ">=", "~"].map(|operator| format!("crop_type{operator}"));
    let operators = operators.each_ref().map(String::as_str);
    desk.assert_offers("trayscan summary --where crop_type", &operators);
    desk.assert_offers("trayscan summary --where crop_type=To", &[]);
    desk.assert_offers("trayscan report --where !war", &["!warnings"]);
    desk.assert_offers("trayscan report --where war", &["warnings"]);
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn files_are_offered_only_for_files() {
        let desk = Desk::new();
        let files = ["batches.csv", "batches.d", "batches.db"];
        for line in [
            "trayscan export -o ba",
            "trayscan export --output ba",
            "trayscan export --manifest ba",
            "trayscan export --config ba",
            "trayscan export --archive ba",
            "trayscan check --ca-cert ba",
            "trayscan check --client-secret-file ba",
            "trayscan sync ba",
            "trayscan sync --wait 10m ba",
            "trayscan verify ba",
            "trayscan verify x.csv --against ba",
            "trayscan serve --archive ba",
        ] {
            desk.assert_offers(line, &files);
        }
        let named = files.map(|name| format!("--output={name}"));
        let named = named.each_ref().map(String::as_str);
        desk.assert_offers("trayscan export --output=ba", &named);
        for line in [
            "trayscan ba",
            "trayscan export ba",
            "trayscan export --limit ba",
            "trayscan export --base-url ba",
            "trayscan sync batches.db ba",
            "trayscan serve --listen ba",
        ] {
            desk.assert_offers(line, &[]);
        }
    }

    #[test]
    #[ignore = "slow"]
    fn periods_and_time_zones_are_offered() {
        let desk = Desk::new();
        for flag in ["--period", "--start", "--end", "--since", "--until"] {
            let line = format!("trayscan export {flag} last-");
            let periods = ["last-week", "last-month", "last-quarter", "last-year"];
            desk.assert_offers(&line, &periods);
        }
        desk.assert_offers("trayscan sync a.db --since y", &["yesterday"]);
        desk.assert_offers(
            "trayscan export --time-zone Europe/Am",
            &["Europe/Amsterdam"],
        );
        desk.assert_offers_some(
            "trayscan check --time-zone U",
            &["UTC", "US/Central"],
            &["Europe"],
        );
    }

    #[test]
    #[ignore = "slow"]
    fn fields_are_offered_also_after_a_comma() {
        let desk = Desk::new();
        desk.assert_offers("trayscan export --fields crop", &["crop_type"]);
        desk.assert_offers(
            "trayscan export --fields batch_id,crop",
            &["batch_id,crop_type"],
        );
        desk.assert_offers("trayscan export --fields=crop", &["--fields=crop_type"]);
        desk.assert_offers_some(
            "trayscan export --fields ",
            &["batch_id", "comment"],
            &["-"],
        );
        for shell in &desk.shells {
            // fish takes every word with `-` for an option.
            if *shell != Shell::Fish {
                let line = "trayscan verify a.csv --fields -batch_id,-crop";
                assert_eq!(desk.offered(*shell, line), set(&["-batch_id,-crop_type"]));
            }
        }
        desk.assert_offers("trayscan export --fields=-crop", &["--fields=-crop_type"]);
        let line = "trayscan export --sort avg_germination";
        desk.assert_offers(line, &["avg_germination_rate", "avg_germination_rate:desc"]);
        desk.assert_offers("trayscan export --sort warnings:", &["warnings:desc"]);
        let line = "trayscan export --sort warnings:desc,crop";
        let words = ["warnings:desc,crop_type", "warnings:desc,crop_type:desc"];
        desk.assert_offers(line, &words);
        let groups = [
            "crop_type,day",
            "crop_type,month",
            "crop_type,week",
            "crop_type,scanned_by_email",
        ];
        desk.assert_offers("trayscan summary --by crop_type,", &groups);
        desk.assert_offers("trayscan summary --fail-on down,t", &["down,target"]);
    }

    #[test]
    #[ignore = "slow"]
    fn profiles_are_those_of_the_config_file() {
        let desk = Desk::new();
        desk.assert_offers("trayscan export --profile sta", &["staging", "stable"]);
        desk.assert_offers("trayscan check --profile=d", &["--profile=default"]);
        let odd = ["$(touch x)"];
        desk.assert_offers("trayscan export --config other.toml --profile ", &odd);
        desk.assert_offers("trayscan export --config=other.toml --profile ", &odd);
        desk.assert_offers("trayscan export --config missing.toml --profile ", &[]);
        assert!(!desk.folder.path().join("x").exists(), "the name was run");
        let mut command = trayscan(&["completions", "profiles"]);
        let config = desk.folder.path().join(".config/trayscan/config.toml");
        let ended = command.env("TRAYSCAN_CONFIG", config).output().expect(0);
        assert_eq!(ended.stdout, "default\nstable\nstaging\n");
    }

    #[test]
    #[ignore = "slow"]
    fn faults_are_offered() {
        let desk = Desk::new();
        desk.assert_offers("trayscan serve --fault 50", &["500:", "503:"]);
        desk.assert_offers(
            "trayscan serve --fault v1-",
            &["v1-truncate", "v1-refuse", "v1-refuse:"],
        );
        let words = ["dates-with-cursor:required", "dates-with-cursor:refused"];
        desk.assert_offers("trayscan serve --fault shuffle --fault dates", &words);
        desk.assert_offers("trayscan serve --fault dates-with-cursor:req", &words[..1]);
    }
}
