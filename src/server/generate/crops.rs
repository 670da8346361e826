//! The crops: their usual germination, size and sowing season.

pub(super) struct CropProfile {
    pub(super) name: &'static str,
    /// Cells of the trays in which it is sown.
    pub(super) trays: &'static [u32],
    /// Usual share of cells that germinate, and of those that are usable, in per mille.
    pub(super) germination: u32,
    pub(super) usable: u32,
    /// Usual median size of a seedling, in hundredths of a square millimetre.
    pub(super) size: u32,
    /// Usual coefficient of variation of the size, in hundredths of a percent.
    pub(super) variation: u32,
    /// How much is sown in each month, January first.
    pub(super) months: [u32; 12],
    /// The number of batches in each of the newest weeks; zero for a crop that only large nurseries have.
    pub(super) weekly: u32,
    /// The number of batches in the newest week.
    pub(super) newest: u32,
}

/// The crop that does badly in the newest week.
pub(super) const TROUBLED: &str = "Sweet pepper";

const fn crop(
    name: &'static str,
    trays: &'static [u32],
    (germination, usable): (u32, u32),
    (size, variation): (u32, u32),
    months: [u32; 12],
) -> CropProfile {
    CropProfile {
        name,
        trays,
        germination,
        usable,
        size,
        variation,
        months,
        weekly: 0,
        newest: 0,
    }
}

impl CropProfile {
    const fn weekly(self, weekly: u32, newest: u32) -> Self {
        Self {
            weekly,
            newest,
            ..self
        }
    }
}

const SPRING: [u32; 12] = [4, 9, 12, 9, 4, 2, 1, 1, 1, 0, 1, 2];
const ALL_YEAR: [u32; 12] = [5, 7, 8, 8, 7, 6, 6, 7, 6, 4, 3, 3];
const SUMMER: [u32; 12] = [1, 1, 3, 6, 9, 10, 8, 5, 2, 0, 0, 0];
const AUTUMN: [u32; 12] = [1, 1, 1, 1, 2, 5, 9, 12, 9, 4, 1, 1];
const WINTER: [u32; 12] = [10, 8, 4, 1, 1, 1, 2, 2, 3, 5, 8, 11];

// The cells of the usual trays.
const WIDE: &[u32] = &[50, 72];
const LARGE: &[u32] = &[72, 104, 128];
const FINE: &[u32] = &[150, 240, 288];
const SMALL: &[u32] = &[240, 338, 504];

/// Each with its germination and usable rate, size and its variation.
pub(super) const CROPS: [CropProfile; 16] = [
    crop("Tomato", LARGE, (945, 905), (28_500, 1450), WINTER).weekly(6, 6),
    crop("Sweet pepper", LARGE, (915, 860), (19_800, 1780), WINTER).weekly(6, 10),
    crop("Aubergine", &[72, 104], (890, 830), (24_100, 2050), WINTER),
    crop("Cucumber", WIDE, (960, 935), (61_000, 1280), SPRING),
    crop("Courgette", WIDE, (950, 920), (82_500, 1350), SPRING),
    crop("Watermelon", WIDE, (900, 840), (54_000, 1900), SPRING),
    crop(
        "Lettuce",
        &[240, 288, 338],
        (955, 915),
        (9200, 1620),
        ALL_YEAR,
    )
    .weekly(6, 6),
    crop("Chicorée", &[240, 288], (880, 790), (7400, 2380), SUMMER).weekly(3, 0),
    crop("White cabbage", FINE, (940, 900), (11_300, 1550), SPRING),
    crop("Broccoli", FINE, (950, 910), (12_100, 1480), ALL_YEAR).weekly(5, 5),
    crop(
        "Cauliflower",
        &[150, 240],
        (925, 870),
        (12_800, 1690),
        SUMMER,
    ),
    crop("Leek", SMALL, (865, 800), (3100, 2250), SPRING),
    crop("Celery", SMALL, (840, 755), (2600, 2710), SPRING),
    crop("Basil", &[84, 104, 200], (905, 865), (6300, 1850), ALL_YEAR).weekly(5, 5),
    crop("Pansy", &[288, 384, 512], (870, 805), (2900, 2190), AUTUMN).weekly(5, 5),
    crop(
        "Scots pine",
        &[84, 121, 198],
        (810, 745),
        (4200, 2840),
        SUMMER,
    ),
];
