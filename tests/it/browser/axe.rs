//! The rules of axe-core, which checks pages for people with disabilities.
//!
//! It is not part of this repository: TRAYSCAN_AXE names its `axe.min.js`, and without it the test is skipped.

use std::fs;

use super::{Browser, without_policy};
use crate::harness::Server;
use crate::report::page;

/// Returns the violations on a page, as text.
fn violations(browser: &Browser, axe: &str, html: &str, width: u32, is_dark: bool) -> String {
    const RUN: &str = "document.querySelectorAll('details').forEach(e => e.open = true);
axe.run(document, {resultTypes: ['violations']}).then(result => parent.postMessage(
  'done: ' + result.violations.map(found => found.id + ' ' + found.nodes.map(node => node.html).join(' ')).join('; '), '*'));";
    let axe = axe.replace("</script", "<\\/script");
    let scripts = format!("<script>{axe}</script><script>{RUN}</script></body>");
    let copy = without_policy(html).replace("</body>", &scripts);
    fs::write(browser.folder.path().join("copy.html"), copy).unwrap();
    let outer = browser.folder.path().join("outer.html");
    let listen = "addEventListener('message', event => document.querySelector('pre').textContent = event.data)";
    let frame = format!(
        "<!doctype html><pre></pre><script>{listen}</script><iframe src=\"copy.html\" style=\"border:0;width:{width}px;height:900px\"></iframe>"
    );
    fs::write(&outer, frame).unwrap();
    let mut args = vec!["--virtual-time-budget=60000", "--dump-dom"];
    if is_dark {
        args.push("--blink-settings=preferredColorScheme=0");
    }
    let (dom, stderr) = browser.run(&args, &outer);
    let found = dom.split("<pre>done: ").nth(1);
    let found = found.unwrap_or_else(|| panic!("{dom}: {stderr}"));
    found.split("</pre>").next().unwrap().to_owned()
}

#[test]
fn axe_finds_no_violation() {
    let Some(script) = std::env::var_os("TRAYSCAN_AXE") else {
        eprintln!("skipped: TRAYSCAN_AXE does not name the file axe.min.js of axe-core");
        return;
    };
    let Some(browser) = Browser::open() else {
        return;
    };
    let axe = fs::read_to_string(script).unwrap();
    let html = page(&Server::start(&["--batches", "600"]), &[]);
    let broken = html.replace("<h2 id=\"crops\">", "<img src=\"data:,\"><h2 id=\"crops\">");
    let found = violations(&browser, &axe, &broken, 390, false);
    assert!(found.contains("image-alt"), "a flaw is found: {found}");
    for width in [390, 1200] {
        for is_dark in [false, true] {
            let found = violations(&browser, &axe, &html, width, is_dark);
            assert_eq!(found, "", "{width} pixels, dark: {is_dark}");
        }
    }
}
