use super::super::tokens::short_decimal;
use super::*;
use crate::batch::Batch;
use crate::batch::Column;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use std::sync::Arc;

/// Valid values for a column.
fn right(column: &Column) -> BoxedStrategy<String> {
    let usual = match column.kind {
        FieldType::Text => {
            r#""(x|[a-zé =:,}{\[\]]|\\["\\/bfnrt]|\\u00[0-9a-f]{2}|\\u[0-9A-C][0-9A-F]{3}|\\ud83c\\udf31){1,40}""#
        }
        FieldType::Date => {
            r#""20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|\+00:00)""#
        }
        FieldType::Integer => "(0|[1-9][0-9]{0,17})",
        FieldType::Decimal => r#""-?[0-9]{1,12}(\.[0-9]{1,12})?""#,
        FieldType::Boolean => "(true|false)",
    };
    if column.nullable {
        prop_oneof![5 => usual, 1 => Just("null".to_owned())].boxed()
    } else {
        usual.boxed()
    }
}

/// Invalid or almost valid values.
fn near(kind: FieldType) -> BoxedStrategy<String> {
    let near = match kind {
        FieldType::Text => {
            r#""([a-zé]|\\[a-zA-Z0-9"\\/]|\\u[0-9a-d]{3,4}|["\x00-\x20\x7f]){0,12}""#
        }
        FieldType::Date => {
            r#""[0-2][0-9]{3}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,4})?(Z|z|[+-]0[01]:?00|)""#
        }
        FieldType::Integer => "-?[0-9]{0,21}(\\.0)?(e1)?",
        FieldType::Decimal => r#""?[+-]?[0-9]{0,4}[.,]?[0-9:]{0,3}[.e]?[0-9]{0,2}"?"#,
        FieldType::Boolean => "(true1|\"true\"|1|null|fals|TRUE)",
    };
    prop_oneof![4 => near, 1 => "(null|nul|\"|\\{\\}|\\[1\\]|\"\"|)"].boxed()
}

/// Any JSON, or almost.
fn any_value() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        r#""([a-zé]|\\["\\/bfnrtu]|\\u[0-9a-fA-F]{4}){0,6}""#,
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
        "null|true|false|01|1\\.|-|nul|\"|",
    ];
    leaf.prop_recursive(3, 12, 4, |value| {
        let name = r"([a-z]|\\u00[0-9a-f]{2}){0,3}";
        let member = (name, value.clone()).prop_map(|(name, value)| format!("\"{name}\":{value}"));
        prop_oneof![
            prop::collection::vec(member, 0..4).prop_map(|all| format!("{{{}}}", all.join(","))),
            prop::collection::vec(value, 0..4).prop_map(|all| format!("[{}]", all.join(","))),
        ]
    })
    .boxed()
}

/// Objects in any order, with absent and further fields, and at most one more change.
fn objects() -> impl Strategy<Value = String> {
    let values: Vec<_> = COLUMNS.iter().map(right).collect();
    let others: Vec<_> = COLUMNS.iter().map(|column| near(column.kind)).collect();
    let order = prop_oneof![
        Just((0..COLUMNS.len()).collect::<Vec<usize>>()),
        Just((0..COLUMNS.len()).collect::<Vec<usize>>()).prop_shuffle(),
    ];
    let absent = prop_oneof![2 => Just(0), 1 => any::<u32>()];
    let further = (
        "more|extra|batch_ie|(a|b|\\\\u0061)",
        any_value(),
        0..COLUMNS.len(),
    );
    let further = prop_oneof![
        1 => Just(vec![]),
        1 => prop::collection::vec(further, 0..4),
    ];
    let places = (0..COLUMNS.len(), 0_usize..900);
    (
        values,
        others,
        order,
        absent,
        further,
        places,
        0_u8..12,
        any::<u8>(),
    )
        .prop_map(
            |(mut values, others, order, absent, further, (from, position), change, byte)| {
                if change < 3 {
                    values[from].clone_from(&others[from]);
                }
                let mut fields: Vec<String> = order
                    .iter()
                    .filter(|&&column| !COLUMNS[column].nullable || absent & (1 << column) == 0)
                    .map(|&column| format!("\"{}\":{}", COLUMNS[column].name, values[column]))
                    .collect();
                match change {
                    3 => drop(fields.remove(from % fields.len())),
                    4 => fields.push(fields[from % fields.len()].clone()),
                    _ => {}
                }
                for (name, value, place) in further {
                    fields.insert(place % fields.len(), format!("\"{name}\":{value}"));
                }
                let mut text = format!("{{{}}}", fields.join(","));
                match change {
                    5 if text.is_char_boundary(position) => text.insert(position, ' '),
                    6 if text.is_char_boundary(position) => {
                        text.insert(position, char::from(byte));
                    }
                    7 if text.is_char_boundary(position) => text.truncate(position),
                    _ => {}
                }
                text
            },
        )
}

#[test]
fn many_of_these_objects_are_read_in_one_pass() {
    let mut runner = TestRunner::deterministic();
    let objects = objects();
    let taken = (0..500).filter(|_| {
        let object = objects.new_tree(&mut runner).expect("an object");
        agrees(&object.current())
    });
    // Objects without a flaw.
    let taken = taken.count();
    assert!((100..350).contains(&taken), "{taken}");
}

/// Parses `text` both ways and compares; returns whether it was read in one pass.
fn agrees(text: &str) -> bool {
    let page = Arc::new(format!("[{text},{text}]"));
    let Some((batch, length)) = Batch::scan(&page, 1) else {
        return false;
    };
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
    assert_eq!(value(&page[1..=length]), value(batch.text()), "{text}");
    let slow = Batch::read(batch.text());
    assert_eq!(
        (&slow.flaws[..], slow.absent),
        (&[][..], batch.absent()),
        "{text}"
    );
    let slow = slow.batch.expect("a batch");
    assert_eq!(batch.text(), slow.text());
    let hash =
        |batch: &Batch| batch.content_hash(xxhash_rust::xxh3::xxh3_64, &mut Pieces::default());
    assert_eq!(hash(&batch), hash(&slow));
    let canonical = Batch::read(&batch.canonical()).batch.expect("a batch");
    assert_eq!(hash(&batch), hash(&canonical), "{text}");
    assert_eq!(batch.canonical(), canonical.canonical(), "{text}");
    assert_eq!(batch.canonical(), slow.canonical());
    for column in 0..COLUMNS.len() {
        assert_eq!(batch.member(column), slow.member(column), "{text}");
        assert_eq!(batch.typed(column), slow.typed(column), "{text}");
    }
    assert!(slow.unknown().eq(batch.unknown()), "{text}");
    let has_escapes = batch.text().contains('\\');
    assert!(!(batch.index.is_unescaped() && has_escapes), "{text}");
    true
}

fn usual() -> String {
    let fields: Vec<String> = (0..COLUMNS.len()).map(usual_field).collect();
    format!("{{{}}}", fields.join(","))
}

fn usual_field(column: usize) -> String {
    let value = match COLUMNS[column].kind {
        FieldType::Text => "\"tä\\\"xt\\n\"",
        FieldType::Date => "\"2026-05-31T06:00:00.250Z\"",
        FieldType::Integer => "12",
        FieldType::Decimal => "\"-87.50\"",
        FieldType::Boolean => "true",
    };
    format!("\"{}\":{value}", COLUMNS[column].name)
}

#[test]
fn every_legal_spelling_is_read_in_one_pass() {
    assert!(agrees(&usual()));
    for date in [
        "2024-12-30T23:59:59Z",
        "2024-02-29T23:59:59Z",
        "2000-02-29T23:59:59Z",
        "2024-12-30T23:59:59+00:00",
        "2024-12-30T23:59:59.123456+00:00",
        "2024-12-30T23:59:59\\u002B00:00",
        "\\u0032024-12-30T23:59:60Z",
    ] {
        assert!(
            agrees(&usual().replace("2026-05-31T06:00:00.250Z", date)),
            "{date}"
        );
    }
    for (usual_value, rare) in [
        (":12,", ":-1,"),
        (":12,", ":-0,"),
        (":12,", ":9223372036854775807,"),
        ("\"-87.50\"", "\"\\u002d87.50\""),
    ] {
        assert!(agrees(&usual().replace(usual_value, rare)), "{rare}");
    }
    for text in ["\\u0026", "\\/", "\\b\\f", "\\ud83c\\udf31", "\\u0000"] {
        assert!(agrees(&usual().replace("tä", text)), "{text}");
    }
    for further in [
        "1",
        "-0.5e+10",
        "\"\\ud800\"",
        "null",
        "true",
        "[]",
        "{}",
        "[1,[{\"a\":[]}],\"x\"]",
        "{\"a\":{\"b\":null},\"a\":false}",
    ] {
        let field = format!("\"further\":{further}");
        assert!(
            agrees(&usual().replace("true}", &format!("true,{field}}}"))),
            "{further}"
        );
        assert!(
            agrees(&usual().replacen('{', &format!("{{{field},"), 1)),
            "{further}"
        );
    }
    let fields: Vec<String> = (0..COLUMNS.len()).map(usual_field).collect();
    for (place, column) in COLUMNS.iter().enumerate() {
        let mut without = fields.clone();
        let field = without.remove(place);
        let absent = format!("{{{}}}", without.join(","));
        assert_eq!(agrees(&absent), column.nullable, "{}", column.name);
        without.insert(0, field);
        assert!(
            agrees(&format!("{{{}}}", without.join(","))),
            "{}",
            column.name
        );
        let null = format!("\"{}\":null", column.name);
        let null = usual().replace(&fields[place], &null);
        assert_eq!(agrees(&null), column.nullable, "{}", column.name);
    }
    let long = usual().replacen("tä", &"x".repeat(u16::MAX.into()), 1);
    assert!(agrees(&long));
}

#[test]
fn what_is_flawed_or_has_an_escaped_name_is_handed_back() {
    let nested = format!("true,\"more\":{}{}}}", "[".repeat(33), "]".repeat(33));
    let names: Vec<String> = (0..129).map(|number| format!("\"n{number}\":1")).collect();
    let many = format!("true,{}}}", names.join(","));
    for (from, to) in [
        ("\"tä\\\"xt\\n\",\"batch_name\"", "\"\",\"batch_name\""),
        ("\"batch_name\":\"tä", "\"batch_name\":\"\\ud800"),
        ("\"batch_name\":\"tä", "\"batch_name\":\"\\udc00\\ud800"),
        ("\"batch_name\":\"tä", "\"batch_name\":\"\\u00g0"),
        ("\"batch_name\":\"tä", "\"batch_name\":\"\u{1}"),
        ("\"batch_name\"", "\"batch\\u005fname\""),
        ("05-31", "02-29"),
        ("2026-05-31", "2100-02-29"),
        ("05-31", "06-31"),
        ("05-31", "00-01"),
        ("05-31T06", "05-31T24"),
        ("00.250Z", "00.Z"),
        ("00.250Z", "00.250"),
        ("00.250Z", "00.250+01:00"),
        ("00.250Z", "00.250-00:00"),
        ("06:00:00.250Z", "23:59:61Z"),
        ("00.250Z", "00.250\\u005a\\u0020"),
        (":12,", ":012,"),
        (":12,", ":12.0,"),
        (":12,", ":-,"),
        (":12,", ":9223372036854775808,"),
        ("\"-87.50\"", "-87.50"),
        ("\"-87.50\"", "\"-87.\""),
        ("\"warnings\":true", "\"warnings\":truee"),
        ("true}", "true,\"more\":1.}"),
        ("true}", "true,\"more\":[1,]}"),
        ("true}", "true,\"more\":{\"a\"}}"),
        ("true}", "true,\"more\":\"\\x\"}"),
        ("true}", "true,\"more\":1,\"more\":1}"),
        ("true}", "true,\"warnings\":true}"),
        ("true}", "true,}"),
        ("true}", &nested),
        ("true}", &many),
    ] {
        let text = usual().replacen(from, to, 1);
        assert_ne!(text, usual(), "{from}");
        assert!(!agrees(&text), "{to}");
    }
    let long = usual().replacen("tä", &"x".repeat(VALUE_LIMIT), 1);
    assert!(!agrees(&long));
    let name = format!("true,\"{}\":1}}", "n".repeat(NAME_LIMIT + 1));
    assert!(!agrees(&usual().replacen("true}", &name, 1)));
}

#[test]
fn whitespace_between_tokens_is_dropped() {
    let text = usual().replacen("true}", "true,\"more\":{\"a b\":[1,{}]}}", 1);
    for text in [usual(), text] {
        for blanks in [" ", "\n", "\t", "\r", "\r\n    "] {
            let spaced = with_blanks(&text, |_| blanks);
            assert!(agrees(&spaced), "{spaced}");
            let (batch, _) = Batch::scan(&Arc::new(spaced), 0).expect("a batch");
            assert_eq!(batch.text(), text);
            assert!(batch.own_size() >= text.len());
        }
        let ends = text.match_indices([',', ':', '}']).map(|(place, _)| place);
        for place in ends.collect::<Vec<_>>() {
            let spaced = with_blanks(&text, |at| if at == place { " " } else { "" });
            assert!(agrees(&spaced), "{spaced}");
        }
    }
    let much = " ".repeat(BLANK_LIMIT + 1);
    assert!(!agrees(&usual().replacen(':', &format!(":{much}"), 1)));
    assert!(agrees(&usual().replacen(
        ':',
        &format!(":{}", &much[1..]),
        1
    )));
    for (from, to) in [
        (":12,", ":1 2,"),
        ("true}", "tr ue}"),
        ("\"batch_id", "\" batch_id"),
    ] {
        assert!(!agrees(&usual().replacen(from, to, 1)), "{to}");
    }
}

/// Adds `blanks` before and after each structural character, given its place.
fn with_blanks<'a>(text: &str, blanks: impl Fn(usize) -> &'a str) -> String {
    let (mut spaced, mut in_string, mut escaped) = (String::new(), false, false);
    for (place, character) in text.char_indices() {
        if in_string {
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
        } else if character == '"' {
            in_string = true;
        } else if "{}[],:".contains(character) {
            let before = if place == 0 { "" } else { blanks(place) };
            let after = if place + 1 == text.len() {
                ""
            } else {
                blanks(place)
            };
            spaced.extend([before, character.encode_utf8(&mut [0; 4]), after]);
            continue;
        }
        spaced.push(character);
    }
    spaced
}

#[test]
fn every_character_and_every_escape_is_judged_alike() {
    for character in (0..=255).map(char::from) {
        for text in [
            format!("{character}"),
            format!("\\{character}"),
            format!("\\{character}x"),
        ] {
            agrees(&usual().replacen("tä", &text, 1));
            agrees(&usual().replacen("tä", &format!("seven77{text}"), 1));
        }
        for (from, to) in [
            (":12,", format!(":1{character},")),
            ("-87.50", format!("87.5{character}")),
        ] {
            agrees(&usual().replacen(from, &to, 1));
        }
    }
}

#[test]
fn usual_decimals_are_short() {
    for text in ["0.00", "87.50", "09.99", "100.00", "1234.56"] {
        let padded = format!("{text}\",\"avg_us");
        let bytes = padded.as_bytes().first_chunk().expect("enough");
        assert_eq!(short_decimal(bytes), Some(text.len()), "{text}");
    }
    for text in [
        "12", ".5", "5.", "7.5", ".50", "7.500", "-1.50", "1.2.3", "1a.50", "12345.67", "1:5.00",
        "0.0:", "0.:0", "0/00", "é.00",
    ] {
        let padded = format!("{text}\",\"avg_us");
        let bytes = padded.as_bytes().first_chunk().expect("enough");
        assert_eq!(short_decimal(bytes), None, "{text}");
    }
}

/// Objects with the same order, the same further fields and the same whitespace, of which fields may be absent.
fn similar_objects() -> impl Strategy<Value = Vec<String>> {
    let order = prop_oneof![
        Just((0..COLUMNS.len()).collect::<Vec<usize>>()),
        Just((0..COLUMNS.len()).collect::<Vec<usize>>()).prop_shuffle(),
    ];
    let names = prop::sample::subsequence(vec!["a", "more", "batch_ie", "x y", "", "é"], 0..4);
    let places = prop::collection::vec(0..COLUMNS.len(), 6);
    // Everywhere, or only before the last brace.
    let blanks = prop::sample::select(vec!["", " ", "\n      ", "\t"]);
    let blanks = (blanks, any::<bool>());
    let values: Vec<_> = COLUMNS.iter().map(right).collect();
    let others: Vec<_> = COLUMNS.iter().map(|column| near(column.kind)).collect();
    // Some values repeat, or begin like others.
    let repeated = prop::sample::select(vec![
        "1",
        "12",
        "1.5",
        "\"a\"",
        "\"a\\\"\"",
        "{\"b\":[1]}",
        "null",
    ]);
    let further = prop_oneof![any_value(), repeated.prop_map(str::to_owned)];
    let further = prop::collection::vec(further, 6);
    let absent = prop_oneof![1 => Just(0), 3 => any::<u32>()];
    let changed = prop_oneof![4 => Just(None), 1 => (0..COLUMNS.len()).prop_map(Some)];
    let object = (values, others, further, absent, changed);
    let objects = prop::collection::vec(object, 2..6);
    (order, names, places, blanks, objects).prop_map(|(order, names, places, blanks, objects)| {
        let object = |(values, others, further, absent, changed): (
            Vec<String>,
            Vec<String>,
            Vec<String>,
            u32,
            Option<usize>,
        )| {
            let value = |column: usize| match changed {
                Some(changed) if changed == column => &others[column],
                _ => &values[column],
            };
            let columns = order.iter().map(|&column| {
                let field = format!("\"{}\":{}", COLUMNS[column].name, value(column));
                (
                    field,
                    COLUMNS[column].nullable && absent & (1 << column) != 0,
                )
            });
            let mut fields: Vec<(String, bool)> = columns.collect();
            for (number, name) in names.iter().enumerate() {
                let field = format!("\"{name}\":{}", further[number]);
                fields.insert(places[number], (field, absent & (1 << (20 + number)) != 0));
            }
            let present = fields.into_iter().filter(|(_, is_absent)| !is_absent);
            let present: Vec<String> = present.map(|(field, _)| field).collect();
            let text = format!("{{{}}}", present.join(","));
            let (blanks, is_last_only) = blanks;
            with_blanks(&text, |place| {
                if is_last_only && place + 1 < text.len() {
                    ""
                } else {
                    blanks
                }
            })
        };
        objects.into_iter().map(object).collect()
    })
}

/// Reads an object: what is known about it, and its text if it had whitespace.
fn scan(scanner: &mut BatchScanner, text: &str) -> Option<(String, usize, String)> {
    let found = scanner.object(text)?;
    let index = format!("{:?} {}", found.index, found.is_compacted);
    Some((index, found.length, scanner.compact.take()))
}

#[test]
fn similar_objects_have_the_same_layout() {
    let further = usual().replacen('{', "{\"more\":[1,\"x\"],", 1);
    let absent = further.replacen(&format!(",{}", usual_field(16)), "", 1);
    let other_values = further.replace("12", "7").replace("[1,", "[{},");
    for blanks in ["", " ", "\r\n  "] {
        let mut scanner = BatchScanner::default();
        let spaced = |text: &str| with_blanks(text, |_| blanks);
        assert!(scanner.object(&spaced(&further)).is_some());
        for text in [&other_values, &absent, &further] {
            let spaced = spaced(text);
            let BatchScanner {
                compact,
                layout,
                unknown,
                spare,
                ..
            } = &mut scanner;
            let start = compact.len();
            let mut reader = Reader::new(spaced.as_bytes(), compact, unknown, spare);
            let found = reader.same_layout(layout, 0).expect(text);
            assert_eq!(found.length, spaced.len());
            if !blanks.is_empty() {
                assert_eq!(&compact.as_bytes()[start..], text.as_bytes());
            }
        }
    }
}

#[test]
fn fields_that_are_absent_in_turn_become_one_layout() {
    let further = usual().replacen(",\"warnings\"", ",\"more\":1,\"warnings\"", 1);
    let without = |columns: &[usize]| {
        let remove = |text: String, column: &usize| {
            text.replacen(&format!(",{}", usual_field(*column)), "", 1)
        };
        columns.iter().fold(further.clone(), remove)
    };
    let absent = [without(&[3, 16]), without(&[7, 8]), without(&[5])];
    for blanks in ["", "\n "] {
        let mut scanner = BatchScanner::default();
        let mut scan = |text: &str| scanner.object(&with_blanks(text, |_| blanks)).is_some();
        assert!(absent.iter().all(|text| scan(text)));
        assert_eq!(scanner.layout.fields.len(), COLUMNS.len() + 1, "{blanks:?}");
        assert_eq!(scanner.layout.columns, ALL_COLUMNS);
        assert_eq!(scanner.layout.has_all_columns(), blanks.is_empty());
        // Another order is another layout.
        let order = without(&[3, 7]).replacen("\"batch_name\"", "\"further\":0,\"batch_name\"", 1);
        let order = order
            .replacen(",\"more\":1", "", 1)
            .replacen('{', "{\"more\":1,", 1);
        assert!(scanner.object(&with_blanks(&order, |_| blanks)).is_some());
        assert_eq!(scanner.layout.fields.len(), COLUMNS.len());
    }
}

#[test]
fn whitespace_before_the_last_brace_is_left_out_of_every_object() {
    let mut scanner = BatchScanner::default();
    for absent in [3, 16, 7, 8, 5] {
        let text = usual().replacen(&format!(",{}", usual_field(absent)), "", 1);
        let spaced = text.replace('}', "\n}");
        let (_, length, compact) = scan(&mut scanner, &spaced).expect("an object");
        assert_eq!((length, compact), (spaced.len(), text));
    }
}

#[test]
fn a_repeated_value_is_told_from_one_that_begins_like_it() {
    let text = |value: &str| {
        let further = format!("\"a\":{value},\"batch_name\"");
        usual().replacen("\"batch_name\"", &further, 1)
    };
    let valid = [
        "1",
        "12",
        "1.5",
        "\"x\"",
        "\"x\\\"\"",
        "[1]",
        "[1,2]",
        "{}",
        "null",
    ];
    let invalid = ["1x", "1 2", "nullx", "\"x\"x", "[1]]", ""];
    for first in valid {
        for value in valid.into_iter().chain(invalid) {
            let mut scanner = BatchScanner::default();
            assert!(scanner.object(&text(first)).is_some());
            let found = scanner.object(&text(value));
            assert_eq!(found.is_some(), valid.contains(&value), "{first} {value}");
            let Some(found) = found else { continue };
            assert_eq!(found.length, text(value).len());
            let (name, place) = found.index.unknown().next().expect("an unknown field");
            let slice =
                |span: Range<u32>| text(value)[span.start as usize..span.end as usize].to_owned();
            assert_eq!(
                (slice(name), slice(place)),
                ("\"a\"".to_owned(), value.to_owned())
            );
        }
    }
}

#[test]
fn a_layout_does_not_allow_a_field_twice() {
    let mut scanner = BatchScanner::default();
    let mut fields: Vec<String> = (0..COLUMNS.len()).map(usual_field).collect();
    fields.swap(0, 1);
    assert!(
        scanner
            .object(&format!("{{{}}}", fields.join(",")))
            .is_some()
    );
    // The first two are usual, and the others follow the second one in the layout.
    fields.swap(0, 1);
    fields.insert(2, usual_field(0));
    assert!(
        scanner
            .object(&format!("{{{}}}", fields.join(",")))
            .is_none()
    );
}

#[test]
fn long_layouts_are_not_kept() {
    let mut scanner = BatchScanner::default();
    let blanks = " ".repeat(BLANK_LIMIT);
    let text = with_blanks(&usual(), |_| &blanks);
    for _ in 0..2 {
        assert!(scanner.object(&text).is_some());
        assert!(scanner.layout.fields.is_empty());
    }
}

#[test]
fn earlier_objects_do_not_change_the_result() {
    let mut runner = TestRunner::deterministic();
    let (objects, similar) = (objects(), similar_objects());
    let mut experienced = BatchScanner::default();
    let (mut taken, mut all) = (0, 0);
    for round in 0..400 {
        let texts = if round % 2 == 0 {
            vec![objects.new_tree(&mut runner).expect("an object").current()]
        } else {
            similar.new_tree(&mut runner).expect("objects").current()
        };
        for text in texts {
            let found = scan(&mut experienced, &text);
            all += 1;
            taken += usize::from(found.is_some());
            assert_eq!(found, scan(&mut BatchScanner::default(), &text), "{text}");
            agrees(&text);
        }
    }
    assert!((all / 3..all * 9 / 10).contains(&taken), "{taken} of {all}");
}

#[test]
fn no_part_of_an_object_is_an_object() {
    let text = usual();
    let cut = (0..text.len()).filter_map(|end| text.get(..end));
    for part in cut {
        assert!(BatchScanner::default().object(part).is_none(), "{part}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn both_ways_agree(text in objects()) {
        agrees(&text);
    }

    #[test]
    fn short_decimals_are_decimals(text in "[0-9.\",:\\-]{0,9}|[0-9]{1,3}\\.[0-9]{1,3}\"[ -~]{0,4}|[ -~é]{8}") {
        let text = format!("{text}\",\"avg");
        if let Some(length) = text.as_bytes().first_chunk().and_then(short_decimal) {
            prop_assert!(crate::batch::is_number(&text[..length]), "{}", text);
            prop_assert_eq!(text.as_bytes()[length], b'"');
        }
    }

    #[test]
    fn bytes_before_a_special_one_are_counted(text in "[a-zé\"\\\\\u{0}-\u{21}]{0,40}") {
        let slow = text.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
        prop_assert_eq!(plain(text.as_bytes()), slow);
    }
}
