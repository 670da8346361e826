//! Reads the parts of the page.

use std::collections::BTreeMap;

/// Returns the text between each `start` and the next `end`.
pub(super) fn parts<'a>(html: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let pieces = html.split(start).skip(1);
    pieces
        .map(|piece| piece.split(end).next().unwrap())
        .collect()
}

/// Returns the visible text: no tags, no escapes, single spaces.
pub(crate) fn plain(html: &str) -> String {
    let mut text = String::new();
    for (place, piece) in html.split('<').enumerate() {
        let shown = match place {
            0 => piece,
            _ => piece.split_once('>').unwrap().1,
        };
        text.push_str(shown);
    }
    for (escape, character) in [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("\u{a0}", " "),
        ("&#38;", "&"),
    ] {
        text = text.replace(escape, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the section with the heading `id`.
pub(super) fn section<'a>(html: &'a str, id: &str) -> &'a str {
    let start = format!("aria-labelledby=\"{id}\"");
    let found = parts(html, &start, "</section>");
    assert_eq!(found.len(), 1, "{id}");
    found[0]
}

/// Returns the headings of the sections, in order.
pub(super) fn headings(html: &str) -> Vec<&str> {
    parts(html, "<h2 id=\"", "\"")
}

/// Returns the cells of each row, without sparklines.
pub(super) fn rows(table: &str) -> Vec<Vec<String>> {
    let rows = parts(table, "<tr", "</tr>").into_iter().map(|row| {
        let row = row.replace("<th", "<td").replace("</th>", "</td>");
        let cells = parts(&row, "<td", "</td>").into_iter().map(|cell| {
            let cell = cell.split("<svg").next().unwrap();
            plain(&format!("<{cell}"))
        });
        cells.collect()
    });
    rows.collect()
}

pub(super) fn body_rows(table: &str) -> Vec<Vec<String>> {
    rows(table).into_iter().skip(1).collect()
}

/// Returns the rows of the crops in the newest step.
pub(super) fn crops(html: &str) -> Vec<Vec<String>> {
    body_rows(section(html, "crops"))
}

/// Returns one column of the crops in the newest step, by crop.
pub(super) fn column(html: &str, name: &str) -> BTreeMap<String, String> {
    let table = rows(section(html, "crops"));
    let place = table[0].iter().position(|title| title == name).unwrap();
    let rows = table[1..].iter();
    rows.map(|row| (row[0].clone(), row[place].clone()))
        .collect()
}

/// Returns the CSS class of each crop in the newest step.
pub(super) fn classes(html: &str) -> Vec<&str> {
    parts(section(html, "crops"), "<tr role=\"row\" class=\"", "\"")
}

/// Returns the values of each sparkline, in the order of the crops.
pub(super) fn sparklines(html: &str) -> Vec<String> {
    let texts = parts(section(html, "crops"), "<title>", "</title>");
    texts.into_iter().map(plain).collect()
}

/// Returns the sentences at the top.
pub(super) fn lead(html: &str) -> String {
    plain(parts(section(html, "verdict"), "<p class=\"lead\">", "</p>")[0])
}

/// The batches of one crop that need attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttentionCrop {
    pub(super) name: String,
    /// How many of how many batches.
    pub(super) count: String,
    /// The line about a crop that is down.
    pub(super) down: Option<String>,
    /// Including those that are folded away.
    pub(super) rows: Vec<AttentionRow>,
}

/// A batch that needs attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttentionRow {
    pub(super) name: String,
    pub(super) rate: String,
    pub(super) reason: String,
    pub(super) day: Option<String>,
}

fn attention_rows(list: &str) -> Vec<AttentionRow> {
    let rows = parts(list, "<li>", "</li>").into_iter().map(|row| {
        let span = |class: &str| {
            let start = format!("<span class=\"{class}\">");
            let found = parts(row, &start, "</span>");
            found.first().map(|text| plain(text))
        };
        let name = row.split("<span class=\"rate\">").next().unwrap();
        // In an older row, the crop is before the day.
        let about = span("about");
        let day = about.map(|about| {
            let mut words = about.split(", ");
            let is_day = |part: &&str| part.ends_with(|letter: char| letter.is_ascii_digit());
            words.find(is_day).unwrap_or_default().to_owned()
        });
        AttentionRow {
            name: plain(name),
            rate: span("rate").unwrap(),
            reason: span("reason").unwrap_or_default(),
            day,
        }
    });
    rows.collect()
}

/// Splits the section into the newest step and what is folded away below it.
fn attention_parts(html: &str) -> (&str, &str) {
    let section = section(html, "attention");
    section
        .split_once("<details class=\"older\">")
        .unwrap_or((section, ""))
}

/// Returns the batches of the newest step that need attention, by crop.
pub(super) fn attention(html: &str) -> Vec<AttentionCrop> {
    let (newest, _) = attention_parts(html);
    let crops = newest.split("<div class=\"trays\">").skip(1).map(|crop| {
        let heading = parts(crop, "<h3>", "</h3>")[0];
        let (name, count) = heading.split_once("<small>").unwrap();
        let down = parts(crop, "<p class=\"down-crop\">", "</p>");
        AttentionCrop {
            name: plain(name),
            count: plain(count),
            down: down.first().map(|down| plain(down)),
            rows: attention_rows(crop),
        }
    });
    crops.collect()
}

/// Returns the batches of older steps that need attention.
pub(super) fn older(html: &str) -> Vec<AttentionRow> {
    attention_rows(attention_parts(html).1)
}

/// Returns the name, value and note of each tile.
pub(super) fn tiles(html: &str) -> Vec<Vec<String>> {
    let tiles = parts(section(html, "tiles"), "<li>", "</li>");
    let spans = |tile: &str| {
        let spans = parts(tile, "<span", "</span>").into_iter();
        spans.map(|span| plain(&format!("<{span}"))).collect()
    };
    tiles.into_iter().map(spans).collect()
}

pub(super) fn findings(html: &str) -> Vec<String> {
    let found = parts(section(html, "quality"), "<li>", "</li>");
    found.into_iter().map(plain).collect()
}

/// Returns the facts in the footer.
pub(super) fn facts(html: &str) -> BTreeMap<String, String> {
    let footer = parts(html, "<footer>", "</footer>")[0];
    let facts = parts(footer, "<div><dt>", "</dd></div>").into_iter();
    facts
        .map(|fact| fact.split_once("</dt><dd>").unwrap())
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

/// Says when the newest batch was created.
pub(super) fn freshness(html: &str) -> String {
    plain(parts(html, "<p class=\"fresh\">", "</p>")[0])
}
