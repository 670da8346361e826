//! Words as people type them: durations, and names that were nearly right.

use std::time::Duration;

/// Returns the known word that is most like `word`, where one is like it at all.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::jaro_winkler(word, known), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

/// The longest duration: more than anybody waits, and little enough for clocks to add up.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Accepts `500ms`, `30s`, `15m`, `2h`, `7d` and sums of them.
pub(crate) fn duration(word: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(word).ok();
    parsed
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| {
            "write a number and a unit, such as 500ms, 30s, 15m, 2h or 7d, up to 100 years"
                .to_owned()
        })
}
