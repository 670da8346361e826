//! Generates one batch from its index.
//!
//! Counts add up: germinated and non-germinated cells are all cells, usable seedlings have germinated,
//! and the rates follow from the counts. Fields are null where the interface allows it and a real scan
//! would leave them empty.

use std::fmt::{self, Display, Formatter};
use std::io::Write as _;

use chrono::{Datelike as _, SecondsFormat};
use fastrand::Rng;
use serde_json::Value;

use super::plan::{Plan, Setback, Sowing};
use super::remarks::{FAILURES, LOSSES, REMARKS};
use crate::server::rng::mix;

const PEOPLE: [&str; 9] = [
    "anna",
    "bram",
    "chiara",
    "dilnoza",
    "emeka",
    "françois",
    "haruka",
    "ines",
    "jan.de.vries",
];

/// A decimal with two fraction digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hundredths(u32);

impl Display for Hundredths {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// A JSON string, or null. Its text needs no escapes.
struct Quoted<T>(Option<T>);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(text) => write!(f, "\"{text}\""),
            None => f.write_str("null"),
        }
    }
}

/// The counts of an average tray of a batch.
#[derive(Clone, Copy, Debug)]
struct TrayCounts {
    cells: u32,
    germinated: Hundredths,
    usable: Hundredths,
}

impl TrayCounts {
    /// Averages the seedlings counted in `trays` trays, rounded half up.
    fn average(cells: u32, trays: u32, germinated: u32, usable: u32) -> Self {
        let average = |sum: u32| Hundredths((sum * 100 + trays / 2) / trays);
        Self {
            cells,
            germinated: average(germinated),
            usable: average(usable),
        }
    }

    /// Returns the number of cells that are not in `those`.
    fn others(&self, those: Hundredths) -> Hundredths {
        Hundredths(self.cells * 100 - those.0)
    }

    /// Returns the share of `those` in all cells, in percent, rounded half up.
    fn rate(&self, those: Hundredths) -> Hundredths {
        Hundredths((those.0 * 100 + self.cells / 2) / self.cells)
    }
}

/// Appends batch number `index` to `text` as a JSON object.
pub(super) fn write(plan: &Plan, index: usize, unknown_fields: bool, text: &mut Vec<u8>) {
    let mut rng = Rng::with_seed(mix(plan.seed, index as u64));
    let created = plan.moment(index);
    let batch_id = identifier(&mut rng);
    let mut sowing = plan.sowing(index, &mut rng);
    let crop = sowing.crop;
    let house = rng.u32(1..=8);
    let lot = sowing.lot.unwrap_or_else(|| rng.u32(1000..10_000));

    // Some scans fail: they have few images or none, and no figures. Those of a bad lot show what happened.
    let is_bad_lot = sowing.lot.is_some();
    let failed = one_in(40, &mut rng) && !is_bad_lot;
    let images = if failed {
        rng.u32(0..3)
    } else {
        rng.u32(1..=24)
    };
    let cells = *rng.choice(crop.trays).expect("every crop has its trays");
    let cells_known = !one_in(60, &mut rng) || is_bad_lot;
    let counts = (!failed && cells_known).then(|| counted(&mut sowing, cells, images));
    // Without seedlings there is nothing to measure.
    let any_seedlings = !failed && counts.is_none_or(|counts| counts.germinated.0 > 0);
    let size = around(crop.size, 250, &mut rng);
    let variation = around(crop.variation, 300, &mut rng);

    let poor = counts.is_some_and(|counts| counts.rate(counts.germinated).0 < 7000);
    let remarks = match (failed, poor) {
        (true, _) => &FAILURES[..],
        (false, true) => &LOSSES[..],
        (false, false) => &REMARKS[..],
    };
    let remark = *rng.choice(remarks).expect("some");
    let commented = failed || poor || one_in(4, &mut rng);
    let person = *rng.choice(&PEOPLE).expect("some");

    let (name, week) = (crop.name, created.iso_week().week());
    let created = created.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    let crop_type = Quoted((!one_in(30, &mut rng) || is_bad_lot).then_some(name));
    let total_cells = Value::from(cells_known.then_some(cells));
    let germinated = Quoted(counts.map(|counts| counts.germinated));
    let non_germinated = Quoted(counts.map(|counts| counts.others(counts.germinated)));
    let germination_rate = Quoted(counts.map(|counts| counts.rate(counts.germinated)));
    let usable = Quoted(counts.map(|counts| counts.usable));
    let non_usable = Quoted(counts.map(|counts| counts.others(counts.usable)));
    let usable_rate = Quoted(counts.map(|counts| counts.rate(counts.usable)));
    let variation = Quoted(any_seedlings.then_some(variation));
    let size = Quoted(any_seedlings.then_some(size));
    let known_person = !one_in(16, &mut rng);
    let email = Quoted(known_person.then(|| format!("{person}@nursery.example")));
    let link = format!("https://scan.example.com/analysis/{batch_id}");
    let link = Quoted((!failed).then_some(link));
    let comment = Value::from(commented.then_some(remark));
    let warnings = failed || poor || one_in(25, &mut rng);
    // In the field order of the interface (section 2). One literal takes a seventh of the time of a derived
    // `Serialize` where our own code is not optimised.
    write!(
        text,
        "{{\"batch_id\":\"{batch_id}\",\
         \"batch_name\":\"{name} W{week:02} house {house} lot {lot}\",\
         \"batch_creation_date\":\"{created}\",\
         \"crop_type\":{crop_type},\
         \"number_of_images\":{images},\
         \"total_cells_per_tray\":{total_cells},\
         \"avg_germinated_seedlings\":{germinated},\
         \"avg_non_germinated_seedlings\":{non_germinated},\
         \"avg_germination_rate\":{germination_rate},\
         \"avg_usable_seedlings\":{usable},\
         \"avg_non_usable_cells\":{non_usable},\
         \"avg_usable_seedling_rate\":{usable_rate},\
         \"avg_coefficient_of_variation\":{variation},\
         \"avg_median_seedling_size_mm2\":{size},\
         \"scanned_by_email\":{email},\
         \"analysis_link\":{link},\
         \"comment\":{comment},\
         \"warnings\":{warnings}"
    )
    .expect("writing to memory cannot fail");
    if unknown_fields {
        write!(
            text,
            ",\"tray_material\":\"peat-free, 40 % coir\",\
             \"scanner\":{{\"id\":{house},\"lamps\":[true,null]}}"
        )
        .expect("writing to memory cannot fail");
    }
    text.push(b'}');
}

fn one_in(often: u32, rng: &mut Rng) -> bool {
    rng.u32(0..often) == 0
}

/// Returns an identifier in the format of a random UUID.
fn identifier(rng: &mut Rng) -> String {
    let bits = rng.u128(..) & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

/// Counts seedlings in `images` trays: mostly near the usual rates of the crop, sometimes far below.
fn counted(sowing: &mut Sowing, cells: u32, images: u32) -> TrayCounts {
    let crop = sowing.crop;
    let (germination, usable) = match sowing.setback {
        Setback::Weak => (crop.germination - 45, crop.usable - 92),
        _ => (crop.germination, crop.usable),
    };
    let mut drawn = |usual: u32, spread: u32| {
        let Hundredths(near) = around(usual, spread, &mut sowing.chance);
        let drawn = if sowing.is_opposite {
            2 * usual - near
        } else {
            near
        };
        drawn.min(1000)
    };
    let germinating = drawn(germination.saturating_add_signed(sowing.drift), 20);
    let usable_of_germinated = drawn(usable * 1000 / germination, 12);
    let germination = match sowing.setback {
        Setback::None | Setback::Weak => germinating,
        Setback::Poor => sowing.chance.u32(0..crop.germination * 3 / 4),
        Setback::Total => 0,
    };
    let sown = cells * images;
    let germinated = (sown * germination + sowing.chance.u32(0..1000)) / 1000;
    let usable = germinated * usable_of_germinated / 1000;
    TrayCounts::average(cells, images, germinated.min(sown), usable)
}

/// Returns a number near `usual`, usually within `spread` per mille of it.
fn around(usual: u32, spread: u32, rng: &mut Rng) -> Hundredths {
    let swing = 2 * u64::from(usual) * u64::from(spread) / 1000;
    // The average of three draws has its peak in the middle.
    let drawn = (0..3).map(|_| rng.u64(0..=2 * swing)).sum::<u64>() / 3;
    let moved = u64::from(usual) + drawn - swing;
    Hundredths(u32::try_from(moved).expect("near a number of this size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_and_rates_round_half_up() {
        let counts = TrayCounts::average(72, 8, 505, 500);
        assert_eq!(counts.germinated, Hundredths(6313));
        assert_eq!(counts.others(counts.germinated), Hundredths(887));
        assert_eq!(counts.rate(counts.germinated), Hundredths(8768));
        assert_eq!(counts.rate(counts.usable), Hundredths(8681));
    }

    #[test]
    fn decimals_have_two_fraction_digits() {
        let text = |number| Quoted(Some(Hundredths(number))).to_string();
        assert_eq!(text(8750), "\"87.50\"");
        assert_eq!(text(5), "\"0.05\"");
    }

    #[test]
    fn identifiers_look_like_random_uuids() {
        let id = identifier(&mut Rng::with_seed(1));
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&id[14..15], "4");
        assert!("89ab".contains(&id[19..20]));
    }
}
