//! The results of `check`: one line per step as it ends, or one JSON object at the end.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{self, Failure};
use crate::probe::TopicAnswer;
use crate::secret::conceal;
use crate::terminal::{self, MessageFormat};
use crate::text::{self, one_line};

#[derive(Serialize)]
struct CheckStep {
    #[serde(rename = "step")]
    name: &'static str,
    ok: bool,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// The results so far.
pub(crate) struct CheckResults {
    format: MessageFormat,
    /// What to say if a step failed.
    verdict: &'static str,
    steps: Vec<CheckStep>,
    /// The answers of the probe so far, and the number of its requests; `None` without a probe.
    probe: Option<(Vec<Value>, u64)>,
    /// The failed steps that matter, and why each failed.
    failures: Vec<(&'static str, anyhow::Error)>,
}

impl CheckResults {
    pub(crate) fn new(format: MessageFormat, verdict: &'static str) -> Self {
        Self {
            format,
            verdict,
            steps: Vec::new(),
            probe: None,
            failures: Vec::new(),
        }
    }

    /// Returns whether `step` was run and succeeded.
    pub(super) fn succeeded(&self, step: &str) -> bool {
        self.steps
            .iter()
            .any(|tried| tried.name == step && tried.ok)
    }

    pub(super) fn ok(
        &mut self,
        step: &'static str,
        found: impl Into<String>,
    ) -> anyhow::Result<()> {
        self.add(CheckStep {
            name: step,
            ok: true,
            found: found.into(),
            hint: None,
        })
    }

    /// Adds a failed step; the first that `matters` decides the exit code.
    pub(super) fn failed(
        &mut self,
        step: &'static str,
        failure: Failure,
        matters: bool,
    ) -> anyhow::Result<()> {
        let mut found = conceal(&failure.with_causes()).into_owned();
        let error = anyhow::Error::new(failure);
        if !matters {
            found += "; exports do not need it";
        }
        self.add(CheckStep {
            name: step,
            ok: false,
            found,
            hint: error::hint_of(&error).map(String::from),
        })?;
        if matters {
            self.failures.push((step, error));
        }
        Ok(())
    }

    fn add(&mut self, step: CheckStep) -> anyhow::Result<()> {
        if self.is_printed() {
            let mark = if step.ok { "ok    " } else { "FAILED" };
            let mut line = format!("{mark}  {:12}  {}\n", step.name, one_line(&step.found));
            if let Some(hint) = &step.hint {
                let indent = " ".repeat(22);
                let hint = hint.replace('\n', &format!("\n{indent}"));
                // Writing to a string cannot fail, here and below.
                let _ = writeln!(line, "{indent}hint: {hint}");
            }
            terminal::print(&line)?;
        }
        self.steps.push(step);
        Ok(())
    }

    /// Starts the section of the probe.
    pub(super) fn begin_probe(&mut self) -> anyhow::Result<()> {
        self.probe = Some((Vec::new(), 0));
        self.print_text("\nWhat the interface leaves open:\n\n")
    }

    /// Adds an answer, with secrets concealed: the service may have put anything into it.
    pub(super) fn add_answer(&mut self, answer: &TopicAnswer) -> anyhow::Result<()> {
        let shown = |text: &String| conceal(text).into_owned();
        let (id, question) = answer.topic.names();
        let found = shown(&answer.answer);
        let evidence: Vec<String> = answer.evidence.iter().map(shown).collect();
        let mark = if answer.known { "found " } else { "open  " };
        let mut text = format!("{mark}  {question:21}  {}\n", one_line(&found));
        for line in &evidence {
            let _ = writeln!(text, "          {}", one_line(line));
        }
        self.print_text(&text)?;
        self.probe.get_or_insert_default().0.push(json!({
            "id": id,
            "question": question,
            "known": answer.known,
            "answer": found,
            "evidence": evidence,
        }));
        Ok(())
    }

    pub(super) fn end_probe(&mut self, requests: u64) -> anyhow::Result<()> {
        let (answers, sent) = self.probe.get_or_insert_default();
        *sent = requests;
        let known = answers.iter().filter(|answer| answer["known"] == true);
        let (known, all) = (known.count(), answers.len());
        let requests = text::count(requests, "read-only request", "read-only requests");
        self.print_text(&format!(
            "\n{known} of {all} questions answered with {requests}\n"
        ))
    }

    /// Prints `text` at once, unless the format is JSON.
    fn print_text(&self, text: &str) -> anyhow::Result<()> {
        match self.format {
            MessageFormat::Text => Ok(terminal::print(text)?),
            MessageFormat::Json => Ok(()),
        }
    }

    /// Returns whether each step is printed as it ends. A quiet run only has the final error.
    fn is_printed(&self) -> bool {
        self.format == MessageFormat::Text && !terminal::is_quiet()
    }

    /// Returns the failed steps that matter.
    pub(crate) fn failed_steps(&self) -> Vec<&'static str> {
        self.failures.iter().map(|(step, _)| *step).collect()
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        let mut report = self.report();
        if let Some((answers, requests)) = &self.probe {
            report["probe"] = answers.clone().into();
            report["probe_requests"] = (*requests).into();
        }
        if self.format == MessageFormat::Json {
            terminal::print_json(&report)?;
        }
        if let Some(failure) = self.into_failure(|_| true) {
            return Err(failure.into());
        }
        terminal::finish(None, &report, None);
        Ok(())
    }

    /// Returns the steps, for programs.
    pub(crate) fn report(&self) -> Value {
        json!({"ok": self.failures.is_empty(), "steps": self.steps})
    }

    /// Returns the final error, if any of these steps failed and matter. The first decides the exit code.
    pub(crate) fn into_failure(self, is_needed: impl Fn(&str) -> bool) -> Option<Failure> {
        let is_told = self.is_printed() && !terminal::prints_json();
        let needed = self.failures.into_iter();
        let needed = needed.filter(|(step, _)| is_needed(step));
        let (steps, errors): (Vec<_>, Vec<_>) = needed.unzip();
        let error = errors.into_iter().next()?;
        let message = format!("{}: {}", self.verdict, steps.join(", "));
        let failure = Failure::new(error::kind_of(&error), message);
        // The step was printed with the cause and a hint.
        Some(if is_told {
            failure
        } else {
            failure.caused_by(error)
        })
    }
}
