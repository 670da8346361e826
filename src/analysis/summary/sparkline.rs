//! Medians over time as a row of small bars.

use crate::analysis::statistics::{Decimal, GroupedFigures};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What the lowest bar stands for, and the highest: the same in every row, so that rows can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) low: Decimal,
    pub(super) high: Decimal,
}

impl Scale {
    /// Returns the scale on which every row fits; nothing where there is no median.
    pub(super) fn of(sums: &GroupedFigures) -> Option<Self> {
        let rows = sums.groups.iter().chain([&sums.total]);
        let medians = rows.flat_map(|row| row.trend.iter().flatten().copied());
        Some(Self {
            low: medians.clone().min()?,
            high: medians.max()?,
        })
    }

    /// Draws `medians`, with a blank where there is none.
    pub(super) fn draw(&self, medians: &[Option<Decimal>]) -> String {
        let line: String = medians
            .iter()
            .map(|median| median.map_or(' ', |median| self.bar(median)))
            .collect();
        line.trim_end().to_owned()
    }

    fn bar(&self, median: Decimal) -> char {
        // Eight parts of equal size, of which the last has its end too. All alike is neither low nor high.
        let place = (1..BARS.len() as u64).rev().find(|&place| {
            let eighths = (median - self.low) * Decimal::from(8);
            eighths >= (self.high - self.low) * Decimal::from(place)
        });
        match place {
            _ if self.low == self.high => BARS[3],
            Some(place) => BARS[usize::try_from(place).unwrap_or(0)],
            None => BARS[0],
        }
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
        let medians: Vec<Option<i64>> = (0..=8).map(|place| Some(5000 + place * 100)).collect();
        assert_eq!(drawn(5000, 5800, &medians), "▁▂▃▄▅▆▇██");
        assert_eq!(
            drawn(5000, 5800, &[Some(5099), Some(5100), Some(5799)]),
            "▁▂█"
        );
    }

    #[test]
    fn what_is_missing_is_a_blank() {
        assert_eq!(drawn(0, 8, &[None, Some(0), None, Some(8), None]), " ▁ █");
        assert_eq!(drawn(0, 8, &[]), "");
        assert_eq!(drawn(7, 7, &[Some(7), None, Some(7)]), "▄ ▄");
    }
}
