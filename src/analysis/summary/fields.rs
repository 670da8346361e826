//! The fields of a group as text, for all formats.

use crate::analysis::judgement::{CropJudgement, NewestStep};
use crate::analysis::statistics::{
    By, Decimal, Figures, Group, GroupedFigures, Metric, two_digits,
};
use crate::batch::range::written;

/// Returns the metrics, with their names in files.
pub(super) fn metrics(figures: &Figures) -> [(&'static str, &Metric); 4] {
    [
        ("germination_rate", &figures.germination_rate),
        ("usable_rate", &figures.usable_rate),
        ("seedling_size_mm2", &figures.seedling_size),
        (
            "coefficient_of_variation",
            &figures.coefficient_of_variation,
        ),
    ]
}

/// The figures of one field as text. `None` if there is no value.
pub(super) struct FieldText {
    pub(super) low: Option<String>,
    pub(super) median: Option<String>,
    pub(super) high: Option<String>,
    pub(super) weighted_mean: Option<String>,
}

impl FieldText {
    pub(super) fn of(metric: &Metric) -> Self {
        let quartiles = metric.distribution.quartiles();
        let shown = |number: Option<Decimal>| number.map(two_digits);
        Self {
            low: shown(quartiles.map(|quartiles| quartiles.low)),
            median: shown(quartiles.map(|quartiles| quartiles.median)),
            high: shown(quartiles.map(|quartiles| quartiles.high)),
            weighted_mean: shown(metric.weighted_mean()),
        }
    }
}

/// Returns when the first and the last batch were created.
pub(super) fn span(figures: &Figures) -> [Option<String>; 2] {
    [&figures.first, &figures.last]
        .map(|moment| moment.as_ref().map(|moment| written(moment.second)))
}

/// Returns the judgement of a group, if the groups are crops.
pub(super) fn judgement<'a>(
    grouped: &GroupedFigures,
    newest: Option<&'a NewestStep<'a>>,
    group: &Group,
) -> Option<&'a CropJudgement<'a>> {
    let newest = newest.filter(|_| grouped.by == [By::CropType])?;
    let name = group.key.first()?.name();
    newest.crop(name.as_deref().unwrap_or(""))
}
