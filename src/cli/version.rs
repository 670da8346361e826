//! What `--version` prints: the version, the features, and for what the program was built.

/// Returns the text; `-V` prints only the first line.
pub(super) fn text(is_long: bool) -> String {
    let version = concat!("trayscan ", env!("CARGO_PKG_VERSION"), "\n");
    if !is_long {
        return version.to_owned();
    }
    let features = match (cfg!(feature = "cloud"), cfg!(feature = "postgres")) {
        (true, true) => "cloud, postgres",
        (true, false) => "cloud",
        (false, true) => "postgres",
        (false, false) => "none (cloud and postgres are off)",
    };
    let environment = if cfg!(target_env = "musl") {
        "-musl"
    } else if cfg!(target_env = "gnu") {
        "-gnu"
    } else if cfg!(target_env = "msvc") {
        "-msvc"
    } else {
        ""
    };
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    format!("{version}features: {features}\nbuild: {arch}-{os}{environment}, {profile}\n")
}
