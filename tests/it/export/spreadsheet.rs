//! `--excel` in a real spreadsheet program. Skipped with a message if LibreOffice is not installed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::fake::{Batch, FakeService};
use crate::harness::{Run, export};

/// The languages of the system: the number that LibreOffice has for it, the delimiter in ASCII, and the flags.
const LANGUAGES: [(&str, u16, u8, &[&str]); 2] = [
    ("en-US", 1033, b',', &["--excel"]),
    ("de-DE", 1031, b';', &["--excel", "--decimal-comma"]),
];

#[test]
fn libreoffice_reads_dates_and_numbers_as_such() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join("soffice").exists()) {
        eprintln!("skipped: this machine has no LibreOffice (soffice)");
        return;
    }
    let batches = [
        ("whole", "2026-05-01T06:00:00Z"),
        ("fraction", "2026-05-01T06:00:00.500Z"),
        ("offset", "2026-05-01T06:00:00.25+00:00"),
    ];
    let batches = batches.map(|(id, date)| {
        let batch = Batch::new(id).created(date);
        batch.with("avg_germination_rate", "\"87.50\"")
    });
    let service = FakeService::with(&batches);
    let folder = TempDir::new().unwrap();
    for (language, number, delimiter, flags) in LANGUAGES {
        let path = folder.path().join(format!("{language}.csv"));
        let fields = [
            "--fields",
            "batch_creation_date,avg_germination_rate,batch_id",
        ];
        let output = ["-o", path.to_str().unwrap()];
        export(&service, &[flags, &fields, &output].concat()).expect(0);
        // UTF-8 from the first line, with "detect special numbers".
        let filter = format!("CSV:{delimiter},34,76,1,,{number},false,true");
        let sheet = converted(&path, &filter, folder.path());
        let cells: Vec<&str> = sheet
            .split("<table:table-cell ")
            .skip(1)
            .filter_map(|cell| cell.split('>').next())
            .filter(|cell| cell.contains("office:value-type"))
            .collect();
        let dates: Vec<&str> = cells
            .iter()
            .filter_map(|cell| cell.split("office:date-value=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(
            dates,
            [
                "2026-05-01T06:00:00",
                "2026-05-01T06:00:00.5",
                "2026-05-01T06:00:00.25"
            ],
            "{language}: {cells:?}"
        );
        let numbers = cells
            .iter()
            .filter(|cell| cell.contains("office:value=\"87.5\""));
        assert_eq!(numbers.count(), 3, "{language}: {cells:?}");
    }
}

/// Converts a CSV file to XML, as opening it would.
fn converted(path: &Path, filter: &str, folder: &Path) -> String {
    let profile = format!("-env:UserInstallation=file://{}/profile", folder.display());
    let ended = Run::new("soffice")
        .args([&profile, "--headless", "--convert-to", "fods"])
        .arg(format!("--infilter={filter}"))
        .arg("--outdir")
        .args([folder, path])
        .limit(Duration::from_secs(180))
        .output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    fs::read_to_string(path.with_extension("fods")).unwrap()
}
