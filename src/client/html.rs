//! Extracts a readable message from HTML error pages, as proxies and web servers send them.

use crate::secret::without_entities;

/// Returns the title of an HTML page as plain text; without one, its first heading; otherwise its text.
/// Returns `None` if `body` is not markup.
pub(super) fn title(body: &str) -> Option<String> {
    let body =
        body.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
    if !body.starts_with('<') {
        return None;
    }
    // Both have the same offsets: only ASCII letters change.
    let lower = body.to_ascii_lowercase();
    let texts = ["title", "h1"].map(|name| element(body, &lower, name).map(plain_text));
    let text = texts.into_iter().flatten().find(|text| !text.is_empty());
    let text = text.unwrap_or_else(|| plain_text(body));
    Some(if text.is_empty() {
        "an HTML page without text".to_owned()
    } else {
        text
    })
}

/// Returns the content of the first element called `name`.
fn element<'a>(body: &'a str, lower: &str, name: &str) -> Option<&'a str> {
    let tag = format!("<{name}");
    let mut from = 0;
    loop {
        let after_name = from + lower[from..].find(&tag)? + tag.len();
        let ends_here = |byte: u8| byte == b'>' || byte.is_ascii_whitespace();
        if lower
            .as_bytes()
            .get(after_name)
            .copied()
            .is_some_and(ends_here)
        {
            let start = after_name + lower[after_name..].find('>')? + 1;
            let length = lower[start..].find(&format!("</{name}"));
            let end = length.map_or(lower.len(), |length| start + length);
            return Some(&body[start..end]);
        }
        from = after_name;
    }
}

/// Returns `markup` without tags, comments, scripts and styles, with entities decoded and in one line.
fn plain_text(markup: &str) -> String {
    let lower = markup.to_ascii_lowercase();
    let mut text = String::new();
    let mut rest = 0;
    while let Some(length) = markup[rest..].find('<') {
        let tag = rest + length;
        text.push_str(&markup[rest..tag]);
        text.push(' ');
        let end = [
            ("<!--", "-->"),
            ("<script", "</script"),
            ("<style", "</style"),
            ("<", ">"),
        ]
        .into_iter()
        .find(|(start, _)| lower[tag..].starts_with(start))
        .and_then(|(_, end)| Some(tag + lower[tag..].find(end)? + end.len()));
        rest = end.unwrap_or(markup.len());
        // The end of a script or a style is a tag too.
        if rest < markup.len() && !markup[..rest].ends_with('>') {
            rest = lower[rest..]
                .find('>')
                .map_or(markup.len(), |more| rest + more + 1);
        }
    }
    text.push_str(&markup[rest..]);
    let words: Vec<&str> = text.split_whitespace().collect();
    without_entities(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_is_shown_without_tags() {
        let nginx = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
                     <center><h1>502 Bad Gateway</h1></center>\r\n<hr></body>\r\n</html>";
        for (body, text) in [
            (nginx, "502 Bad Gateway"),
            (
                "\u{feff} <!DOCTYPE html><TITLE lang=en>\n Wait&hellip; a &amp;\n &#60;b&#x3E;</TITLE>",
                "Wait&hellip; a & <b>",
            ),
            ("<titles>no</titles><title>yes", "yes"),
            ("<title></title><h1>Not <b>found</b></h1>", "Not found"),
            (
                "<style>p > a {}</style><!-- > --><script>if (a < b) c()</script ><p>Down</p>",
                "Down",
            ),
            ("<html></html>", "an HTML page without text"),
            ("<", "an HTML page without text"),
            ("<p", "an HTML page without text"),
        ] {
            assert_eq!(title(body).as_deref(), Some(text), "{body}");
        }
        assert_eq!(title("Bad gateway <b>"), None);
        assert_eq!(title(""), None);
    }

    #[test]
    fn odd_markup_neither_panics_nor_takes_long() {
        for body in [
            "<é>&é;&#xfffffffff;&#55296;&;&",
            "<script>é",
            "<!--",
            "<title",
            "<title>é</titl",
        ] {
            title(body).expect("markup");
        }
        for piece in ["<", "&", "<title", "<!--", "<script>", "<h1"] {
            title(&format!("<{}", piece.repeat(64 * 1024 / piece.len()))).expect("markup");
        }
    }
}
