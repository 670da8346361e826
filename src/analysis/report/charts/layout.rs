//! Sizes, labels and types that several charts share.

/// The middle half of some values, their median and their ends, to be drawn.
#[derive(Clone, Debug)]
pub(in crate::analysis::report) struct Spread {
    pub(in crate::analysis::report) least: f64,
    pub(in crate::analysis::report) low: f64,
    pub(in crate::analysis::report) median: f64,
    pub(in crate::analysis::report) high: f64,
    pub(in crate::analysis::report) most: f64,
    /// The same in words, exact.
    pub(in crate::analysis::report) words: String,
}

/// The width of every chart: what a phone has room for without shrinking letters.
pub(super) const WIDTH: f64 = 360.0;
/// The height of a line of labels.
pub(super) const ROW: f64 = 26.0;

/// The width of a name beside a bar, in letters as high as wide.
const NAME: f64 = 7.9;

/// Cuts a name to what fits beside a bar: in the middle, for names of one kind often differ in their ends.
pub(super) fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if width(&letters) <= NAME {
        return name.to_owned();
    }
    let cut = |kept: usize| {
        let head = kept.div_ceil(2);
        let tail = &letters[letters.len() - (kept - head)..];
        [&letters[..head], &['…'], tail].concat()
    };
    let most = (0..letters.len())
        .take_while(|kept| width(&cut(*kept)) <= NAME)
        .last();
    cut(most.unwrap_or(0)).into_iter().collect()
}

/// Returns about how wide letters are, rather more than less: which font there is nobody knows.
fn width(letters: &[char]) -> f64 {
    let of = |letter: &char| match letter {
        ' ' | '!' | '\'' | '(' | ')' | ',' | '-' | '.' | ':' | ';' | 'I' | 'f' | 'i' | 'j'
        | 'l' | 'r' | 't' | '|' => 0.42,
        'M' | 'W' | 'm' | 'w' | '@' | '%' | '…' => 1.0,
        'A'..='Z' => 0.76,
        '\0'..='\u{7f}' => 0.61,
        // Letters of the East are squares.
        '\u{1100}'.. => 1.05,
        _ => 0.72,
    };
    letters.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_they_do_not_fit() {
        for name in ["", "Tomato", "Sweet pepper", "White cabbage"] {
            assert_eq!(short(name), name);
        }
        let wide = "W".repeat(120);
        for (name, shown) in [
            ("Lollo bionda, house 11", "Lollo …use 11"),
            (wide.as_str(), "WWW…WWW"),
            (
                "\u{756a}\u{8304}\u{306e}\u{54c1}\u{7a2e}\u{540d}\u{524d}\u{4e00}",
                "\u{756a}\u{8304}\u{306e}…\u{540d}\u{524d}\u{4e00}",
            ),
        ] {
            assert_eq!(short(name), shown);
            assert!(width(&short(name).chars().collect::<Vec<_>>()) <= NAME);
        }
    }
}
