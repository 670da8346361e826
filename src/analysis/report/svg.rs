//! Small SVG pictures, written as text: shapes, scales and what a screen reader says instead.
//!
//! Colours and fonts come from the classes of the page, so that a picture follows light, dark and print.

use std::fmt::{self, Display, Write as _};

use super::escape::Escaped;

/// A length or a place: a tenth of a unit is finer than any screen shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        let text = text.strip_suffix(".0").unwrap_or(&text);
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

/// What stands for a picture where it cannot be seen.
pub(super) struct AltText<'a> {
    /// Unique on the page.
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) description: &'a str,
}

/// A picture in the making.
pub(super) struct Svg {
    text: String,
}

/// Where a text stands on its place.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// Begins a picture of this size, in units that become pixels on a phone and grow on a desk.
    pub(super) fn new(width: f64, height: f64, words: &AltText<'_>) -> Self {
        Self::begin(width, height, "img", words)
    }

    /// The same, with links in it that a screen reader may follow.
    pub(super) fn with_links(width: f64, height: f64, words: &AltText<'_>) -> Self {
        Self::begin(width, height, "group", words)
    }

    fn begin(width: f64, height: f64, role: &str, words: &AltText<'_>) -> Self {
        let AltText {
            id,
            title,
            description,
        } = words;
        let (width, height) = (Px(width), Px(height));
        let text = format!(
            r#"<svg viewBox="0 0 {width} {height}" role="{role}" aria-labelledby="{id}-t {id}-d"><title id="{id}-t">{}</title><desc id="{id}-d">{}</desc>"#,
            Escaped(title),
            Escaped(description),
        );
        Self { text }
    }

    /// Begins a picture that only repeats what stands beside it.
    pub(super) fn ornament(width: f64, height: f64, class: &str) -> Self {
        let (width, height) = (Px(width), Px(height));
        let text = format!(
            r#"<svg class="{class}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true">"#
        );
        Self { text }
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (Px(from.0), Px(from.1), Px(to.0), Px(to.1));
        self.write(format_args!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    /// Draws a line through `points`.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        self.outline(class, points, "", None);
    }

    /// Fills what `points` go around; `hint` shows where a pointer rests on it.
    pub(super) fn area(&mut self, class: &str, points: &[(f64, f64)], hint: Option<&str>) {
        self.outline(class, points, "Z", hint);
    }

    fn outline(&mut self, class: &str, points: &[(f64, f64)], end: &str, hint: Option<&str>) {
        let mut places = String::new();
        for (place, (x, y)) in points.iter().enumerate() {
            let pen = if place == 0 { 'M' } else { 'L' };
            // Memory takes every text.
            let _ = write!(places, "{pen}{} {}", Px(*x), Px(*y));
        }
        self.write(format_args!(r#"<path class="{class}" d="{places}{end}""#));
        self.close("path", hint);
    }

    /// Draws a box; `hint` shows where a pointer rests on it.
    pub(super) fn rectangle(
        &mut self,
        class: &str,
        corner: (f64, f64),
        size: (f64, f64),
        hint: Option<&str>,
    ) {
        let (x, y, width, height) = (Px(corner.0), Px(corner.1), Px(size.0), Px(size.1));
        self.write(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}""#
        ));
        self.close("rect", hint);
    }

    /// Fills boxes of one size, as one shape: there may be thousands of them.
    pub(super) fn boxes(&mut self, class: &str, corners: &[(f64, f64)], size: (f64, f64)) {
        let (width, height) = (Px(size.0), Px(size.1));
        self.write(format_args!(r#"<path class="{class}" d=""#));
        for (x, y) in corners {
            let (x, y) = (Px(*x), Px(*y));
            self.write(format_args!("M{x} {y}h{width}v{height}h-{width}z"));
        }
        self.write(format_args!(r#""/>"#));
    }

    /// Draws a dot; `hint` shows where a pointer rests on it.
    pub(super) fn dot(&mut self, class: &str, center: (f64, f64), radius: f64, hint: Option<&str>) {
        let (x, y, radius) = (Px(center.0), Px(center.1), Px(radius));
        self.write(format_args!(
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}""#
        ));
        self.close("circle", hint);
    }

    fn close(&mut self, name: &str, hint: Option<&str>) {
        match hint {
            Some(hint) => self.write(format_args!("><title>{}</title></{name}>", Escaped(hint))),
            None => self.write(format_args!("/>")),
        }
    }

    /// Lets what `draw` draws lead to `address`, which has been found to be harmless.
    pub(super) fn link(&mut self, address: &str, draw: impl FnOnce(&mut Self)) {
        // Hundreds of them would be in the way of whoever goes from link to link by key.
        self.write(format_args!(
            r#"<a href="{}" target="_blank" rel="noopener noreferrer" tabindex="-1">"#,
            Escaped(address)
        ));
        draw(self);
        self.write(format_args!("</a>"));
    }

    pub(super) fn label(&mut self, class: &str, place: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (Px(place.0), Px(place.1));
        self.write(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{}</text>"#,
            Escaped(text)
        ));
    }

    fn write(&mut self, piece: fmt::Arguments<'_>) {
        // Memory takes every text.
        let _ = self.text.write_fmt(piece);
    }
}

/// A stretch of numbers laid over a stretch of the picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Axis {
    pub(super) fn new((from, to): (f64, f64), (start, end): (f64, f64)) -> Self {
        Self {
            from,
            to,
            start,
            end,
        }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let share = (value - self.from) / (self.to - self.from);
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Returns round numbers on the way, at most about `count` of them.
    pub(super) fn ticks(&self, count: u32) -> Vec<f64> {
        let step = round_step((self.to - self.from) / f64::from(count.max(1)));
        let first = (self.from / step - 1e-9).ceil();
        (0..=2 * count.max(5))
            .map(|place| (first + f64::from(place)) * step)
            .take_while(|tick| *tick <= self.to + step * 1e-9)
            .collect()
    }
}

/// Returns the next number of the kind 1, 2, 5, 10 from `least` on.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// Widens `from..to` to multiples of a round step, so that axes begin and end on ticks.
pub(super) fn rounded_out(from: f64, to: f64, ticks: u32) -> (f64, f64) {
    let span = if to > from { to - from } else { 1.0 };
    let step = round_step(span / f64::from(ticks.max(1)));
    let (from, to) = ((from / step).floor() * step, (to / step).ceil() * step);
    (from, if to > from { to } else { from + step })
}

/// Writes a tick without zeros that say nothing.
pub(super) fn tick_label(tick: f64) -> String {
    let text = format!("{tick:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_a_tag() {
        let words = AltText {
            id: "x",
            title: "</title><script>",
            description: "\"&'",
        };
        let mut svg = Svg::with_links(10.0, 10.0, &words);
        svg.label("a", (0.0, 0.0), Anchor::End, "<img src=x onerror=alert(1)>");
        svg.link("https://example.org/\"onmouseover=\"x", |svg| {
            svg.dot("d", (1.0, 2.0), 3.0, Some("</circle><script>"));
        });
        let text = svg.finish();
        assert!(!text.contains("<script"), "{text}");
        assert!(!text.contains("<img"), "{text}");
        assert!(!text.contains("\"onmouseover"), "{text}");
    }

    #[test]
    fn ticks_are_round_and_within() {
        let scale = Axis::new((62.0, 100.0), (0.0, 100.0));
        assert_eq!(scale.ticks(4), [70.0, 80.0, 90.0, 100.0]);
        assert_eq!(rounded_out(63.2, 98.0, 4), (60.0, 100.0));
        assert_eq!(rounded_out(5.0, 5.0, 4), (5.0, 5.5));
        assert_eq!(tick_label(0.1 + 0.2), "0.3");
        assert_eq!(tick_label(100.0), "100");
    }

    #[test]
    fn places_stay_within_the_picture() {
        let scale = Axis::new((0.0, 100.0), (10.0, 110.0));
        for (value, place) in [(0.0, 10.0), (50.0, 60.0), (100.0, 110.0), (250.0, 110.0)] {
            assert!((scale.place(value) - place).abs() < 1e-9);
        }
        assert_eq!(format!("{} {} {}", Px(1.04), Px(2.0), Px(-0.01)), "1 2 0");
    }
}
