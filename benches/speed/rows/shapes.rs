//! Other legal spellings of the same JSON, compared with the usual one.

use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::pages;
use crate::programs::{self, Run};
use crate::server::TRAYSCAN;
use crate::setup::{Output, Setup};
use crate::table::{Goal, Line};

const BATCHES: usize = 100_000;
const ROUNDS: usize = 9;
/// Changes a batch, and chooses its layout.
type Change = fn(&mut Vec<Field>) -> Layout;

const SHAPES: [(&str, Change); 12] = [
    ("a blank after comma and colon", |_| Layout::Blanks),
    ("pretty-printed", |_| Layout::Pretty),
    ("another order", |fields| {
        shuffle(fields);
        Layout::Compact
    }),
    ("another order in each batch", |fields| {
        let mut id = number_of(fields);
        for place in 1..fields.len() {
            id = id.wrapping_mul(747_796_405).wrapping_add(1);
            fields.swap(place, (id >> 16) as usize % (place + 1));
        }
        Layout::Compact
    }),
    ("one further field", |fields| {
        fields.push(further(0));
        Layout::Compact
    }),
    ("ten further fields", |fields| {
        for number in 0..10 {
            fields.insert(2 * usize::from(number), further(number));
        }
        Layout::Compact
    }),
    ("ten further fields with other values each time", |fields| {
        let id = number_of(fields);
        for number in 0..10 {
            let value = id.rotate_left(number.into()) % 150;
            let value = match number % 3 {
                0 => format!("\"conveyor {value}\""),
                1 => format!("{}.{}", value, value % 10),
                _ => format!("{{\"left\":[{},2]}}", value % 20),
            };
            fields.insert(2 * usize::from(number), (further(number).0, value));
        }
        Layout::Compact
    }),
    ("an absent nullable field", |fields| {
        fields.retain(|(name, _)| name != "comment");
        Layout::Compact
    }),
    ("non-ASCII and & as \\u", |fields| {
        replace(fields, |value| {
            let is_plain = |character: char| character.is_ascii() && character != '&';
            let mut text = String::new();
            for character in value.chars() {
                if is_plain(character) {
                    text.push(character);
                    continue;
                }
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(text, "\\u{unit:04x}").unwrap();
                }
            }
            text
        });
        Layout::Compact
    }),
    ("/ as \\/", |fields| {
        replace(fields, |value| value.replace('/', "\\/"));
        Layout::Compact
    }),
    ("+00:00 for Z", |fields| {
        replace(fields, |value| match value.strip_suffix("Z\"") {
            Some(date) if date.len() == "\"2026-05-01T06:00:00".len() => format!("{date}+00:00\""),
            _ => value.to_owned(),
        });
        Layout::Compact
    }),
    ("\\u002B00:00 for Z", |fields| {
        replace(fields, |value| match value.strip_suffix("Z\"") {
            Some(date) if date.len() == "\"2026-05-01T06:00:00".len() => {
                format!("{date}\\u002B00:00\"")
            }
            _ => value.to_owned(),
        });
        Layout::Compact
    }),
];

/// A name and its JSON value.
type Field = (String, String);

/// Where whitespace is.
enum Layout {
    Compact,
    Blanks,
    Pretty,
}

/// Compares the CPU time for each spelling with that for the usual one.
pub(crate) fn shapes(setup: &Setup) -> Vec<Line> {
    let server = setup.server(BATCHES, &[]);
    let (mut client, token) = server.log_in("v2");
    let mut pages: Vec<Vec<Vec<Field>>> = Vec::new();
    client.walk(&token, |_, body| {
        let page: Page = serde_json::from_slice(body).unwrap();
        pages.push(page.data.into_iter().map(|Fields(fields)| fields).collect());
    });
    let usual = pages::serve(written(&pages, |_| Layout::Compact));
    let mut lines = Vec::new();
    for ending in ["ndjson", "csv"] {
        for (name, change) in SHAPES {
            let other = pages::serve(written(&pages, change));
            let rounds = programs::interleave(
                ROUNDS,
                [&mut || export(setup, &usual, ending), &mut || {
                    export(setup, &other, ending)
                }],
            );
            // The CPU time has steps of 10 ms.
            let cpu = |program: usize| {
                let times = rounds.0.iter().filter_map(|runs| runs[program].cpu);
                times.map(|time| time.as_secs_f64()).sum::<f64>() / ROUNDS as f64
            };
            lines.push(Line::judged(
                &format!("{ending}, {name}"),
                cpu(1) / cpu(0),
                Goal::at_most(1.5, 1.2, "x"),
                &format!("CPU {:.3} s; usual spelling {:.3} s", cpu(1), cpu(0)),
            ));
        }
    }
    lines
}

fn export(setup: &Setup, address: &str, ending: &str) -> Run {
    let output = Output(setup.path(&format!("shapes.{ending}")));
    let mut command = setup.command(TRAYSCAN);
    command
        .env("TRAYSCAN_BASE_URL", format!("http://{address}"))
        .env("TRAYSCAN_CLIENT_ID", "id")
        .env("TRAYSCAN_CLIENT_SECRET", "secret")
        .args(["export", "-q", "--parallel", "1", "-o"]);
    programs::run(command.arg(&output.0))
}

/// Writes pages, with each batch changed.
fn written(pages: &[Vec<Vec<Field>>], change: Change) -> Vec<String> {
    let mut written = Vec::new();
    for (number, page) in (1..).zip(pages) {
        let mut text = "{\"data\":[".to_owned();
        for (place, batch) in page.iter().enumerate() {
            let mut batch = batch.clone();
            let layout = change(&mut batch);
            text.push_str(if place == 0 { "" } else { "," });
            write_batch(&mut text, &batch, &layout);
        }
        text.push_str("],\"next_token\":");
        if number < pages.len() {
            write!(text, "\"{number}\"}}").unwrap();
        } else {
            text.push_str("null}");
        }
        written.push(text);
    }
    written
}

fn write_batch(text: &mut String, batch: &[Field], layout: &Layout) {
    let (open, comma, colon, close) = match layout {
        Layout::Compact => ("{", ",", ":", "}"),
        Layout::Blanks => ("{", ", ", ": ", "}"),
        Layout::Pretty => ("\n    {\n      ", ",\n      ", ": ", "\n    }"),
    };
    text.push_str(open);
    for (place, (name, value)) in batch.iter().enumerate() {
        text.push_str(if place == 0 { "" } else { comma });
        write!(text, "\"{name}\"{colon}{value}").unwrap();
    }
    text.push_str(close);
}

fn further(number: u8) -> Field {
    let value = match number % 3 {
        0 => "\"conveyor 7\"",
        1 => "12.5",
        _ => "{\"left\":[1,2]}",
    };
    (format!("further_{number}"), value.to_owned())
}

/// Returns a number that depends on the id of the batch.
fn number_of(fields: &[Field]) -> u32 {
    let id = fields[0].1.bytes();
    id.fold(7_u32, |id, byte| {
        id.wrapping_mul(31).wrapping_add(byte.into())
    })
}

/// Puts the fields in an order that has nothing in common with the usual one.
fn shuffle(fields: &mut [Field]) {
    for place in 1..fields.len() {
        fields.swap(place, place * 7 % (place + 1));
    }
}

fn replace(fields: &mut [Field], change: impl Fn(&str) -> String) {
    for (_, value) in fields {
        *value = change(value);
    }
}

#[derive(Deserialize)]
struct Page {
    data: Vec<Fields>,
}

/// The fields of a batch in order.
struct Fields(Vec<Field>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    fields.push((name, value.get().to_owned()));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}
