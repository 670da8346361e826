//! The page in a real browser: scripts, requests, content, width and printing.
//!
//! The tests run Chromium from the command line, and are skipped with a message if it is not installed.

// Scripts and requests.
mod hostile;

// Colors.
mod contrast;

// What a grower sees first, on a phone and on paper.
mod first_screen;

// The rules of axe-core.
mod axe;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake::live::DAY;
use crate::harness::{Run, Server};
use crate::report::{MADE, assert_self_contained, nursery, page, sound};

/// Enough for a page on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the path of the browser; `None` if not installed.
fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("TRAYSCAN_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let known = ["chromium", "chromium-browser", "google-chrome"];
    let known = known
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = named.into_iter().chain(known).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: this machine has no Chromium (TRAYSCAN_CHROMIUM may name one)");
    }
    found
}

/// A browser with its own folder and a proxy that blocks and records all requests.
struct Browser {
    program: PathBuf,
    folder: TempDir,
    proxy: TcpListener,
    requests: Arc<Mutex<Vec<String>>>,
}

/// The result of a visit.
#[derive(Debug)]
struct Visit {
    dom: String,
    console: Vec<String>,
    /// The requests of the page.
    requests: Vec<String>,
}

impl Browser {
    fn open() -> Option<Self> {
        let program = chromium()?;
        let proxy = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (listening, written) = (proxy.try_clone().unwrap(), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listening.incoming() {
                let Ok(stream) = stream else { return };
                let written = Arc::clone(&written);
                thread::spawn(move || {
                    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
                    let mut line = String::new();
                    // A connection without a request counts too.
                    let _ = BufReader::new(stream).read_line(&mut line);
                    written.lock().unwrap().push(line);
                });
            }
        });
        Some(Self {
            program,
            folder: TempDir::new().unwrap(),
            proxy,
            requests,
        })
    }

    /// Runs the browser until it exits and returns its stdout and stderr.
    fn run(&self, args: &[&str], page: &Path) -> (String, String) {
        let profile = TempDir::new_in(self.folder.path()).unwrap();
        let proxy = self.proxy.local_addr().unwrap();
        let output = Run::new(&self.program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-default-apps",
                "--disable-sync",
                "--enable-logging=stderr",
                "--v=0",
                // Use the proxy for loopback addresses too.
                "--proxy-bypass-list=<-loopback>",
            ])
            .arg(format!("--proxy-server=http://{proxy}"))
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path())
            .args(args)
            .arg(format!("file://{}", page.display()))
            .limit(TIMEOUT)
            .raw();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let stderr = text(&output.stderr);
        assert!(output.status.success(), "{}: {stderr}", output.status);
        (text(&output.stdout), stderr)
    }

    /// Visits a page, again if there was a connection without a request: the browser may open one for itself and end
    /// before it is used. What the page does, it does every time.
    fn visit(&self, html: &str) -> Visit {
        let is_clear = |visit: &Visit| visit.requests.iter().all(|line| !line.is_empty());
        let again = || Some(self.visit_once(html)).filter(is_clear);
        again()
            .or_else(again)
            .unwrap_or_else(|| self.visit_once(html))
    }

    fn visit_once(&self, html: &str) -> Visit {
        let page = self.folder.path().join("page.html");
        fs::write(&page, html).unwrap();
        self.requests.lock().unwrap().clear();
        let (dom, stderr) = self.run(&["--virtual-time-budget=3000", "--dump-dom"], &page);
        let console = stderr.lines().filter(|line| line.contains(":CONSOLE:"));
        // Requests that the browser makes itself, whatever the flags.
        let own = [
            ".google.com",
            ".googleapis.com",
            ".gvt1.com",
            ".gstatic.com",
        ];
        let is_own = |line: &String| {
            let host = line.split_whitespace().nth(1).unwrap_or_default();
            let host = host.trim_start_matches("http://");
            let host = host.split(['/', ':']).next().unwrap_or_default();
            own.iter().any(|own| host.ends_with(own))
        };
        let mut requests = self.requests.lock().unwrap().clone();
        requests.retain(|line| !is_own(line));
        Visit {
            dom,
            console: console.map(str::to_owned).collect(),
            requests,
        }
    }

    /// Loads copies of the page in frames of these widths, in pixels, and runs the script `MEASURE` in each.
    fn measure<const N: usize>(&self, html: &str, widths: [u32; N]) -> [Value; N] {
        let copy = self.folder.path().join("copy.html");
        let script = format!("<script>{MEASURE}</script></body>");
        let measured = without_policy(html).replace("</body>", &script);
        fs::write(&copy, measured).unwrap();
        let frames = widths.map(|width| {
            format!("<pre></pre><iframe src=\"copy.html\" style=\"border:0;width:{width}px;height:900px\"></iframe>")
        });
        let listen = "addEventListener('message', event => [...document.querySelectorAll('iframe')].find(frame => frame.contentWindow === event.source).previousElementSibling.textContent = event.data)";
        let frame = format!(
            "<!doctype html><script>{listen}</script>{}",
            frames.concat()
        );
        let outer = self.folder.path().join("outer.html");
        fs::write(&outer, frame).unwrap();
        let (dom, stderr) = self.run(&["--virtual-time-budget=5000", "--dump-dom"], &outer);
        let mut texts = dom.split("<pre>").skip(1);
        widths.map(|_| {
            let text = texts.next().and_then(|text| text.split("</pre>").next());
            let text = text.unwrap_or_else(|| panic!("{dom}: {stderr}"));
            let text = text
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&nbsp;", "\u{a0}")
                .replace("&amp;", "&");
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}: {stderr}"))
        })
    }
}

fn without_policy(html: &str) -> String {
    let (before, after) = html
        .split_once("<meta http-equiv=\"Content-Security-Policy\"")
        .unwrap();
    format!("{before}{}", after.split_once('>').unwrap().1)
}

const MEASURE: &str = r"
const all = [...document.querySelectorAll('*')].filter(e => e.tagName !== 'SCRIPT' || !e.textContent.includes('postMessage'));
const ids = all.map(e => e.id).filter(id => id);
const box = e => e.getBoundingClientRect();
parent.postMessage(JSON.stringify({
  title: document.title,
  width: innerWidth,
  needed: document.documentElement.scrollWidth,
  height: document.documentElement.scrollHeight,
  lead: Math.max(0, ...[...document.querySelectorAll('.lead')].map(e => box(e).bottom)),
  rates: [...document.querySelectorAll('.crops tbody tr')].map(row => [row.querySelector('th').textContent, row.querySelector('.usable').textContent, box(row.querySelector('.usable')).right, box(row.querySelector('.change')).right]),
  reasons: [...document.querySelectorAll('.trays .reason, .trays .rate')].filter(e => e.checkVisibility()).map(e => box(e).right),
  wide: all.filter(e => !e.closest('.scroll') && !e.closest('svg') && !e.classList.contains('skip') && box(e).right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 100)),
  elements: [...new Set(all.map(e => e.localName))],
  attributes: [...new Set(all.flatMap(e => e.getAttributeNames()))],
  links: all.filter(e => e.hasAttribute('href')).map(e => [e.getAttribute('href'), e.getAttribute('rel'), e.getAttribute('target')]),
  ids: ids.length,
  twice: ids.filter((id, place) => ids.indexOf(id) !== place),
  pictures: [...document.querySelectorAll('svg')].length,
  charts: [...document.querySelectorAll('figure svg')].map(svg => {
    const named = (svg.getAttribute('aria-labelledby') || '').split(' ').map(id => document.getElementById(id));
    const texts = [...svg.querySelectorAll('text')];
    const frame = box(svg);
    return {
      names: named.map(e => e && svg.contains(e) ? e.localName + ': ' + e.textContent : null),
      height: frame.height,
      shapes: svg.querySelectorAll('path, rect, circle').length,
      labels: texts.map(e => e.textContent),
      letters: Math.min(...texts.map(e => parseFloat(getComputedStyle(e).fontSize) * frame.width / svg.viewBox.baseVal.width)),
      outside: texts.filter(e => box(e).left < frame.left - 1 || box(e).right > frame.right + 1).map(e => e.textContent),
    };
  }),
  goals: [...document.querySelectorAll('.spark .target')].map(e => e.checkVisibility()),
  silent: [...document.querySelectorAll('svg')].filter(svg => !svg.closest('figure') && !(svg.getAttribute('role') === 'img' && svg.querySelector(':scope > title') && svg.querySelector(':scope > desc'))).length,
  headings: [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(e => Number(e.localName[1])),
  tables: [...document.querySelectorAll('table')].map(table => ({
    scopes: [...table.querySelectorAll('th')].map(th => th.scope),
    bare: [...table.querySelectorAll('tbody tr')].filter(row => !row.querySelector('th[scope=row]')).length,
    columns: table.tHead.rows[0].cells.length,
    rows: [...table.rows].map(row => row.cells.length),
  })),
  focusable: [...document.querySelectorAll('.scroll')].filter(e => e.tabIndex !== 0 || !e.getAttribute('aria-label')).length,
  broken: [...document.querySelectorAll('.trays h3 bdi, .crops tbody th bdi')].flatMap(e => {
    const text = e.firstChild;
    return [...text.data.matchAll(/\S+/g)].filter(word => {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      return range.getClientRects().length > 1;
    }).map(word => word[0]);
  }),
  lang: document.documentElement.lang,
  landmarks: ['header', 'main', 'footer'].map(name => document.querySelectorAll('body > ' + name).length),
}), '*');
";

/// Asserts that the page has only harmless elements and attributes, and only web links.
#[track_caller]
fn assert_harmless(measured: &Value) {
    let set = |key: &str| -> BTreeSet<String> {
        let list = measured[key].as_array().unwrap().iter();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let known = "html head meta title style body a header h1 h2 h3 p strong b span time dl div dt dd main section ul li small table thead tbody tr th td em bdi svg desc line path rect circle text g figure figcaption details summary footer code br";
    for element in set("elements") {
        assert!(
            known.split(' ').any(|known| known == element),
            "<{element}>"
        );
    }
    let known = "lang charset name content class datetime data-name href aria-labelledby aria-label aria-describedby aria-hidden id scope role tabindex viewbox viewBox width height d x y x1 y1 x2 y2 cx cy r text-anchor target rel";
    for attribute in set("attributes") {
        assert!(
            known.split(' ').any(|known| known == attribute),
            "{attribute}="
        );
    }
    for link in measured["links"].as_array().unwrap() {
        let address = link[0].as_str().unwrap();
        let is_web = address.starts_with("http://") || address.starts_with("https://");
        if is_web {
            assert_eq!([&link[1], &link[2]], ["noopener noreferrer", "_blank"]);
        } else {
            assert_eq!(address, "#attention");
        }
    }
}

#[track_caller]
fn assert_fits(measured: &Value, width: u32) {
    assert_eq!(measured["width"], width);
    assert_eq!(measured["wide"], json!([]), "{width}");
    assert!(
        measured["needed"].as_u64().unwrap() <= width.into(),
        "{}",
        measured["needed"]
    );
}

/// Asserts what screen readers and keyboards need.
#[track_caller]
fn assert_accessible(measured: &Value) {
    assert_eq!(measured["lang"], "en");
    assert_eq!(measured["landmarks"], json!([1, 1, 1]));
    assert_eq!(measured["twice"], json!([]), "ids are unique");
    assert!(measured["ids"].as_u64().unwrap() > 0);
    assert_eq!(measured["silent"], 0);
    assert_eq!(
        measured["focusable"], 0,
        "scrolling areas are reachable by keyboard"
    );
    let headings: Vec<u64> = list(&measured["headings"], Value::as_u64);
    assert_eq!(headings[0], 1);
    assert_eq!(headings.iter().filter(|level| **level == 1).count(), 1);
    assert!(
        headings.windows(2).all(|pair| pair[1] <= pair[0] + 1),
        "{headings:?}"
    );
    for chart in measured["charts"].as_array().unwrap() {
        let names: Vec<&str> = list(&chart["names"], Value::as_str);
        assert_eq!(names.len(), 2, "{chart}");
        assert!(
            names[0].starts_with("title: ") && names[0].len() > 20,
            "{chart}"
        );
        assert!(
            names[1].starts_with("desc: ") && names[1].len() > 20,
            "{chart}"
        );
        assert!(chart["height"].as_f64().unwrap() > 40.0, "{chart}");
        assert!(chart["shapes"].as_u64().unwrap() > 0, "{chart}");
        assert!(chart["labels"].as_array().unwrap().len() > 2, "{chart}");
        assert_eq!(chart["outside"], json!([]), "{chart}");
    }
    for table in measured["tables"].as_array().unwrap() {
        let scopes: Vec<&str> = list(&table["scopes"], Value::as_str);
        assert!(
            scopes.iter().all(|scope| ["row", "col"].contains(scope)),
            "{table}"
        );
        assert_eq!(table["bare"], 0, "{table}");
        let rows: Vec<u64> = list(&table["rows"], Value::as_u64);
        let columns = table["columns"].as_u64().unwrap();
        assert!(rows.iter().all(|cells| *cells == columns), "{table}");
    }
}

#[track_caller]
fn list<'a, T>(value: &'a Value, of: impl Fn(&'a Value) -> Option<T>) -> Vec<T> {
    let list = value.as_array().unwrap().iter();
    list.map(|entry| of(entry).unwrap_or_else(|| panic!("{value}")))
        .collect()
}

/// Prints the page and returns the number of sheets.
fn pages_on_paper(browser: &Browser, html: &str) -> usize {
    let page = browser.folder.path().join("page.html");
    let paper = browser.folder.path().join("page.pdf");
    fs::write(&page, html).unwrap();
    let print = format!("--print-to-pdf={}", paper.display());
    browser.run(&["--no-pdf-header-footer", &print], &page);
    let pdf = fs::read(&paper).unwrap();
    assert!(pdf.starts_with(b"%PDF-"));
    let name = b"/Type /Page";
    let found = pdf.windows(name.len() + 1);
    found
        .filter(|window| window.starts_with(name) && window[name.len()] != b's')
        .count()
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn pages_with_few_batches_work_too() {
        let Some(browser) = Browser::open() else {
            return;
        };
        let at = MADE - DAY;
        let one = sound("a", at);
        let long = (0..40).map(|number| {
            let crop = format!(
                "\"Chrysanthemum-morifolium-'Großblütige Sorte mit langem Namen {number}'\""
            );
            sound(&format!("{number}"), at - number * DAY).with("crop_type", &crop)
        });
        let unbroken = format!("\"{}\"", "W".repeat(300));
        let unbroken = ["batch_name", "comment", "crop_type", "scanned_by_email"]
            .into_iter()
            .fold(sound("u", at).with("warnings", "true"), |item, field| {
                item.with(field, &unbroken)
            });
        for (items, charts) in [
            (vec![], 0),
            (vec![one], 4),
            (long.collect(), 15),
            (vec![unbroken], 4),
        ] {
            let html = page(&nursery(items), &["--emails"]);
            let visit = browser.visit(&html);
            assert_eq!((visit.console, visit.requests), (vec![], vec![]));
            let widths = [360, 1280];
            for (width, measured) in widths.into_iter().zip(browser.measure(&html, widths)) {
                assert_fits(&measured, width);
                if charts > 0 {
                    assert_accessible(&measured);
                }
                assert_eq!(measured["charts"].as_array().unwrap().len(), charts);
            }
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_year_works_offline_on_phone_desktop_and_paper() {
        let Some(browser) = Browser::open() else {
            return;
        };
        let server = Server::start(&["--batches", "2000", "--seed", "9"]);
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("config.toml");
        fs::write(&config, "[targets.Tomato]\nusable_rate_min = 90\n").unwrap();
        let html = page(&server, &["--config", config.to_str().unwrap(), "--emails"]);
        assert_self_contained(&html);
        let visit = browser.visit(&html);
        assert_eq!(visit.console, Vec::<String>::new());
        assert_eq!(visit.requests, Vec::<String>::new());
        let widths = [360, 390, 768, 1280];
        for (width, measured) in widths.into_iter().zip(browser.measure(&html, widths)) {
            assert_fits(&measured, width);
            assert_accessible(&measured);
            assert_harmless(&measured);
            let charts = measured["charts"].as_array().unwrap();
            assert_eq!(charts.len(), 12 + 3, "crops; cells, scatter, boxes");
            assert_eq!(measured["tables"].as_array().unwrap().len(), 6);
            assert_eq!(measured["goals"], json!([true]), "the target of Tomato");
        }
        let pages = pages_on_paper(&browser, &html);
        assert!((1..=3).contains(&pages), "{pages} pages");
        // A sheet is 186 mm wide between its margins, and has no scroll bar (15 pixels). A point is 4/3
        // pixels.
        let paper = html.replace("@media print{", "@media all{");
        let [measured] = browser.measure(&paper, [703 + 15]);
        assert_eq!(measured["broken"], json!([]), "words must not break");
        for chart in measured["charts"].as_array().unwrap() {
            let points = chart["letters"].as_f64().unwrap() * 0.75;
            assert!(points >= 5.5, "{points} pt: {chart}");
            assert_eq!(chart["outside"], json!([]), "{chart}");
        }
    }
}
