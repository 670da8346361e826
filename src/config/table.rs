//! The table of settings. The flags, the environment variables, `config show` and `config init` are made from it.

/// One setting of the service.
pub(crate) struct SettingInfo {
    /// Its key in a profile of the config file.
    pub(crate) key: &'static str,
    /// Its flag, with the dashes; empty if only the config file has it.
    pub(crate) flag: &'static str,
    /// Its environment variable.
    pub(crate) variable: &'static str,
    pub(crate) value_name: &'static str,
    pub(crate) value: FlagValue,
    pub(crate) help: &'static str,
    /// The help of `--help`; empty if it is the same.
    pub(crate) long_help: &'static str,
    /// Its value in a new config file, in TOML.
    example: &'static str,
    /// The comment on it there; empty if its group has one.
    comment: &'static str,
}

/// What most settings are.
const TEXT: SettingInfo = SettingInfo {
    key: "",
    flag: "",
    variable: "",
    value_name: "",
    value: FlagValue::Text,
    help: "",
    long_help: "",
    example: "",
    comment: "",
};

/// What a flag takes.
#[derive(Clone, Copy)]
pub(crate) enum FlagValue {
    Text,
    ApiVersion,
    /// A whole number, with the smallest one to suggest and an example. The settings refuse zero where it is too small,
    /// whatever its source.
    Number {
        least: u32,
        example: u32,
    },
    Duration,
    TimeZone,
    Boolean,
}

/// All settings, in the order of the help, `config show` and `config init`.
pub(crate) const SETTINGS: [SettingInfo; 13] = [
    SettingInfo {
        key: "base_url",
        flag: "--base-url",
        variable: "TRAYSCAN_BASE_URL",
        value_name: "URL",
        help: "URL of the service, such as https://scan.example.com/api",
        example: "\"https://scan.example.com/api\"",
        ..TEXT
    },
    SettingInfo {
        key: "client_id",
        flag: "--client-id",
        variable: "TRAYSCAN_CLIENT_ID",
        value_name: "ID",
        help: "Client ID",
        example: "\"...\"",
        ..TEXT
    },
    SettingInfo {
        key: "client_secret",
        flag: "--client-secret",
        variable: "TRAYSCAN_CLIENT_SECRET",
        value_name: "SECRET",
        help: "Client secret; prefer --client-secret-file or the variable",
        long_help: "Client secret; prefer --client-secret-file or the variable\n\n\
                        Other users of this machine can see the arguments of a running command.",
        example: "\"...\"",
        ..TEXT
    },
    SettingInfo {
        key: "client_secret_file",
        flag: "--client-secret-file",
        variable: "TRAYSCAN_CLIENT_SECRET_FILE",
        value_name: "FILE",
        help: "File that contains the client secret; `-` reads standard input",
        example: "\"~/.secrets/trayscan\"",
        ..TEXT
    },
    SettingInfo {
        key: "client_secret_command",
        example: "\"pass show trayscan\"",
        ..TEXT
    },
    SettingInfo {
        key: "api",
        flag: "--api",
        variable: "TRAYSCAN_API",
        value_name: "VERSION",
        value: FlagValue::ApiVersion,
        help: "API version [default: auto]",
        long_help: "API version [default: auto]\n\n\
                        `auto` uses v2, or v1 if the service has no v2.",
        example: "\"auto\"",
        comment: "auto, v1, v2",
    },
    SettingInfo {
        key: "parallel",
        flag: "--parallel",
        variable: "TRAYSCAN_PARALLEL",
        value_name: "N",
        value: FlagValue::Number {
            least: 1,
            example: 4,
        },
        help: "Maximum number of parallel requests [default: 4]",
        example: "4",
        comment: "maximum number of parallel requests",
        ..TEXT
    },
    SettingInfo {
        key: "retries",
        flag: "--retries",
        variable: "TRAYSCAN_RETRIES",
        value_name: "N",
        value: FlagValue::Number {
            least: 0,
            example: 5,
        },
        help: "Number of retries per request [default: 5]",
        example: "5",
        comment: "retries per request",
        ..TEXT
    },
    SettingInfo {
        key: "retry_wait",
        flag: "--retry-wait",
        variable: "TRAYSCAN_RETRY_WAIT",
        value_name: "DURATION",
        value: FlagValue::Duration,
        help: "Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]",
        example: "\"4s\"",
        comment: "delay after a 503",
        ..TEXT
    },
    SettingInfo {
        key: "timeout",
        flag: "--timeout",
        variable: "TRAYSCAN_TIMEOUT",
        value_name: "DURATION",
        value: FlagValue::Duration,
        help: "Time out if no data arrives for this long [default: 60s]",
        example: "\"60s\"",
        comment: "time out if no data arrives for this long",
        ..TEXT
    },
    SettingInfo {
        key: "ca_cert",
        flag: "--ca-cert",
        variable: "TRAYSCAN_CA_CERT",
        value_name: "FILE",
        help: "Extra CA certificate to trust (PEM)",
        example: "\"ca.pem\"",
        comment: "extra CA certificate to trust",
        ..TEXT
    },
    SettingInfo {
        key: "allow_http",
        flag: "--allow-http",
        variable: "TRAYSCAN_ALLOW_HTTP",
        value_name: "BOOL",
        value: FlagValue::Boolean,
        help: "Allow unencrypted http to other machines",
        example: "false",
        comment: "allow unencrypted http to other machines",
        ..TEXT
    },
    SettingInfo {
        key: "time_zone",
        flag: "--time-zone",
        variable: "TRAYSCAN_TIME_ZONE",
        value_name: "NAME",
        value: FlagValue::TimeZone,
        help: "Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]",
        example: "\"UTC\"",
        comment: "time zone in which days begin, such as Europe/Amsterdam",
        ..TEXT
    },
];

pub(super) fn info(key: &str) -> &'static SettingInfo {
    let info = SETTINGS.iter().find(|info| info.key == key);
    info.expect("every setting is listed")
}

/// Returns what `config init` writes.
pub(crate) fn template() -> String {
    let line = |info: &SettingInfo| {
        let line = format!("# {} = {}", info.key, info.example);
        match info.comment {
            "" => format!("{line}\n"),
            comment => format!("{line:25} # {comment}\n"),
        }
    };
    let lines = |is_wanted: fn(&SettingInfo) -> bool| -> String {
        let wanted = SETTINGS.iter().filter(|info| is_wanted(info));
        wanted.map(line).collect()
    };
    let address = lines(|info| info.key == "base_url");
    // The least safe one last.
    let credentials = lines(|info| info.key.starts_with("client_") && info.key != "client_secret")
        + &lines(|info| info.key == "client_secret");
    let others = lines(|info| !info.comment.is_empty());
    format!(
        "\
# Settings of trayscan. Flags and environment variables override them.
# default_profile = \"default\"

[profiles.default]
# URL of the service.
{address}
# Credentials, from the operator of the service. Keep the secret in a separate file or let a command
# print it; avoid writing it here. Set only one of the last three.
{credentials}
{others}
# Your targets for a crop, in percent, for `trayscan report` and `summary --fail-on target`.
# [targets.\"Tomato\"]
# usable_rate_min = 90
# germination_rate_min = 95
# coefficient_of_variation_max = 25
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_setting_belong_together() {
        for info in &SETTINGS {
            if info.flag.is_empty() {
                continue;
            }
            assert_eq!(info.flag, format!("--{}", info.key.replace('_', "-")));
            assert_eq!(
                info.variable,
                format!("TRAYSCAN_{}", info.key.to_uppercase())
            );
        }
    }

    #[test]
    fn the_manual_lists_every_setting_with_all_its_names() {
        let page = include_str!("../../man/trayscan-config.5");
        let page = page
            .replace("\\%", "")
            .replace("\\fB", "")
            .replace("\\fR", "");
        let page = page.replace("\\-", "-");
        for info in &SETTINGS {
            let entry = match info.flag {
                "" => format!("\n{}\n", info.key),
                flag => format!("\n{flag}, {}, {}\n", info.variable, info.key),
            };
            assert!(page.contains(&entry), "trayscan-config(5) lacks {entry}");
        }
    }

    #[test]
    fn a_new_config_file_explains_the_settings() {
        let template = template();
        for line in [
            "# base_url = \"https://scan.example.com/api\"",
            "# client_secret_command = \"pass show trayscan\"",
            "# api = \"auto\"            # auto, v1, v2",
            "# allow_http = false      # allow unencrypted http to other machines",
        ] {
            assert!(template.lines().any(|other| other == line), "{template}");
        }
    }
}
