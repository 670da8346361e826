//! Small workbooks that unpack to more than fits in memory.

use std::fs;
use std::io::{Cursor, Write as _};

use super::Book;
use crate::fake::deflated_bomb;
use crate::harness::Run;

/// Repacks a workbook with one part replaced or added.
fn with_part(
    book: &[u8],
    other: &str,
    size: usize,
    [before, filling, after]: [&str; 3],
) -> Vec<u8> {
    let (deflated, crc) = deflated_bomb(before, filling, size, after);
    let mut archive = zip::ZipArchive::new(Cursor::new(book)).unwrap();
    let mut packed = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for place in 0..archive.len() {
        let mut part = archive.by_index(place).unwrap();
        let name = String::from_utf8(part.name_raw().to_vec()).unwrap();
        if name != other {
            packed.start_file(name, options).unwrap();
            std::io::copy(&mut part, &mut packed).unwrap();
        }
    }
    let stored = options.compression_method(zip::CompressionMethod::Stored);
    packed.start_file(other, stored).unwrap();
    packed.write_all(&deflated).unwrap();
    let mut bytes = packed.finish().unwrap().into_inner();
    // The part is stored as it is; both of its headers say that it is deflated, and what it unpacks to.
    let mut archive = zip::ZipArchive::new(Cursor::new(&bytes)).unwrap();
    let part = archive.by_name(other).unwrap();
    let starts = [(part.header_start(), 8), (part.central_header_start(), 10)];
    drop(part);
    drop(archive);
    for (start, method) in starts {
        let start = usize::try_from(start).unwrap() + method;
        bytes[start..start + 2].copy_from_slice(&8u16.to_le_bytes());
        bytes[start + 6..start + 10].copy_from_slice(&crc.sum().to_le_bytes());
        bytes[start + 14..start + 18].copy_from_slice(&crc.amount().to_le_bytes());
    }
    bytes
}

#[test]
#[ignore = "slow: half a gibibyte, and 13 million texts"]
fn texts_too_large_for_memory_are_refused() {
    let book = Book::of(&[&[], &[]], &[]);
    let path = book.path("bomb.xlsx");
    let long = format!("<si><t>{}</t></si>", "x".repeat(1000));
    for (size, text) in [(520, long.as_str()), (64, "<si/>")] {
        let parts = ["<sst>", text, "</sst>"];
        let bomb = with_part(&book.bytes, "xl/sharedStrings.xml", size, parts);
        assert!(bomb.len() < 32 << 20, "{}", bomb.len());
        assert_refused_with_little_memory(&path, &bomb, "unpacks to more than 512 MiB");
    }
}

fn assert_refused_with_little_memory(path: &str, bytes: &[u8], why: &str) {
    fs::write(path, bytes).unwrap();
    // If the program allocates more, it is terminated with another exit code.
    let command = "ulimit -v 524288; exec \"$0\" verify \"$1\"";
    let ended = Run::new("sh")
        .args(["-c", command, env!("CARGO_BIN_EXE_trayscan"), path])
        .output()
        .expect(7);
    assert!(ended.stderr.contains(why), "{why}: {ended:?}");
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_workbook_too_large_for_memory_is_refused() {
        let book = Book::of(&[&[], &[]], &[]);
        let sheet = "xl/worksheets/sheet1.xml";
        let good = book.part(sheet);
        let (before, after) = good.split_once("</row>").unwrap();
        let element = format!("<x>{}</x>", "x".repeat(1000));
        // Mebibytes that compress well: a large part, and large cells.
        let cell = |kind: &str| format!("{before}<c r=\"ZZ1\" t=\"inlineStr\"><is>{kind}");
        let (one, many) = (cell("<t>"), cell(""));
        let bombs = [
            (
                80,
                "xl/styles.xml",
                ["<styleSheet>", &element, "</styleSheet>"],
                "unpacks to more than 64 MiB",
            ),
            (
                640,
                sheet,
                [&one, "x", after],
                "has a cell of more than 2 MiB",
            ),
            (
                16,
                sheet,
                [&many, "<r><t>abcd</t></r>", after],
                "has a cell of more than 2 MiB",
            ),
        ];
        let path = book.path("bomb.xlsx");
        for (size, name, parts, why) in bombs {
            let bomb = with_part(&book.bytes, name, size, parts);
            assert!(bomb.len() < 32 << 20, "{}", bomb.len());
            assert_refused_with_little_memory(&path, &bomb, why);
        }
        // No memory is set aside for texts that are only declared.
        for (count, text) in [("99999999999", ""), ("1", "<si><t>a</t></si>")] {
            let texts = format!("<sst uniqueCount=\"{count}\">{text}</sst>");
            let part = with_part(&book.bytes, "xl/sharedStrings.xml", 0, [&texts, " ", ""]);
            let why = "nothing in the spreadsheet refers to `xl/sharedstrings.xml`";
            assert_refused_with_little_memory(&path, &part, why);
        }
    }
}
