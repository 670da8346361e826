//! One page of version 2: asked for by its cursor until it was read.

use std::sync::atomic::Ordering;

use tokio::sync::oneshot;
use tokio::task;

use super::decode::{DecodedPage, PageDecoder, ResponseInfo};
use super::limiter::Permit;
use super::session::{PageRequest, Refused, Session};
use crate::batch::range::Range;
use crate::client::{Response, ServiceError, Version};
use crate::secret::Secret;

/// What a cursor that is no longer taken is answered with (interface, section 7: not shown).
pub(super) const EXPIRED: [u16; 4] = [400, 404, 410, 422];
/// What is read at once of a page; those that are larger are read while they arrive.
const PIECE: usize = 4 << 20;
/// The most that one page may hold in memory.
const LARGEST: usize = 256 << 20;

/// What came for a page, with the cursor of the next.
pub(super) type PageResult = Result<(DecodedPage, Option<String>), Refused>;

/// Who waits for the cursor of the next page; told once.
type Early = Option<oneshot::Sender<String>>;

/// Asks for a page, with its dates as far as they are taken beside a cursor.
pub(super) async fn ask_page(
    asker: &Session,
    window: Range,
    next_token: Option<Secret>,
    source: ResponseInfo,
    early: oneshot::Sender<String>,
) -> PageResult {
    let has_cursor = next_token.is_some();
    let repeat_dates = !has_cursor || asker.dates_with_cursor.load(Ordering::Relaxed);
    let mut wanted = PageRequest {
        version: Version::V2,
        range: if repeat_dates {
            window
        } else {
            Range::default()
        },
        next_token,
    };
    let mut early = Some(early);
    let asked = ask_once(asker, &wanted, source, &mut early, || {}).await;
    let has_dates = window.start.is_some() || window.end.is_some();
    let refused = matches!(&asked, Err((error, _)) if error.refuses_batches(&[422]));
    if !(refused && has_cursor && repeat_dates && has_dates) {
        return asked;
    }
    wanted.range = Range::default();
    let taken = || {
        if asker.dates_with_cursor.swap(false, Ordering::Relaxed) {
            log::info!("the service takes no dates together with next_token: leaving them out");
        }
    };
    match ask_once(asker, &wanted, source, &mut early, taken).await {
        // It refuses this one too: then it was not for the dates.
        Err((error, _)) if error.refuses_batches(&EXPIRED) => asked,
        answered => answered,
    }
}

/// Asks until a page was read; `taken` hears of it as soon as the service has taken the request.
async fn ask_once(
    asker: &Session,
    wanted: &PageRequest,
    source: ResponseInfo,
    early: &mut Early,
    taken: impl Fn(),
) -> PageResult {
    let mut asking = asker.tries(wanted);
    loop {
        let (answer, place) = asking.send().await?;
        taken();
        let reading = PageDecoder::new(Version::V2, asker.lenient, source, asker.blank());
        match read_page(answer, place, reading, early).await {
            Ok(got) => return Ok(got),
            Err(error) => asking.failed(error).await?,
        }
    }
}

/// Reads a page; tells the cursor of the next one as soon as all of this one is there.
async fn read_page(
    mut answer: Response,
    place: Permit<'_>,
    mut reading: PageDecoder,
    early: &mut Early,
) -> Result<(DecodedPage, Option<String>), ServiceError> {
    let mut last = None;
    let mut size = 0;
    while let Some(text) = answer.text(PIECE).await? {
        size += text.len();
        if size > LARGEST {
            let why = format!("a page is larger than {} MB", LARGEST >> 20);
            return Err(answer.broken(why));
        }
        if answer.has_ended() {
            last = Some(text);
            break;
        }
        reading
            .feed(&text)
            .map_err(|unreadable| answer.unreadable(unreadable))?;
    }
    place.served();
    let last = last.unwrap_or_default();
    let early = early.take();
    if let (Some(early), Some(cursor)) = (early, last_cursor(&last)) {
        // Where nobody waits for it, nobody needs it.
        let _ = early.send(cursor.to_owned());
    }
    // First the next request is sent, then this answer is read.
    task::yield_now().await;
    let read = reading.feed(&last).and_then(|()| reading.finish());
    read.map_err(|unreadable| answer.unreadable(unreadable))
}

/// Returns the cursor at the end of a page. Where the page is valid and ends like this, no string can
/// hide it: a quote inside of one would have a backslash before it.
fn last_cursor(page: &str) -> Option<&str> {
    let rest = page.trim_end().strip_suffix("\"}")?;
    let (before, cursor) = rest.rsplit_once('"')?;
    let before = before.strip_suffix("\"next_token\":")?;
    let is_plain = !cursor.is_empty()
        && cursor
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    (is_plain && before.ends_with([',', '{'])).then_some(cursor)
}

#[cfg(test)]
mod tests {
    use crate::fetch::v2_page::last_cursor;

    #[test]
    fn a_cursor_at_the_end_is_known_early() {
        assert_eq!(
            last_cursor(r#"{"data":[],"next_token":"a=b"}"#),
            Some("a=b")
        );
        assert_eq!(
            last_cursor("{\"data\":[],\"next_token\":\"x\"}\n"),
            Some("x")
        );
        for page in [
            r#"{"data":[],"next_token":null}"#,
            r#"{"next_token":"x","data":[]}"#,
            r#"{"data":[],"next_token":"a\"b"}"#,
            r#"{"data":[],"next_token":"a\\"}"#,
            r#"{"data":[],"more":"\"next_token\":\"x"}"#,
            r#"{"data":[],"more":",\"next_token\":","x":"y"}"#,
            r#"{"data":[],"next_token":""}"#,
            "",
        ] {
            assert_eq!(last_cursor(page), None, "{page}");
        }
    }
}
