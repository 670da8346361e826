//! Sparklines: medians over time as a row of small bars.

use crate::analysis::statistics::{Decimal, GroupedFigures};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values of the lowest and the highest bar, the same in every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) low: Decimal,
    pub(super) high: Decimal,
}

impl Scale {
    /// Returns the scale that fits every row. `None` if there is no median.
    pub(super) fn of(grouped: &GroupedFigures) -> Option<Self> {
        let rows = grouped.groups.iter().chain([&grouped.total]);
        let medians = rows.flat_map(|row| row.trend.iter().flatten().copied());
        Some(Self {
            low: medians.clone().min()?,
            high: medians.max()?,
        })
    }

    /// Draws `medians`, with a blank for each `None`.
    pub(super) fn draw(&self, medians: &[Option<Decimal>]) -> String {
        let bars = medians
            .iter()
            .map(|median| median.map_or(' ', |median| self.bar(median)));
        bars.collect::<String>().trim_end().to_owned()
    }

    fn bar(&self, median: Decimal) -> char {
        // Eight parts of equal size; the last includes its end. If all are equal, the bar is in the middle.
        if self.low == self.high {
            return BARS[3];
        }
        let eighths = (median - self.low) * Decimal::from(8);
        let is_reached = |index: &usize| eighths >= (self.high - self.low) * Decimal::from(*index);
        BARS[(1..BARS.len()).rev().find(is_reached).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(low: i64, high: i64, medians: &[Option<i64>]) -> String {
        let decimal = |number: i64| Decimal::new(number, 2);
        let scale = Scale {
            low: decimal(low),
            high: decimal(high),
        };
        let medians: Vec<Option<Decimal>> =
            medians.iter().map(|median| median.map(decimal)).collect();
        scale.draw(&medians)
    }

    #[test]
    fn bars_are_eight_parts_of_the_scale() {
        let medians: Vec<Option<i64>> = (0..=8).map(|index| Some(5000 + index * 100)).collect();
        assert_eq!(drawn(5000, 5800, &medians), "▁▂▃▄▅▆▇██");
        assert_eq!(
            drawn(5000, 5800, &[Some(5099), Some(5100), Some(5799)]),
            "▁▂█"
        );
    }

    #[test]
    fn a_missing_value_is_a_blank() {
        assert_eq!(drawn(0, 8, &[None, Some(0), None, Some(8), None]), " ▁ █");
        assert_eq!(drawn(0, 8, &[]), "");
        assert_eq!(drawn(7, 7, &[Some(7), None, Some(7)]), "▄ ▄");
    }
}
