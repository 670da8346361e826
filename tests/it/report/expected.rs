//! The texts of the page about the newest step, made from the rules in `judge`.

use chrono::{DateTime, Datelike as _, NaiveDateTime};

use super::reading::{AttentionCrop, AttentionRow};
use crate::fake::live::DAY;
use crate::judge::{
    Crop, GERMINATION, Newest, POINT, Pick, Rules, Target, Tray, USABLE, VARIATION, distinct,
    in_prose, median, quartile, rounded, rounded_ratio, shortest, values,
};

const SIZE: Pick = |tray| tray.size;

fn date(local: i64) -> NaiveDateTime {
    DateTime::from_timestamp(local, 0).unwrap().naive_utc()
}

/// Returns a date in words.
pub(super) fn day(local: i64) -> String {
    date(local).format("%-d %B %Y").to_string()
}

/// Returns the first second of a step and the first one after it, on the wall.
fn bounds(step: &str, number: i64) -> (i64, i64) {
    let month = |number: i64| {
        let (year, month) = (number.div_euclid(12), number.rem_euclid(12) + 1);
        let text = format!("{year:04}-{month:02}-01T00:00:00Z");
        crate::fake::second(&text)
    };
    match step {
        "day" => (number * DAY, (number + 1) * DAY),
        "week" => ((number * 7 - 3) * DAY, (number * 7 + 4) * DAY),
        _ => (month(number), month(number + 1)),
    }
}

/// Returns the short name of a step.
pub(super) fn short_name(step: &str, number: i64) -> String {
    let first = date(bounds(step, number).0);
    match step {
        "day" => first.format("%-d %b").to_string(),
        "week" => format!("week {}", first.iso_week().week()),
        _ => first.format("%b %Y").to_string(),
    }
}

/// Returns the name of a step with its days, and how much of it is over, as the page begins with it.
pub(super) fn period(rules: &Rules<'_>, number: i64) -> String {
    let (start, end) = bounds(rules.step, number);
    let (first, last) = (date(start), date(end - 1));
    let (name, dates) = match rules.step {
        "day" => (day(start), None),
        "month" => (first.format("%B %Y").to_string(), None),
        _ => {
            let form = match () {
                () if first.year() != last.year() => "%-d %B %Y",
                () if first.month() != last.month() => "%-d %B",
                () => "%-d",
            };
            let dates = format!("{} to {}", first.format(form), day(end - 1));
            (format!("Week {}", first.iso_week().week()), Some(dates))
        }
    };
    let parts: Vec<String> = dates.into_iter().chain(so_far(rules, number)).collect();
    match parts.as_slice() {
        [] => name,
        parts => format!("{name} ({})", parts.join(", ")),
    }
}

/// Returns how much of a step is over. `None` if it is all of it.
fn so_far(rules: &Rules<'_>, number: i64) -> Option<String> {
    let (start, end) = bounds(rules.step, number);
    let now = (rules.local)(rules.now);
    let (unit, name) = if rules.step == "day" {
        (3600, "hours")
    } else {
        (DAY, "days")
    };
    let begun = (now - start + unit - 1) / unit;
    (now < end).then(|| format!("{begun} of {} {name} so far", (end - start) / unit))
}

pub(super) fn crop_name(name: &str) -> &str {
    if name.is_empty() {
        "no crop given"
    } else {
        name
    }
}

const GROUP: &str = "the group without a crop";

/// Counts crops. Batches without a crop are not one.
fn count_crops<'a>(crops: impl Iterator<Item = &'a Crop<'a>>) -> String {
    let (named, group): (Vec<_>, Vec<_>) = crops.partition(|crop| !crop.name.is_empty());
    let named = plural(named.len(), "crop", "crops");
    match group.len() {
        0 => named,
        _ if named.starts_with("0 ") => GROUP.to_owned(),
        _ => format!("{named} and {GROUP}"),
    }
}

/// Returns the subject of a sentence about a crop.
fn subject(name: &str) -> &str {
    if name.is_empty() { GROUP } else { name }
}

/// Formats a number below a million with a comma between thousands.
fn thousands(count: usize) -> String {
    match (count / 1000, count % 1000) {
        (0, count) => count.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    }
}

fn plural(count: usize, one: &str, many: &str) -> String {
    let words = if count == 1 { one } else { many };
    format!("{} {words}", thousands(count))
}

/// Returns a number with the sign of the page.
fn signed(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(size) => format!("−{size}"),
        None if text == "0.00" => text.to_owned(),
        None => format!("+{text}"),
    }
}

fn shown(trays: &[&Tray], pick: Pick) -> String {
    median(&values(trays, pick)).map_or_else(|| "–".to_owned(), rounded)
}

/// Returns the usable rate of the newest step. It does not look like a target that it misses.
fn usable(crop: &Crop<'_>) -> String {
    let target = crop.target.and_then(|target| target.usable);
    match (median(&values(&crop.newest, USABLE)), target) {
        (Some(rate), Some(target)) => distinct(rate, target),
        _ => shown(&crop.newest, USABLE),
    }
}

fn gap(trays: &[&Tray]) -> String {
    let [all, usable] = [GERMINATION, USABLE].map(|pick| median(&values(trays, pick)));
    let gap = all.zip(usable).map(|(all, usable)| all - usable);
    gap.map_or_else(|| "–".to_owned(), |gap| rounded(gap).replace('-', "−"))
}

/// Returns the rows of the crops in the newest step.
pub(super) fn crop_rows(rules: &Rules<'_>, newest: &Newest<'_>) -> Vec<Vec<String>> {
    let has_targets = newest
        .crops
        .iter()
        .any(|crop| crop.target_state().is_some());
    let row = |crop: &Crop<'_>| {
        let trays = &crop.newest;
        let target = has_targets.then(|| target(crop));
        let first = [
            crop_name(crop.name).to_owned(),
            usable(crop),
            change(rules, crop),
        ];
        let rest = [
            // The sparkline.
            String::new(),
            thousands(trays.len()),
            shown(trays, GERMINATION),
            gap(trays),
            shown(trays, VARIATION),
            shown(trays, SIZE),
        ];
        first.into_iter().chain(target).chain(rest).collect()
    };
    newest.crops.iter().map(row).collect()
}

fn change(rules: &Rules<'_>, crop: &Crop<'_>) -> String {
    if !crop.is_present() {
        let (_, last) = crop.last;
        let last = day((rules.local)(last.created));
        return format!("no batches, last on {last}");
    }
    // It does not look like a change that counts.
    let is_less = |change: i128| change.abs() < 2 * POINT;
    let change = crop.change.map(|change| match rounded(change) {
        text if is_less(change) && text.ends_with("2.00") => signed(&shortest(change)),
        text => signed(&text),
    });
    let verdict = match (crop.verdict, change) {
        ("down", Some(change)) => format!("▼ {change}, down"),
        ("up", Some(change)) => format!("▲ {change}, up"),
        ("usual", Some(change)) if crop.is_unclear() => {
            format!("{change}, varies too much to tell")
        }
        ("usual", Some(change)) => format!("{change}, as usual"),
        _ => "too few to compare".to_owned(),
    };
    if crop.has_failure() {
        format!("{verdict}, with failures")
    } else {
        verdict
    }
}

fn target(crop: &Crop<'_>) -> String {
    let Some(state) = crop.target_state() else {
        return String::new();
    };
    let Target {
        usable,
        germination,
        variation,
    } = crop.target.unwrap();
    let limits = [
        ("usable", usable, USABLE),
        ("germination", germination, GERMINATION),
        ("CV", variation, VARIATION),
    ];
    let limits = limits.into_iter().filter_map(|(name, limit, pick)| {
        let is_told = match state {
            "missed" => crop.missed.iter().any(|(field, ..)| *field == name),
            "met" => true,
            _ => values(&crop.newest, pick).is_empty(),
        };
        let limit = limit.filter(|_| is_told)?;
        Some(format!("{name} {} %", shortest(limit)))
    });
    let limits = limits.collect::<Vec<_>>().join(", ");
    match state {
        "missed" => format!("✗ missed: {limits}"),
        "met" => format!("✓ met: {limits}"),
        _ => format!("no values for {limits}"),
    }
}

/// Returns the rows of the whole range: by name, those without one last.
pub(super) fn range_rows(newest: &Newest<'_>) -> Vec<Vec<String>> {
    let mut crops: Vec<&Crop<'_>> = newest.crops.iter().collect();
    crops.sort_by_key(|crop| (crop.name.is_empty(), crop.name.to_lowercase()));
    let middle = |trays: &[&Tray], pick: Pick| {
        let values = values(trays, pick);
        let [low, middle, high] = [1, 2, 3].map(|k| quartile(&values, k).map(rounded));
        middle.map_or_else(
            || "–".to_owned(),
            |middle| format!("{middle} [{}, {}]", low.unwrap(), high.unwrap()),
        )
    };
    let row = |crop: &&Crop<'_>| {
        vec![
            crop_name(crop.name).to_owned(),
            thousands(crop.all.len()),
            middle(&crop.all, USABLE),
            middle(&crop.all, GERMINATION),
            gap(&crop.all),
            shown(&crop.all, VARIATION),
            shown(&crop.all, SIZE),
        ]
    };
    crops.iter().map(row).collect()
}

/// Returns the tiles: the batches, and the mean change within the crops.
pub(super) fn tiles(rules: &Rules<'_>, newest: &Newest<'_>) -> Vec<Vec<String>> {
    let present = || newest.crops.iter().filter(|crop| crop.is_present());
    let batches: usize = present().map(|crop| crop.newest.len()).sum();
    let crops = count_crops(present());
    let so_far = so_far(rules, newest.number);
    let so_far = so_far.map_or_else(String::new, |so_far| format!(", {so_far}"));
    let mut tiles = vec![vec![
        "Batches".to_owned(),
        thousands(batches),
        format!("of {crops}{so_far}"),
    ]];
    let change = |crop: &Crop<'_>, pick: Pick| {
        let (newest, before) = (values(&crop.newest, pick), values(&crop.before, pick));
        let is_enough = newest.len() >= 3 && before.len() >= 3;
        let change = is_enough.then(|| median(&newest).unwrap() - median(&before).unwrap());
        Some((change?, crop.newest.len() as i128))
    };
    for (name, picks) in [
        ("Usable", &[USABLE][..]),
        ("Germination", &[GERMINATION]),
        ("Gap between the two", &[GERMINATION, USABLE]),
        ("Size variation (CV)", &[VARIATION]),
    ] {
        let of_crop = |crop: &Crop<'_>| {
            let (first, weight) = change(crop, picks[0])?;
            let less = match picks.get(1) {
                Some(pick) => change(crop, *pick)?.0,
                None => 0,
            };
            Some((first - less, weight))
        };
        let changes: Vec<(i128, i128)> = present().filter_map(of_crop).collect();
        let compared = present().filter(|crop| of_crop(crop).is_some());
        tiles.push(tile(name, &changes, &count_crops(compared)));
    }
    tiles
}

fn tile(name: &str, changes: &[(i128, i128)], crops: &str) -> Vec<String> {
    let sum: i128 = changes.iter().map(|(change, weight)| change * weight).sum();
    let weights: i128 = changes.iter().map(|(_, weight)| weight).sum();
    let (value, note) = match () {
        () if weights == 0 => (
            "–".to_owned(),
            "not enough batches to compare (at least 3 of a crop)".to_owned(),
        ),
        () => {
            let mean = signed(&rounded_ratio(sum, weights));
            (format!("{mean} points"), format!("mean of {crops}"))
        }
    };
    vec![name.to_owned(), value, note]
}

/// Returns the batches that need attention, by crop: at most a hundred of each, and 500 in all.
pub(super) fn attention(rules: &Rules<'_>, newest: &Newest<'_>) -> Vec<AttentionCrop> {
    let crops = newest
        .crops
        .iter()
        .filter(|crop| crop.is_down() || !crop.attention.is_empty());
    let mut room = 500;
    let crops = crops.map(|crop| {
        let is_down = crop.is_down();
        // Of a crop that is down, all batches are listed.
        let mut listed = crop.flagged();
        listed.retain(|flagged| is_down || !flagged.reasons.is_empty());
        // Batches without a rate are last.
        let rates = listed.iter().map(|flagged| flagged.tray.usable);
        let rates: Vec<i128> = rates.map(|rate| rate.unwrap_or(i128::MAX)).collect();
        let order = if rates.is_sorted() {
            "the lowest first"
        } else {
            "the failed ones first, then the lowest"
        };
        listed.truncate(room.min(100));
        room -= listed.len();
        let usual = shown(&crop.before, USABLE);
        let rows = listed.iter().map(|flagged| AttentionRow {
            name: flagged.tray.name.clone(),
            rate: flagged.rate(crop),
            reason: flagged.reason(is_down),
            day: Some(day((rules.local)(flagged.tray.created))),
        });
        let all = plural(crop.newest.len(), "batch", "batches");
        AttentionCrop {
            name: crop_name(crop.name).to_owned(),
            count: match crop.attention.len() {
                0 => all,
                count => format!("{} of {all}", thousands(count)),
            },
            down: is_down.then(|| {
                let points = rounded(crop.change.unwrap().abs());
                format!("The crop is down: its median is {points} points below the usual {usual} %. Its batches, {order}:")
            }),
            rows: rows.collect(),
        }
    });
    crops.collect()
}

/// Returns the sentences at the top of the page.
pub(super) fn lead(rules: &Rules<'_>, newest: &Newest<'_>) -> String {
    let present = || newest.crops.iter().filter(|crop| crop.is_present());
    let is_bad = |crop: &&Crop<'_>| crop.is_down() || !crop.missed.is_empty();
    let bad: Vec<&Crop<'_>> = present().filter(is_bad).collect();
    let others: Vec<&Crop<'_>> = present().filter(|crop| !is_bad(crop)).collect();
    let is = |verdict: &str| -> Vec<&Crop<'_>> {
        let others = others.iter().copied();
        others.filter(|crop| crop.verdict == verdict).collect()
    };
    let (mut up, usual, few) = (is("up"), is("usual"), is("too_few"));
    up.sort_by_key(|crop| -crop.change.unwrap());
    let (unclear, usual): (Vec<_>, Vec<_>) = usual.into_iter().partition(|crop| crop.is_unclear());
    let steps = rules.step;
    let absent = absent(newest, steps);
    let rest = if bad.is_empty() && few.len() == others.len() {
        let on = if steps == "day" { "on" } else { "in" };
        let few = format!(
            "Too few batches to compare: no crop has 3 batches with a usable rate both {on} this {steps} and {on} the four {steps}s before."
        );
        format!("{few} {}", sentence(newest, &[absent]))
            .trim()
            .to_owned()
    } else {
        let other = if bad.is_empty() { "" } else { " other" };
        let is_only = usual.len() == newest.crops.len();
        let group = usual.iter().any(|crop| crop.name.is_empty());
        let words = match usual.iter().find(|crop| !crop.attention.is_empty()) {
            Some(_) => "otherwise as usual",
            None => "as usual",
        };
        let usual = match (usual.len() - usize::from(group), group) {
            (0, false) => String::new(),
            (0, true) => format!("{GROUP} is {words}"),
            (1, false) if is_only => format!("the only crop is {words}"),
            (1, true) if is_only => format!("the only crop and {GROUP} are {words}"),
            (2, false) if is_only => format!("both crops are {words}"),
            (2, true) if is_only => format!("both crops and {GROUP} are {words}"),
            (all, false) if is_only => format!("all {all} crops are {words}"),
            (all, true) if is_only => format!("all {all} crops and {GROUP} are {words}"),
            (some, _) => {
                let crops = if some == 1 { "crop" } else { "crops" };
                let and = if group { " and " } else { "" };
                let group = if group { GROUP } else { "" };
                format!("{some}{other} {crops}{and}{group} {words}")
            }
        };
        let unclear = match unclear.as_slice() {
            [] => String::new(),
            [crop] => format!("{} varies too much to tell", subject(crop.name)),
            crops => {
                let crops = count_crops(crops.iter().copied());
                format!("{crops} vary too much to tell")
            }
        };
        let few = match few.as_slice() {
            [] => String::new(),
            [crop] => format!("{} has too few batches to compare", subject(crop.name)),
            crops => {
                let crops = count_crops(crops.iter().copied());
                format!("{crops} have too few batches to compare")
            }
        };
        let rise = |crop: &Crop<'_>| format!("{} rose {}", subject(crop.name), moved(crop));
        sentence(
            newest,
            &[named(&up, &rise, "rose"), usual, unclear, few, absent],
        )
    };
    let parts = [
        format!("{}:", period(rules, newest.number)),
        sentence(newest, &[named(&bad, &trouble, "in trouble")]),
        counts(newest),
        rest,
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Names the crops without batches in the newest step that had some in the four before.
fn absent(newest: &Newest<'_>, steps: &str) -> String {
    let absent = newest.crops.iter().filter(|crop| !crop.is_present());
    let absent: Vec<&Crop<'_>> = absent.filter(|crop| !crop.before.is_empty()).collect();
    let absent = match absent.as_slice() {
        [] => String::new(),
        [crop] if crop.name.is_empty() => "no batches without a crop".to_owned(),
        [crop] => format!("no batches of {}", crop.name),
        crops => {
            let named = crops.iter().filter(|crop| !crop.name.is_empty()).count();
            let none = if named < crops.len() {
                ", and none without a crop"
            } else {
                ""
            };
            format!("no batches of {}{none}", plural(named, "crop", "crops"))
        }
    };
    match &*absent {
        "" => absent,
        _ => format!("{absent}, unlike in the four {steps}s before"),
    }
}

/// Says how many batches need attention.
fn counts(newest: &Newest<'_>) -> String {
    let flagged = || newest.crops.iter().flat_map(|crop| &crop.attention);
    let failed = flagged().filter(|flagged| flagged.has_failed).count();
    let all = flagged().count();
    let crops = newest.crops.iter();
    let failing: Vec<&Crop<'_>> = crops.filter(|crop| crop.has_failure()).collect();
    let of = match failing.as_slice() {
        [crop] if !crop.name.is_empty() => format!(" of {}", crop.name),
        _ => String::new(),
    };
    let need = plural(all, "batch needs attention", "batches need attention");
    match (all, failed) {
        (0, _) => String::new(),
        (_, 0) => format!("{need}."),
        _ if all == failed => format!("{}{of} failed.", plural(all, "batch", "batches")),
        _ => format!("{need}, {}{of} failed.", thousands(failed)),
    }
}

/// Joins parts to a sentence. The first letter is a capital, unless it is that of a crop.
fn sentence(newest: &Newest<'_>, parts: &[String]) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    let text = parts.join("; ");
    let mut letters = text.chars();
    let Some(first) = letters.next() else {
        return String::new();
    };
    let mut crops = newest.crops.iter().filter(|crop| !crop.name.is_empty());
    if crops.any(|crop| text.starts_with(crop_name(crop.name))) {
        return format!("{text}.");
    }
    format!("{}{}.", first.to_uppercase(), letters.as_str())
}

/// Describes the first three crops, and counts the others.
fn named(crops: &[&Crop<'_>], words: &dyn Fn(&Crop<'_>) -> String, more: &str) -> String {
    let mut parts: Vec<String> = crops.iter().take(3).map(|crop| words(crop)).collect();
    match crops.len() {
        0..=3 => {}
        4 => parts.push(format!("1 more crop {more}")),
        all => parts.push(format!("{} more crops {more}", all - 3)),
    }
    parts.join("; ")
}

fn moved(crop: &Crop<'_>) -> String {
    let missed = crop.missed.iter().find(|(field, ..)| *field == "usable");
    let limit = missed.map_or(i128::MIN, |(_, _, limit)| *limit);
    let rate = median(&values(&crop.newest, USABLE)).unwrap();
    let rate = if limit == i128::MIN {
        in_prose(rate, rate)
    } else {
        in_prose(rate, limit)
    };
    let points = in_prose(crop.change.unwrap().abs(), 0);
    format!("{points} points to {rate} % usable")
}

fn trouble(crop: &Crop<'_>) -> String {
    let name = subject(crop.name);
    let missed = crop.missed.first().map(|(field, value, limit)| {
        let (value, limit) = (in_prose(*value, *limit), shortest(*limit));
        match *field {
            "usable" if crop.is_down() => format!(", below its target of {limit} %"),
            "usable" => format!(" is below its target of {limit} % with {value} % usable"),
            "CV" => format!(" has a CV of {value} %, above its target of {limit} %"),
            field => format!(" has a {field} of {value} %, below its target of {limit} %"),
        }
    });
    match (crop.is_down(), missed) {
        (false, missed) => {
            let few = match crop.newest.len() {
                batches @ ..3 => format!(" ({})", plural(batches, "batch", "batches")),
                _ => String::new(),
            };
            format!("{name}{}{few}", missed.unwrap())
        }
        (true, None) => format!("{name} fell {}", moved(crop)),
        (true, Some(missed)) => {
            let and = if missed.starts_with(',') { "" } else { " and" };
            format!("{name} fell {}{and}{missed}", moved(crop))
        }
    }
}
