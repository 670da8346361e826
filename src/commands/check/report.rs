//! What `check` found: a line as soon as something was tried, or one JSON object at the end.

use serde::Serialize;

use crate::cli::ReportFormat;
use crate::error::{self, Failure};
use crate::settings::conceal;
use crate::ui;

/// One thing that was tried.
#[derive(Serialize)]
struct Step {
    #[serde(rename = "step")]
    name: &'static str,
    ok: bool,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What was found so far, and the failure that decides the exit code.
pub(super) struct Findings {
    format: ReportFormat,
    steps: Vec<Step>,
    failure: Option<anyhow::Error>,
}

impl Findings {
    pub(super) fn new(format: ReportFormat) -> Self {
        Self {
            format,
            steps: Vec::new(),
            failure: None,
        }
    }

    /// Tells whether `step` was tried, and well.
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
        self.add(Step {
            name: step,
            ok: true,
            found: found.into(),
            hint: None,
        })
    }

    /// Notes a failure; the first that `matters` decides the exit code.
    pub(super) fn failed(
        &mut self,
        step: &'static str,
        failure: Failure,
        matters: bool,
    ) -> anyhow::Result<()> {
        let error = anyhow::Error::new(failure);
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        let hint = error::hint_of(&error).map(String::from);
        self.add(Step {
            name: step,
            ok: false,
            found: conceal(&causes.join(": ")).into_owned(),
            hint,
        })?;
        if matters && self.failure.is_none() {
            self.failure = Some(error);
        }
        Ok(())
    }

    fn add(&mut self, step: Step) -> anyhow::Result<()> {
        if self.format == ReportFormat::Text {
            let mark = if step.ok { "ok    " } else { "FAILED" };
            let mut line = format!("{mark}  {:12}  {}\n", step.name, ui::one_line(&step.found));
            if let Some(hint) = &step.hint {
                let indent = " ".repeat(22);
                line += &indent;
                line += "hint: ";
                line += &hint.replace('\n', &format!("\n{indent}"));
                line.push('\n');
            }
            ui::print(&line)?;
        }
        self.steps.push(step);
        Ok(())
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        if self.format == ReportFormat::Json {
            let report = serde_json::json!({"ok": self.failure.is_none(), "steps": self.steps});
            ui::print(&format!("{report}\n"))?;
        }
        match self.failure {
            // What failed stands in the report; what remains is the class.
            Some(error) => Err(Failure::new(error::kind_of(&error), "the check failed")
                .caused_by(error)
                .into()),
            None => Ok(()),
        }
    }
}
