//! Writes small SVG images as text: shapes, axes and alternative text for screen readers.
//!
//! Text from outside is escaped. Colours and fonts come from the CSS classes of the page, for light mode, dark mode and print.

use std::fmt::{self, Display, Write};

use askama::filters::{Escaper, Html};

use crate::text;

/// Escapes HTML, and shows control characters and bidirectional overrides as visible escapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisibleHtml;

impl Escaper for VisibleHtml {
    fn write_escaped_str<W: Write>(&self, page: W, text: &str) -> fmt::Result {
        Html.write_escaped_str(page, &text::escape(text))
    }

    fn write_escaped_char<W: Write>(&self, page: W, character: char) -> fmt::Result {
        self.write_escaped_str(page, character.encode_utf8(&mut [0; 4]))
    }
}

/// Escapes text for SVG elements and attributes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        VisibleHtml.write_escaped_str(f, self.0)
    }
}

/// A length or position, rounded to a tenth: no screen shows more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        let text = text.strip_suffix(".0").unwrap_or(&text);
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

/// The alternative text of an image.
pub(super) struct AltText<'a> {
    /// Unique on the page.
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) description: &'a str,
}

/// An image under construction.
pub(super) struct Svg {
    text: String,
}

/// The alignment of a text at its position.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// Starts an image of this size. A unit is a pixel on a phone and larger on a desktop.
    pub(super) fn new(width: f64, height: f64, alt: &AltText<'_>) -> Self {
        Self::with_role("img", width, height, alt)
    }

    /// Starts an image with a role for screen readers: they follow links in a `group`, but not in an `img`.
    pub(super) fn with_role(role: &str, width: f64, height: f64, alt: &AltText<'_>) -> Self {
        let (width, height, id) = (Px(width), Px(height), alt.id);
        let (title, description) = (Escaped(alt.title), Escaped(alt.description));
        let text = format!(
            r#"<svg viewBox="0 0 {width} {height}" role="{role}" aria-labelledby="{id}-t {id}-d"><title id="{id}-t">{title}</title><desc id="{id}-d">{description}</desc>"#
        );
        Self { text }
    }

    /// Starts a sparkline. Screen readers and tooltips say its values.
    pub(super) fn sparkline(width: f64, height: f64, values: &str) -> Self {
        let (width, height, values) = (Px(width), Px(height), Escaped(values));
        let text = format!(
            r#"<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"><title>{values}</title><desc>Median usable rate of each step, in percent</desc>"#
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

    /// Fills the area inside `points`. `tooltip` is its tooltip.
    pub(super) fn area(&mut self, class: &str, points: &[(f64, f64)], tooltip: Option<&str>) {
        self.outline(class, points, "Z", tooltip);
    }

    fn outline(&mut self, class: &str, points: &[(f64, f64)], end: &str, tooltip: Option<&str>) {
        let mut points_text = String::new();
        for (position, (x, y)) in points.iter().enumerate() {
            let pen = if position == 0 { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(points_text, "{pen}{} {}", Px(*x), Px(*y));
        }
        self.write(format_args!(
            r#"<path class="{class}" d="{points_text}{end}""#
        ));
        self.close("path", tooltip);
    }

    /// Draws a rectangle. `tooltip` is its tooltip.
    pub(super) fn rectangle(
        &mut self,
        class: &str,
        corner: (f64, f64),
        size: (f64, f64),
        tooltip: Option<&str>,
    ) {
        let (x, y, width, height) = (Px(corner.0), Px(corner.1), Px(size.0), Px(size.1));
        self.write(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}""#
        ));
        self.close("rect", tooltip);
    }

    /// Fills rectangles of the same size as one shape: there may be thousands.
    pub(super) fn boxes(&mut self, class: &str, corners: &[(f64, f64)], size: (f64, f64)) {
        let (width, height) = (Px(size.0), Px(size.1));
        self.write(format_args!(r#"<path class="{class}" d=""#));
        for (x, y) in corners {
            let (x, y) = (Px(*x), Px(*y));
            self.write(format_args!("M{x} {y}h{width}v{height}h-{width}z"));
        }
        self.write(format_args!(r#""/>"#));
    }

    /// Draws a dot. `tooltip` is its tooltip.
    pub(super) fn dot(
        &mut self,
        class: &str,
        center: (f64, f64),
        radius: f64,
        tooltip: Option<&str>,
    ) {
        let (x, y, radius) = (Px(center.0), Px(center.1), Px(radius));
        self.write(format_args!(
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}""#
        ));
        self.close("circle", tooltip);
    }

    fn close(&mut self, name: &str, tooltip: Option<&str>) {
        match tooltip.map(Escaped) {
            Some(tooltip) => self.write(format_args!("><title>{tooltip}</title></{name}>")),
            None => self.write(format_args!("/>")),
        }
    }

    /// Draws a diamond: a dot that stands out.
    pub(super) fn diamond(&mut self, class: &str, (x, y): (f64, f64), tooltip: &str) {
        let corners = [(x - 5.0, y), (x, y - 5.0), (x + 5.0, y), (x, y + 5.0)];
        self.area(class, &corners, Some(tooltip));
    }

    /// Draws a triangle that points to `tip`, at the lower or upper edge: the value is beyond the scale.
    pub(super) fn triangle(
        &mut self,
        class: &str,
        tip: (f64, f64),
        is_low: bool,
        tooltip: Option<&str>,
    ) {
        let (x, y) = tip;
        let inner = if is_low { y - 7.0 } else { y + 7.0 };
        self.area(class, &[(x - 4.0, inner), (x + 4.0, inner), tip], tooltip);
    }

    /// Makes what `draw` draws a link to `address`, which must be a checked web link.
    pub(super) fn link(&mut self, address: &str, draw: impl FnOnce(&mut Self)) {
        // Not in the tab order: there may be hundreds.
        self.write(format_args!(
            r#"<a href="{}" target="_blank" rel="noopener noreferrer" tabindex="-1">"#,
            Escaped(address)
        ));
        draw(self);
        self.write(format_args!("</a>"));
    }

    pub(super) fn label(&mut self, class: &str, position: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (Px(position.0), Px(position.1));
        self.write(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{}</text>"#,
            Escaped(text)
        ));
    }

    fn write(&mut self, piece: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(piece);
    }
}

/// Maps a range of numbers to a range of positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) to: f64,
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

    /// Returns the position of `value`, limited to the ends of the axis.
    pub(super) fn position(&self, value: f64) -> f64 {
        let share = (value - self.from) / (self.to - self.from);
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Returns round numbers on the axis, about `count` at most.
    pub(super) fn ticks(&self, count: u32) -> Vec<f64> {
        let step = round_step((self.to - self.from) / f64::from(count.max(1)));
        let first = (self.from / step - 1e-9).ceil();
        (0..=2 * count.max(5))
            .map(|position| (first + f64::from(position)) * step)
            .take_while(|tick| *tick <= self.to + step * 1e-9)
            .collect()
    }
}

/// Returns the smallest step of 1, 2 or 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// Widens `from..to` to multiples of a round step, so that the axis starts and ends at a tick.
pub(super) fn rounded_out(from: f64, to: f64, ticks: u32) -> (f64, f64) {
    let span = if to > from { to - from } else { 1.0 };
    let step = round_step(span / f64::from(ticks.max(1)));
    let (from, to) = ((from / step).floor() * step, (to / step).ceil() * step);
    (from, if to > from { to } else { from + step })
}

/// Formats a tick without trailing zeros.
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
        let alt = AltText {
            id: "x",
            title: "</title><script>",
            description: "\"&'",
        };
        let mut svg = Svg::with_role("group", 10.0, 10.0, &alt);
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
    fn positions_stay_within_the_image() {
        let scale = Axis::new((0.0, 100.0), (10.0, 110.0));
        for (value, position) in [(0.0, 10.0), (50.0, 60.0), (100.0, 110.0), (250.0, 110.0)] {
            assert!((scale.position(value) - position).abs() < 1e-9);
        }
        assert_eq!(format!("{} {} {}", Px(1.04), Px(2.0), Px(-0.01)), "1 2 0");
    }

    #[test]
    fn invisible_characters_are_escaped() {
        let mut page = String::new();
        let text = "<a>\u{1b}[2J\u{0}\u{202e}&\r\n\u{9b}";
        VisibleHtml
            .write_escaped_str(&mut page, text)
            .expect("text");
        VisibleHtml
            .write_escaped_char(&mut page, '\u{7}')
            .expect("text");
        let shown = "&#60;a&#62;\\u{1b}[2J\\u{0}\\u{202e}&#38;\\u{d}\n\\u{9b}\\u{7}";
        assert_eq!(page, shown);
    }
}
