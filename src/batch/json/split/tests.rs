use super::*;
use proptest::prelude::*;
use serde_json::Value;

type Split = Result<(Vec<String>, Option<String>), ParseError>;

/// Splits `text` in pieces of `size` characters.
fn split(shape: Shape, text: &str, size: usize) -> Split {
    let mut splitter = Splitter::new(shape);
    let mut batches = Vec::new();
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(size) {
        splitter.feed(&Arc::new(piece.iter().collect()), &mut |found| {
            match found {
                Item::Batch(batch) => batches.push(batch.text().to_owned()),
                Item::Text(text) => {
                    // As the caller does: a batch must be JSON.
                    read::<serde::de::IgnoredAny>(text)?;
                    batches.push(text.to_owned());
                }
            }
            Ok(())
        })?;
    }
    Ok((batches, splitter.finish()?))
}

fn page(text: &str) -> Split {
    split(Shape::Page, text, usize::MAX)
}

#[test]
fn pages_are_taken_apart_in_any_order_of_keys() {
    let expected = Ok((
        vec!["{\"a\":1}".to_owned(), "2".to_owned()],
        Some("x".to_owned()),
    ));
    assert_eq!(page(r#"{"data":[{"a":1},2],"next_token":"x"}"#), expected);
    assert_eq!(
        page(r#"{"more":{"data":[]},"next_token":"x","data":[{"a":1},2]}"#),
        expected
    );
    assert_eq!(
        page(" {\r\n \"data\" : [ { \"a\" :\t1 } , 2 ] ,\n\"next\\u005ftoken\" : \"x\" } \n"),
        expected
    );
    assert_eq!(page(r#"{"data":[],"next_token":null}"#), Ok((vec![], None)));
}

#[test]
fn lines_hold_one_batch_after_another() {
    let lines = |text: &str| split(Shape::Lines, text, 3).map(|(batches, _)| batches);
    let both = Ok(vec!["{\"a\":1}".to_owned(), "{\"b\":[2]}".to_owned()]);
    for text in [
        "{\"a\":1}\n{\"b\":[2]}\n",
        "{\"a\":1}{\"b\":[2]}",
        "\n{\"a\": 1}\r\n\r\n{\n\"b\":\n[ 2 ] }",
    ] {
        assert_eq!(lines(text), both, "{text}");
    }
    assert_eq!(lines(" \n"), Ok(vec![]));
    for text in ["{\"a\":1}\n{\"b\":[2]", "{\"a\":1}\n{\"b\":\"x"] {
        assert_eq!(lines(text), Err(ParseError::Cut), "{text}");
    }
    for text in ["{\"a\":1},{}", "{\"a\":1}]", "]", "}"] {
        assert!(matches!(lines(text), Err(ParseError::Broken(_))), "{text}");
    }
}

#[test]
fn what_is_missing_or_wrong_in_a_page_is_told() {
    for (text, why) in [
        (r#"{"data":[]}"#, "`next_token` is missing"),
        (r#"{"next_token":null}"#, "`data` is missing"),
        (
            r#"{"data":null,"next_token":null}"#,
            "`data` is not an array",
        ),
        (
            r#"{"data":[],"data":[],"next_token":null}"#,
            "`data` appears twice",
        ),
        (
            r#"{"data":[],"next_token":null,"next_token":"x"}"#,
            "`next_token` appears twice",
        ),
        (
            r#"{"data":[],"next_token":5}"#,
            "`next_token` is neither a string nor null",
        ),
        (
            r#"{"data":[],"next_token":false}"#,
            "`next_token` is neither a string nor null",
        ),
        ("[]", "it is not a JSON object"),
        ("<html>", "it is not a JSON object"),
        (
            r#"{"data":[],"next_token":null}}"#,
            "it is not valid JSON: unexpected `}`",
        ),
        (
            r#"{"data":[,1],"next_token":null}"#,
            "it is not valid JSON: unexpected `,`",
        ),
        (
            r#"{"data":[1,],"next_token":null}"#,
            "it is not valid JSON: unexpected `]`",
        ),
        (
            r#"{"data":[1 2],"next_token":null}"#,
            "it is not valid JSON: unexpected `2`",
        ),
        (
            r#"{"data":[],"x":tru,"next_token":null}"#,
            "it is not valid JSON: a value is malformed",
        ),
        (
            r#"{"data":[],"next_token":null,}"#,
            "it is not valid JSON: unexpected `}`",
        ),
    ] {
        assert_eq!(page(text), invalid(why), "{text}");
    }
}

#[test]
fn every_cut_is_noticed() {
    let whole = r#"{"data":[{"a":"}\"]"},{"b":[1]}],"next_token":"x"}"#;
    for end in 0..whole.len() {
        assert_eq!(
            page(&whole[..end]),
            Err(ParseError::Cut),
            "{}",
            &whole[..end]
        );
    }
}

#[test]
fn everything_that_is_held_is_bounded() {
    let value = |text: &str| page(&format!(r#"{{"data":[{text}],"next_token":null}}"#));
    assert!(matches!(
        value(&format!("\"{}\"", "x".repeat(VALUE_LIMIT + 9))),
        Err(ParseError::Broken(_))
    ));
    assert!(matches!(
        value(&"[".repeat(200)),
        Err(ParseError::Broken(_))
    ));
    assert!(matches!(
        value(&" ".repeat(BLANK_LIMIT + 9)),
        Err(ParseError::Broken(_))
    ));
    let inside = format!("[1,{}2]", " ".repeat(BLANK_LIMIT + 9));
    assert!(matches!(value(&inside), Err(ParseError::Broken(_))));
    assert!(value(&" ".repeat(100)).is_ok());
}

/// Feeds a page in pieces until it fails; returns why and where.
fn refused(text: &str, size: usize) -> (ParseError, Option<String>) {
    let mut splitter = Splitter::new(Shape::Page);
    let mut pieces = text.as_bytes().chunks(size);
    let failure = pieces.find_map(|piece| {
        let piece = Arc::new(String::from_utf8_lossy(piece).into_owned());
        splitter.feed(&piece, &mut |_| Ok(())).err()
    });
    let place = splitter.exceeded_limit().map(str::to_owned);
    (failure.expect("a failure"), place)
}

#[test]
fn whatever_passes_a_limit_is_named() {
    let long = "x".repeat(VALUE_LIMIT);
    let deep = "[".repeat(DEPTH_LIMIT);
    let blanks = " ".repeat(BLANK_LIMIT + 1);
    let (value, nested) = (
        "a value is larger than 1024 kB",
        "a value is nested too deeply",
    );
    let full = "there is too much whitespace";
    for (page, why, place) in [
        (
            format!(r#"{{"data":[1,{{"batch_id":"b2","comment":"{long}"#),
            value,
            "batch 2 (`b2`), `comment`",
        ),
        (
            format!(
                r#"{{"data":[{{"batch_id":"b","x":[{{"y":"z"}}],"e":"{}"#,
                "\\\\".repeat(VALUE_LIMIT / 2)
            ),
            value,
            "batch 1 (`b`), `e`",
        ),
        (
            format!(r#"{{"data":[{{"n":{{"batch_id":"no"}},"m":{deep}"#),
            nested,
            "batch 1, `m`",
        ),
        (format!(r#"{{"data":[1,2,{deep}["#), nested, "batch 3"),
        (
            format!(r#"{{"data":[{{"batch_id":"b","a":1,{blanks}"#),
            full,
            "batch 1 (`b`), `a`",
        ),
        (format!(r#"{{"data":[1,2{blanks}"#), full, "after batch 2"),
        (format!(r#"{{"more":"{long}"#), value, "`more`"),
        (format!(r#"{{"{long}"#), value, "a field name"),
    ] {
        for size in [100, usize::MAX] {
            let expected = (ParseError::Broken(why.to_owned()), Some(place.to_owned()));
            assert_eq!(refused(&page, size), expected);
        }
    }
    let name = format!(r#"{{"data":[{{"batch_id":"b","{long}"#);
    let (_, place) = refused(&name, 100);
    let place = place.expect("a place");
    assert!(
        place.starts_with("batch 1 (`b`), `xxx") && place.len() < 200,
        "{place}"
    );
    let (_, place) = refused(r#"{"data":[1 2"#, 100);
    assert_eq!(place, None, "no limit");
}

#[test]
fn blanks_never_join_words() {
    assert!(page(r#"{"data":[{"a":1 2}],"next_token":null}"#).is_err());
    assert!(page(r#"{"data":[{"a":tr ue}],"next_token":null}"#).is_err());
    assert!(page(r#"{"data":[{"a" "b":1}],"next_token":null}"#).is_err());
}

/// Any JSON, with random whitespace.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".{0,3}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arrays_come_apart_as_serde_reads_them(values in prop::collection::vec(json(), 0..6), size in 1_usize..9, pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&values) } else { serde_json::to_string(&values) };
        let (batches, _) = split(Shape::Flat, &text.expect("text"), size).expect("readable");
        let compact: Vec<String> = values.iter().map(ToString::to_string).collect();
        prop_assert_eq!(batches, compact);
    }

    #[test]
    fn bytes_are_accepted_only_where_serde_accepts_them(text in r#"[\[\]{}:, "\\a1-]{0,14}"#, size in 1_usize..4) {
        let accepted = split(Shape::Flat, &text, size).is_ok();
        prop_assert_eq!(accepted, serde_json::from_str::<Vec<serde::de::IgnoredAny>>(&text).is_ok(), "{}", text);
    }
}

#[test]
fn batches_of_all_kinds_keep_their_order() {
    let batch = |id: u32, colon: &str, images: &str| {
        format!(
            r#"{{"batch_id"{colon}"{id}","batch_name":"n","batch_creation_date":"2026-05-01T06:00:00Z","number_of_images"{colon}{images},"warnings":true}}"#
        )
    };
    // With whitespace, without, and with a rare number.
    let kinds = [
        (": ", "1"),
        (" :", "2"),
        (":", "3"),
        (":", "-4"),
        (": ", "-5"),
    ];
    for order in ["0123401234", "0000111", "020202", "34343", "4420"] {
        let kinds = order.bytes().map(|kind| kinds[usize::from(kind - b'0')]);
        let batches: Vec<(String, String)> = (0..)
            .zip(kinds)
            .map(|(id, (colon, images))| (batch(id, colon, images), batch(id, ":", images)))
            .collect();
        let (written, compact): (Vec<String>, Vec<String>) = batches.into_iter().unzip();
        for size in [1, 50, 170, 400, usize::MAX] {
            let text = format!("[{}]", written.join(" , "));
            let expected = Ok((compact.clone(), None));
            assert_eq!(split(Shape::Flat, &text, size), expected, "{order} {size}");
        }
        // All batches before an error are passed on.
        let mut splitter = Splitter::new(Shape::Flat);
        let mut count = 0;
        let text = Arc::new(format!("[{},}}", written.join(",")));
        let fed = splitter.feed(&text, &mut |_| {
            count += 1;
            Ok(())
        });
        assert!(matches!(fed, Err(ParseError::Broken(_))));
        assert_eq!(count, written.len(), "{order}");
    }
}
