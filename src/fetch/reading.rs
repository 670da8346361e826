//! Reading the batches of an answer, and what is wrong with them.

use crate::batch::Batch;
use crate::service::split::{Flow, Unreadable};
use crate::settings::conceal;
use crate::ui;

/// The most that one page may hold in memory.
const PAGE_LIMIT: usize = 256 << 20;

/// What was wrong with batches that were carried on nevertheless.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Batches that break the interface, and an example.
    pub(crate) flawed: u64,
    pub(crate) example: Option<String>,
    /// Batches that were left out, for they have no identifier.
    pub(crate) skipped: u64,
    /// A nullable field that was not even there.
    pub(crate) absent: Option<&'static str>,
}

impl Findings {
    pub(super) fn add(&mut self, more: Self) {
        self.flawed += more.flawed;
        self.skipped += more.skipped;
        self.example = self.example.take().or(more.example);
        self.absent = self.absent.or(more.absent);
    }
}

/// Reads one answer.
pub(super) struct Reading {
    lenient: bool,
    enough: usize,
    page: u64,
    /// Batches received, also those that are left out.
    pub(super) count: usize,
    held: usize,
    pub(super) batches: Vec<Batch>,
    pub(super) findings: Findings,
}

impl Reading {
    pub(super) fn new(lenient: bool, enough: usize, page: u64) -> Self {
        Self {
            lenient,
            enough,
            page,
            count: 0,
            held: 0,
            batches: Vec::new(),
            findings: Findings::default(),
        }
    }

    /// Takes the text of one batch.
    pub(super) fn batch(&mut self, text: &str) -> Result<Flow, Unreadable> {
        self.count += 1;
        self.held += text.len();
        if self.held > PAGE_LIMIT {
            return Err(Unreadable::Broken(format!(
                "a page is larger than {} MB",
                PAGE_LIMIT >> 20
            )));
        }
        let read = Batch::read(text);
        if let Some(flaw) = read.flaws.first() {
            let name = read
                .batch
                .as_ref()
                .map_or_else(String::new, |batch| format!(" (`{}`)", brief(&batch.id())));
            let found = format!(
                "page {}, batch {}{name}: {}",
                self.page,
                self.count,
                brief(&flaw.to_string())
            );
            if !self.lenient {
                return Err(Unreadable::Broken(found));
            }
            self.findings.flawed += 1;
            self.findings.skipped += u64::from(read.batch.is_none());
            self.findings.example.get_or_insert(found);
        }
        self.findings.absent = self.findings.absent.or(read.absent);
        self.batches.extend(read.batch);
        let full = self.count >= self.enough;
        Ok(if full { Flow::Stop } else { Flow::Continue })
    }
}

/// Shows what the service named: on one line, and no more of it than tells it from others.
fn brief(text: &str) -> String {
    const CHARACTERS: usize = 120;
    // Half a secret would not be recognised any more.
    let text = conceal(text);
    let mut short: String = text.chars().take(CHARACTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    ui::one_line(&short).into_owned()
}
