//! Hostile texts and links in the data.

use serde_json::json;

use super::{Browser, assert_fits, assert_harmless, without_policy};
use crate::fake::Batch;
use crate::report::{MADE, nursery, page, plain, sound};

/// Hostile texts for every text field. A script would change the title; a fetch would ask `hit.example`.
const HOSTILE: [&str; 22] = [
    "<script>document.title='pwned'</script>",
    "</title><script>document.title='pwned'</script>",
    "</style><script>document.title='pwned'</script>",
    "<script src=http://hit.example/a.js></script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "<img src=http://hit.example/b.png>",
    "\"><svg onload=\"document.title='pwned'\">",
    "'><svg/onload=document.title='pwned'>",
    "\" onmouseover=\"document.title='pwned'\" autofocus onfocus=\"document.title='pwned'\" x=\"",
    "' onfocus='document.title=1' '",
    "</text></svg><iframe srcdoc=\"<script>parent.document.title='pwned'</script>\">",
    "<svg><animate onbegin=document.title='pwned' attributeName=x dur=1s>",
    "<style>@import 'http://hit.example/c.css';body{background:url(http://hit.example/d)}</style>",
    "<link rel=stylesheet href=http://hit.example/e.css>",
    "<meta http-equiv=refresh content=\"0;url=http://hit.example/f\">",
    "&lt;script&gt;document.title='pwned'&lt;/script&gt; &#60;b&#62;",
    "{{ title }} {% include \"page.css\" %} ${7*7} <%= 7*7 %> {{constructor.constructor('document.title=1')()}}",
    "]]><script>document.title='pwned'</script><![CDATA[",
    "<!-- --><script>document.title='pwned'</script><!--",
    "null\u{0}byte<scr\u{0}ipt>document.title='pwned'</scr\u{0}ipt>",
    "\u{202e}txt.exe\u{2066}<b>\u{200f}\u{2028}\u{feff}",
    "javascript:document.title='pwned'",
];

const LINKS: [&str; 12] = [
    "javascript:document.title='pwned'",
    "JaVaScRiPt:document.title='pwned'",
    "\u{1}javascript:document.title='pwned'",
    "java\tscript:document.title='pwned'",
    "data:text/html,<script>document.title='pwned'</script>",
    "vbscript:x",
    "//hit.example/g",
    "file:///etc/passwd",
    "https://ok.example/\"onclick=\"document.title='pwned'",
    "https://ok.example/'><script>document.title='pwned'</script>",
    "https://ok.example/a b",
    "https:javascript:alert(1)",
];

fn hostile() -> Vec<Batch> {
    let long = "<b>W".repeat(5000);
    let texts = HOSTILE.iter().copied().chain([long.as_str()]);
    texts
        .enumerate()
        .map(|(place, text)| {
            let json = json!(text).to_string();
            let link = json!(LINKS[place % LINKS.len()]).to_string();
            let item = sound(
                &format!("{place:02} {}", text.replace('\u{0}', "")),
                MADE - i64::try_from(place).unwrap() * 60,
            );
            ["batch_name", "comment", "crop_type", "scanned_by_email"]
                .into_iter()
                .fold(item, |item, field| item.with(field, &json))
                .with("analysis_link", &link)
                .with("warnings", "true")
                .with("avg_coefficient_of_variation", "null")
        })
        .collect()
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn scripts_and_requests_would_be_detected() {
        let Some(browser) = Browser::open() else {
            return;
        };
        // All texts but the one that would leave the page.
        let payloads = HOSTILE.iter().filter(|text| !text.contains("refresh"));
        let payloads: String = payloads.copied().collect();
        let html = format!("<!doctype html><title>calm</title><body>{payloads}</body>");
        let visit = browser.visit(&html);
        assert!(visit.dom.contains("<title>pwned</title>"), "{}", visit.dom);
        assert!(
            visit
                .requests
                .iter()
                .any(|line| line.contains("hit.example")),
            "{visit:?}"
        );
        let visit = browser.visit("<!doctype html><title>calm</title><script>missing()</script>");
        assert_eq!(visit.console.len(), 1, "{visit:?}");
    }

    #[test]
    #[ignore = "slow"]
    fn hostile_data_does_not_run() {
        let Some(browser) = Browser::open() else {
            return;
        };
        let nursery = nursery(hostile());
        let title = "<script>document.title='pwned'</script>\" onload=\"x";
        let condition = "comment!=<img src=http://hit.example/h onerror=document.title='pwned'>";
        let args = ["--emails", "--title", title, "--where", condition];
        let html = page(&nursery, &args);
        let called = format!("{title}, Week 24");
        // First as is, then without the content security policy, which could hide a flaw.
        for html in [html.clone(), without_policy(&html)] {
            let visit = browser.visit(&html);
            assert_eq!(visit.console, Vec::<String>::new());
            assert_eq!(visit.requests, Vec::<String>::new());
            let shown = visit.dom.split("<title>").nth(1).unwrap();
            let shown = shown.split("</title>").next().unwrap();
            assert_eq!(
                plain(shown).replace("&lt;", "<").replace("&gt;", ">"),
                called
            );
        }
        let [measured, wide] = browser.measure(&html, [360, 1280]);
        assert_eq!(measured["title"], called);
        assert_harmless(&measured);
        // Every text is visible as text.
        let links: Vec<&str> = measured["links"]
            .as_array()
            .unwrap()
            .iter()
            .map(|link| link[0].as_str().unwrap())
            .collect();
        assert!(
            links.contains(&LINKS[8]) && links.contains(&LINKS[9]),
            "{links:?}"
        );
        assert!(!links.contains(&LINKS[10]), "{links:?}");
        for hidden in ['\u{0}', '\u{202e}', '\u{2066}', '\u{200f}'] {
            assert!(!html.contains(hidden), "{hidden:?}");
        }
        assert!(
            html.contains("\\u{202e}txt.exe"),
            "hidden characters are escaped"
        );
        assert_fits(&measured, 360);
        assert_fits(&wide, 1280);
    }
}
