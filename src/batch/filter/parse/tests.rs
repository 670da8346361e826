//! Conditions, from their text to the batches that they hold for.

use super::*;
use crate::batch::Zone;
use crate::batch::sample;
use crate::error::hint_of;

fn parse(expression: &str) -> Result<Condition, Failure> {
    parse_in("UTC", expression)
}

fn parse_in(zone: &str, expression: &str) -> Result<Condition, Failure> {
    let clock = Clock {
        now: "2026-05-14T12:30:15Z".parse().expect("a date"),
        zone: Zone::parse(zone).expect("a zone"),
    };
    Condition::parse(expression, &clock)
}

fn holds(expression: &str, changes: &[(&str, &str)]) -> bool {
    let condition = parse(expression);
    condition.expect(expression).holds(&sample(changes))
}

/// Returns the message and the hint.
fn refused(expression: &str) -> (String, String) {
    let failure = anyhow::Error::new(parse(expression).expect_err(expression));
    let hint = hint_of(&failure).unwrap_or_default().to_owned();
    (failure.to_string(), hint)
}

#[test]
fn a_blank_is_a_value_unless_there_is_one_before_the_operator() {
    let blank = [("comment", "\" \"")];
    for expression in ["comment= ", "comment~ ", "comment>=\u{20}", "comment!=  "] {
        assert!(holds(expression, &blank), "{expression}");
    }
    assert!(!holds("comment = ", &blank), "null");
    assert!(!holds("comment= ", &[("comment", "null")]));
}

#[test]
fn conditions_compare_by_what_a_field_holds() {
    for expression in [
        "crop_type=Tomato",
        "crop_type = Tomato",
        "crop_type!=Leek",
        "crop_type~MAT",
        "crop_type>Leek",
        "avg_germination_rate=87.5",
        "avg_germination_rate<100",
        "avg_germination_rate>=9.00",
        "number_of_images<=12",
        "number_of_images!=12.5",
        "avg_germination_rate~7.5",
        "batch_creation_date>2026-05-01T06:00:00Z",
        "batch_creation_date=2026-05-01T06:00:00.50Z",
        "!warnings",
        "! warnings ",
        "warnings=false",
        "warnings!=true",
        "comment!=",
    ] {
        assert!(holds(expression, &[]), "{expression}");
    }
    for expression in [
        "crop_type=tomato",
        "crop_type<Tomato",
        "avg_germination_rate>100",
        "number_of_images<9",
        "warnings",
        "batch_creation_date<=2026-05-01T06:00:00Z",
        "comment=",
        "comment = ",
    ] {
        assert!(!holds(expression, &[]), "{expression}");
    }
}

#[test]
fn null_matches_nothing_but_the_question_for_it() {
    let null = [("comment", "null"), ("avg_germination_rate", "null")];
    assert!(holds("comment=", &null));
    for expression in [
        "comment!=",
        "comment=x",
        "comment!=x",
        "comment=x,y",
        "comment!=x,y",
        "comment~x",
        "avg_germination_rate<1",
        "avg_germination_rate!=1",
    ] {
        assert!(!holds(expression, &null), "{expression}");
    }
}

#[test]
fn a_list_matches_any_of_its_values_or_none() {
    for (expression, value, expected) in [
        ("comment=a,b", "a", true),
        ("comment=a,b", "b", true),
        ("comment=a,b", "a,b", false),
        ("comment=a,b", "c", false),
        ("comment!=a,b", "a", false),
        ("comment!=a,b", "b", false),
        ("comment!=a,b", "c", true),
        // Blanks count, except on both sides of the operator.
        ("comment=a, b", "b", false),
        ("comment=a, b", " b", true),
        ("comment=a ", "a", false),
        ("comment=a ", "a ", true),
        ("comment = a", "a", true),
        ("comment= a", "a", false),
        ("comment= a", " a", true),
        ("comment!= a", " a", false),
        ("comment =  a", "a", true),
        ("comment=\\ a", " a", true),
        // Escapes.
        ("comment=a\\,b", "a,b", true),
        ("comment=a\\\\,b", "a\\", true),
        ("comment=a\\\\,b", "b", true),
        ("comment=a\\\\\\,b", "a\\,b", true),
        ("comment=\\=a", "=a", true),
        ("comment!=\\=a", "=a", false),
        ("comment=\\~a", "~a", true),
        ("comment=<a>", "<a>", true),
        ("comment!=<a>", "<a>", false),
        // Other operators neither split nor unescape.
        ("comment~a,b", "x a,b", true),
        ("comment~a,b", "b", false),
        ("comment~a\\,b", "a,b", false),
        ("comment~c:\\", "C:\\", true),
        ("comment>=a,b", "a,b", true),
        ("comment<=a,b", "a,c", false),
        // Words within a text.
        ("comment=dry or wet", "dry or wet", true),
        ("comment~errors or warnings", "errors or warnings", true),
        ("comment=see\\, crop_type\\=x", "see, crop_type=x", true),
        ("comment=dry\\ or warnings", "dry or warnings", true),
    ] {
        let json = serde_json::to_string(value).expect("a string");
        assert_eq!(
            holds(expression, &[("comment", &json)]),
            expected,
            "{expression} for {value}"
        );
    }
    assert!(holds("number_of_images=5,12.0", &[]));
    assert!(!holds("number_of_images!=5,12.0", &[]));
    assert!(holds("warnings=true,false", &[]));
    assert!(holds("batch_creation_date=2025,2026-05-01", &[]));
    assert!(!holds("batch_creation_date!=2025,2026-05-01", &[]));
}

/// A zone and a period in it; a time before it, in it and after it.
const PERIODS: &str = "
UTC 2026-05-01 2026-04-30T23:59:59.9Z 2026-05-01T23:59:59.9Z 2026-05-02T00:00:00Z
UTC 2026-05 2026-04-30T23:59:59.9Z 2026-05-01T00:00:00Z 2026-06-01T00:00:00Z
UTC 2026-W18 2026-04-26T23:59:59Z 2026-05-03T23:59:59.9Z 2026-05-04T00:00:00Z
UTC last-quarter 2025-12-31T23:59:59Z 2026-01-01T00:00:00Z 2026-04-01T00:00:00Z
UTC yesterday 2026-05-12T23:59:59Z 2026-05-13T00:00:00Z 2026-05-14T00:00:00Z
Europe/Amsterdam 2026-05-01 2026-04-30T21:59:59.9Z 2026-04-30T22:00:00Z 2026-05-01T22:00:00Z
Europe/Amsterdam 2026 2025-12-31T22:59:59.9Z 2026-12-31T22:59:59.9Z 2026-12-31T23:00:00Z
";

#[test]
fn a_period_is_meant_as_a_whole() {
    for line in PERIODS.lines().skip(1) {
        let words: Vec<&str> = line.split(' ').collect();
        let [zone, period, before, within, after] = words[..] else {
            panic!("{line}");
        };
        for (operator, expected) in [
            ("=", [false, true, false]),
            ("!=", [true, false, true]),
            (">", [false, false, true]),
            (">=", [false, true, true]),
            ("<", [true, false, false]),
            ("<=", [true, true, false]),
        ] {
            let expression = format!("batch_creation_date{operator}{period}");
            let condition = parse_in(zone, &expression).expect("a condition");
            let held = [before, within, after].map(|time| {
                condition.holds(&sample(&[("batch_creation_date", &format!("{time:?}"))]))
            });
            assert_eq!(held, expected, "{zone} {expression}");
        }
    }
}

#[test]
fn a_skipped_day_is_empty_and_a_time_is_an_instant() {
    // A day that the zone skips.
    let at = |expression: &str| {
        let condition = parse_in("Pacific/Apia", expression).expect(expression);
        condition.holds(&sample(&[(
            "batch_creation_date",
            "\"2011-12-30T10:00:00Z\"",
        )]))
    };
    assert!(!at("batch_creation_date=2011-12-30") && at("batch_creation_date!=2011-12-30"));
    assert!(at("batch_creation_date>2011-12-30") && !at("batch_creation_date<=2011-12-30"));
    // Times and ages are instants.
    let time = [("batch_creation_date", "\"2026-05-07T12:30:15Z\"")];
    for expression in [
        "=7d",
        ">=7d",
        "=2026-05-07T14:30:15+02:00",
        "<=2026-05-07T12:30:15.0Z",
    ] {
        assert!(
            holds(&format!("batch_creation_date{expression}"), &time),
            "{expression}"
        );
    }
}

/// Conditions, each with a part of the message and a part of the hint.
const MISTAKES: &str = r"
 ;; the field is missing ;; such as 'crop_type=Tomato'
=Tomato ;; the field is missing ;; such as 'crop_type=Tomato'
crop=Tomato ;; there is no field `crop` ;; did you mean `crop_type`?
crop type=Tomato ;; there is no field `crop type` ;; did you mean `crop_type`?
Crop_Type=Tomato ;; there is no field `Crop_Type` ;; did you mean `crop_type`?
crop_type ;; the operator is missing ;; FIELD OP VALUE
crop_type?x ;; the operator is missing ;; FIELD OP VALUE
!crop_type ;; the operator is missing ;; FIELD OP VALUE
crop_type< ;; the value is missing ;; FIELD OP VALUE
crop_type ~  ;; the value is missing ;; FIELD OP VALUE
# Operators.
crop_type==Tomato ;; `==` is not an operator ;; 'crop_type=Tomato'
crop_type == Tomato ;; `==` is not an operator ;; 'crop_type=Tomato'
crop_type===Tomato ;; `==` is not an operator ;; 'crop_type=Tomato'
comment==a ;; `==` is not an operator ;; 'comment=\=a'
crop_type!==Tomato ;; `!==` is not an operator ;; 'crop_type!=Tomato'
number_of_images==5 ;; `==` is not an operator ;; 'number_of_images=5'
crop_type=~tom ;; `=~` is not an operator ;; 'crop_type~tom'
crop_type!~tom ;; `!~` is not an operator ;; `~` has no opposite
crop_type<>Tomato ;; `<>` is not an operator ;; 'crop_type!=Tomato'
number_of_images=>5 ;; `=>` is not an operator ;; 'number_of_images>=5'
number_of_images=<5 ;; `=<` is not an operator ;; 'number_of_images<=5'
number_of_images≤5 ;; `≤` is not an operator ;; 'number_of_images<=5'
crop_type:Tomato ;; `:` is not an operator ;; 'crop_type=Tomato'
crop_type! =Tomato ;; `!` is not an operator ;; 'crop_type!=Tomato'
crop_type is = Tomato ;; `is` is not an operator ;; 'crop_type=Tomato'
crop_type!Tomato ;; `!` is not an operator ;; 'crop_type!=Tomato'
crop_type is Tomato ;; `is` is not an operator ;; 'crop_type=Tomato'
crop_type IS NOT NULL ;; `is not null` is not an operator ;; 'crop_type!='
crop_type in (Leek, Kale) ;; `in` is not an operator ;; 'crop_type=Leek,Kale'
crop_type not in (Leek) ;; `not in` is not an operator ;; 'crop_type!=Leek'
crop_type contains tom ;; `contains` is not an operator ;; 'crop_type~tom'
crop_type Tomato ;; the operator is missing ;; FIELD OP VALUE
!crop_type=x ;; `!` goes only with ;; 'crop_type!=x'
!crop_type~x ;; `!` does not go with `~` ;; `~` has no opposite
!number_of_images<5 ;; `!` goes only with ;; 'number_of_images>=5'
# Several conditions.
crop_type=Leek or crop_type=Kale ;; joined with `or` ;; 'crop_type=Leek,Kale'
crop_type=A OR crop_type = B || crop_type==C ;; joined with `or` ;; 'crop_type=A,B,C'
crop_type=Leek or warnings ;; joined with `or` ;; once for each
crop_type=Leek or crop=Kale ;; joined with `or` ;; once for each
number_of_images<5 or number_of_images>9 ;; joined with `or` ;; once for each
warnings or crop_type=Kale ;; joined with `or` ;; once for each
comment~x or crop_type=Kale ;; joined with `or` ;; once for each
crop_type=Leek and warnings ;; takes one condition ;; --where 'crop_type=Leek' --where 'warnings'
crop_type=Leek&&!warnings ;; takes one condition ;; --where 'crop_type=Leek' --where '!warnings'
crop_type=Leek,comment=x ;; takes one condition ;; --where 'crop_type=Leek' --where 'comment=x'
warnings and crop_type=Kale ;; takes one condition ;; --where 'warnings' --where 'crop_type=Kale'
number_of_images>5,warnings ;; takes one condition ;; --where 'number_of_images>5' --where 'warnings'
# Lists.
crop_type=a,,b ;; a value in the list is empty ;; 'crop_type=a,b'
crop_type=a, ;; a value in the list is empty ;; 'crop_type=a'
crop_type=,a ;; a value in the list is empty ;; 'crop_type=a'
crop_type!=, ;; a value in the list is empty ;; 'crop_type='` matches null
number_of_images=1,,2 ;; a value in the list is empty ;; 'number_of_images=1,2'
comment=a\b ;; `\b` is not an escape ;; 'comment=a\\b'
comment=a\,b\c\\d ;; `\c` is not an escape ;; 'comment=a\,b\\c\\d'
comment=C:\ ;; ends with a single `\` ;; 'comment=C:\\'
# Values.
avg_germination_rate<high ;; the value is not a number ;; FIELD OP VALUE
avg_germination_rate<80% ;; a number without `%` ;; 'avg_germination_rate<80'
avg_germination_rate=80 %,90% ;; a number without `%` ;; 'avg_germination_rate=80,90'
number_of_images~8% ;; a number without `%` ;; 'number_of_images~8'
avg_germination_rate<80,5 ;; the value is not a number ;; 'avg_germination_rate<80.5'
number_of_images>1,000 ;; the value is not a number ;; 'number_of_images>1000'
comment==it's ;; `==` is not an operator ;; 'comment=it'\''s'
number_of_images=1, 2 ;; the value is not a number ;; spaces count; write `--where 'number_of_images=1,2'`
number_of_images=1e3 ;; the value is not a number ;; FIELD OP VALUE
warnings=yes ;; neither true nor false ;; `--where '!warnings'`
warnings=true,no ;; neither true nor false ;; `--where 'warnings'`
batch_creation_date>soon ;; the value is not a date ;; use one of these forms
batch_creation_date=2026-05,soon ;; the value is not a date ;; use one of these forms
batch_creation_date=2026-05, 2026-06 ;; the value is not a date ;; 'batch_creation_date=2026-05,2026-06'
batch_creation_date>2026-w4 ;; the value is not a date ;; did you mean `2026-W04`?
batch_creation_date>2026-W60 ;; 2026 has 53 weeks ;; 2026-W01 to 2026-W53
batch_creation_date>2026-05-01T06:00:00 ;; the value must have a time zone ;; `--where 'batch_creation_date>2026-05-01T06:00:00Z'`
";

#[test]
fn mistakes_are_refused_with_the_right_spelling() {
    let lines = MISTAKES.lines().skip(1);
    for line in lines.filter(|line| !line.starts_with("# ")) {
        let parts: Vec<&str> = line.split(" ;; ").collect();
        let [expression, why, right] = parts[..] else {
            panic!("{line}");
        };
        let (message, hint) = refused(expression);
        assert!(message.contains(why), "{expression}: {message}");
        assert!(hint.contains(right), "{expression}: {hint}");
    }
}
