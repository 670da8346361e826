//! Truncated responses, with every framing: retried, and never accepted as complete.

use serde_json::json;

use super::{CURSOR, TOKEN, batch, export, in_parallel, one_page, page, service, token};
use crate::fake::{Answer, Batch, FakeService, Framing, cursor};

/// Pages of one small batch each. The first response for page `k` is cut at byte `k`, except for the last page.
fn cut_pages(framing: Framing, reset: bool, pages: usize) -> FakeService {
    FakeService::start(move |asked| {
        if asked.path().ends_with("/auth") {
            return token();
        }
        let number = asked.query("next_token").map_or(0, |cursor| {
            cursor.strip_prefix(CURSOR).unwrap().parse().unwrap()
        });
        let answer = cut_page(framing, number, pages);
        let place = number.min(answer.len() - 1);
        match (asked.again == 0 && number < pages, reset) {
            (false, _) => answer,
            (true, false) => answer.cut_at(place),
            (true, true) => answer.cut_at(place).reset(),
        }
    })
}

fn cut_page(framing: Framing, number: usize, pages: usize) -> Answer {
    let batch = json!({
        "batch_id": format!("b{number:04}"),
        "batch_name": "Tray",
        "batch_creation_date": "2026-05-01T06:00:00Z",
        "number_of_images": 1,
        "warnings": false,
    });
    let next = (number < pages).then(|| cursor(number + 1));
    Answer::framed(
        200,
        framing,
        page(&[batch.to_string()], next.as_deref()).as_bytes(),
    )
}

#[test]
fn a_page_that_is_always_truncated_is_never_accepted() {
    in_parallel(&Framing::ALL, |&framing| {
        let whole = Answer::framed(200, framing, page::<Batch>(&[], None).as_bytes());
        let exported = export(&service([whole.clone()]), &[]).expect(0);
        assert_eq!(exported.ids(), [""; 0], "{framing:?}");
        // Cut at a different byte each time, so that one run covers them all.
        let service = service((0..whole.len()).map(|place| whole.clone().cut_at(place)));
        let retries = (whole.len() - 1).to_string();
        let exported = export(&service, &["--retries", &retries]);
        assert_eq!(exported.code, 5, "{framing:?}: {}", exported.stderr);
        assert_eq!(
            service.requests_for("/batches").len(),
            whole.len(),
            "{framing:?}"
        );
    });
}

#[test]
fn a_page_with_a_wrong_content_length_is_rejected() {
    let body = page(&[batch("b1")], None);
    for length in [
        body.len() + 1,
        body.len() + 1000,
        body.len() - 1,
        body.len() / 2,
    ] {
        let wrong = Answer::ok(&body).claiming(length);
        let service = service([wrong.clone(), one_page()]);
        assert_eq!(export(&service, &[]).expect(0).ids(), ["b1"], "{length}");
        assert_eq!(service.requests_for("/batches").len(), 2, "{length}");
    }
}

#[test]
fn a_page_with_a_wrong_gzip_checksum_is_rejected() {
    let body = page(&[batch("b1")], None);
    let good = Answer::framed(200, Framing::GzipLength, body.as_bytes());
    // Nothing is truncated, but the checksum is wrong.
    let mut gzipped = gzipped(&body);
    let place = gzipped.len() - 8;
    gzipped[place] ^= 1;
    let damaged = Answer::packed(200, gzipped);
    let again = service([damaged.clone(), good]);
    assert_eq!(export(&again, &[]).expect(0).ids(), ["b1"]);
    assert_eq!(again.requests_for("/batches").len(), 2);
    let exported = export(&service([damaged]), &[]).expect(5);
    assert!(
        exported.has("cannot be decompressed"),
        "{}",
        exported.stderr
    );
    assert!(!exported.has("cut off"), "{}", exported.stderr);
}

#[test]
fn a_response_that_never_decompresses_is_a_protocol_error() {
    let plain = Answer::packed(200, page(&[batch("b1")], None).into_bytes());
    let service = service([plain]);
    let exported = export(&service, &[]).expect(7);
    assert!(exported.has("the response cannot be decompressed"));
    assert_eq!(service.requests_for("/batches").len(), 2, "retried once");
}

/// Compresses `text` with gzip.
fn gzipped(text: &str) -> Vec<u8> {
    use std::io::Write as _;

    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_service_that_always_resets_is_unavailable() {
    for place in [0, 20, 150] {
        let service = service([one_page().cut_at(place).reset()]);
        let exported = export(&service, &["--retries", "2"]).expect(5);
        assert_eq!(
            service.requests_for("/batches").len(),
            3,
            "{}",
            exported.stderr
        );
    }
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_page_truncated_at_any_byte_is_retried_without_loss() {
        let kinds = Framing::ALL.map(|framing| (framing, false));
        in_parallel(
            &[&kinds[..], &[(Framing::Length, true)]].concat(),
            |&(framing, reset)| {
                let pages = cut_page(framing, 0, 9).len() + 3;
                let service = cut_pages(framing, reset, pages);
                let exported = export(&service, &["--api", "v2", "--retries", "1"]);
                assert_eq!(exported.code, 0, "{framing:?} {}", exported.stderr);
                let expected: Vec<String> =
                    (0..=pages).map(|number| format!("b{number:04}")).collect();
                assert_eq!(exported.ids(), expected, "{framing:?}");
                let tries = service.requests_for("/batches").len();
                assert_eq!(
                    tries,
                    2 * pages + 1,
                    "{framing:?}: every truncated response is retried"
                );
                assert_eq!(
                    exported.stderr.matches("trying again").count(),
                    pages,
                    "each wait is reported"
                );
            },
        );
    }

    #[test]
    #[ignore = "slow"]
    fn a_version_1_response_truncated_at_any_byte_is_retried() {
        in_parallel(&Framing::ALL, |&framing| {
            let body = format!("[{}]", batch("b1"));
            let whole = Answer::framed(200, framing, body.as_bytes());
            let cuts = (0..whole.len()).map(|place| whole.clone().cut_at(place));
            let service = service(cuts.chain([whole.clone()]));
            let retries = whole.len().to_string();
            let exported = export(&service, &["--api", "v1", "--retries", &retries]);
            assert_eq!(exported.code, 0, "{framing:?} {}", exported.stderr);
            assert_eq!(exported.ids(), ["b1"], "{framing:?}");
            assert_eq!(
                service.requests_for("/batches").len(),
                whole.len() + 1,
                "{framing:?}"
            );
        });
    }

    #[test]
    #[ignore = "slow"]
    fn a_token_response_truncated_at_any_byte_is_retried() {
        in_parallel(&Framing::ALL, |&framing| {
            let body = json!({ "access_token": TOKEN }).to_string();
            let whole = Answer::framed(200, framing, body.as_bytes());
            let cuts = (0..whole.len()).map(|place| whole.clone().cut_at(place));
            let auth = cuts.chain([whole.clone()]).collect();
            let service = FakeService::answering(auth, vec![one_page()]);
            let exported = export(&service, &["--retries", &whole.len().to_string()]);
            assert_eq!(exported.code, 0, "{framing:?} {}", exported.stderr);
            assert_eq!(
                service.requests_for("/auth").len(),
                whole.len() + 1,
                "{framing:?}"
            );
            let bearer = format!("Bearer {TOKEN}");
            assert_eq!(
                service.requests_for("/batches")[0].headers("authorization"),
                [&bearer]
            );
        });
    }
}
