//! The contrast of text and its background, computed from the colors of the page.

use crate::report::{MADE, nursery, page, sound};

#[test]
fn text_has_enough_contrast() {
    let html = page(&nursery([sound("a", MADE)]), &[]);
    let themes: Vec<&str> = html.split(":root{").skip(1).collect();
    assert_eq!(themes.len(), 3, "light, dark, paper");
    for theme in themes {
        let theme = theme.split('}').next().unwrap();
        let color = |name: &str| {
            let found = theme
                .split(';')
                .find_map(|rule| rule.strip_prefix(&format!("--{name}:")));
            found.unwrap_or_else(|| panic!("no {name} in {theme}"))
        };
        for ground in ["page", "card"] {
            for ink in ["ink", "soft", "blue", "good", "bad"] {
                assert_contrast(color(ink), color(ground), 4.5, ink);
            }
            // Shapes need less contrast.
            for shape in ["blue", "orange"] {
                assert_contrast(color(shape), color(ground), 3.0, shape);
            }
        }
        for (ink, ground) in [
            ("on-blue", "blue"),
            ("on-amber", "amber"),
            ("on-pale", "pale"),
        ] {
            assert_contrast(color(ink), color(ground), 4.5, ink);
        }
        // Adjacent parts of a bar.
        assert_contrast(color("blue"), color("amber"), 1.5, "blue and amber");
    }
}

#[track_caller]
fn assert_contrast(ink: &str, ground: &str, least: f64, name: &str) {
    let (ink, ground) = (luminance(ink), luminance(ground));
    let contrast = (ink.max(ground) + 0.05) / (ink.min(ground) + 0.05);
    assert!(contrast >= least, "{name}: {contrast:.2}");
}

/// Returns the relative luminance of a colour, as defined by WCAG 2.
fn luminance(color: &str) -> f64 {
    let digits = color.strip_prefix('#').unwrap();
    let channel = |place: usize| {
        let text = match digits.len() {
            3 => digits[place..=place].repeat(2),
            _ => digits[2 * place..2 * place + 2].to_owned(),
        };
        let value = f64::from(u8::from_str_radix(&text, 16).unwrap()) / 255.0;
        if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
}
