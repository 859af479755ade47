//! Lists cut into pages with opaque cursors (2025-11-25, Pagination).

use std::collections::HashMap;

use rehearse_document::seeded_rng::SeededRng;

/// The pages of one list, each as the members of its result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pages {
    pages: Vec<String>,
    by_cursor: HashMap<String, usize>,
}

impl Pages {
    pub(super) fn new(kind: &str, items: &[&str], page_size: Option<usize>, seed: u64) -> Self {
        let chunks: Vec<_> = items.chunks(page_size.unwrap_or(items.len()).max(1)).map(|page| page.join(",")).collect();
        let cursor = |page: usize| {
            let parts = kind.bytes().map(u64::from).chain([page as u64]);
            format!("{:016x}", SeededRng::for_parts(seed, parts).number())
        };
        let page = |(index, items): (usize, &String)| {
            let next = (index + 1 < chunks.len()).then(|| format!(",\"nextCursor\":\"{}\"", cursor(index + 1)));
            format!("\"{kind}\":[{items}]{}", next.unwrap_or_default())
        };
        let mut pages: Vec<_> = chunks.iter().enumerate().map(page).collect();
        if pages.is_empty() {
            pages.push(format!("\"{kind}\":[]"));
        }
        Pages { by_cursor: (1..pages.len()).map(|index| (cursor(index), index)).collect(), pages }
    }

    /// The first page, or the page of a cursor.
    pub(super) fn get(&self, cursor: Option<&str>) -> Option<&str> {
        let index = cursor.map_or(Some(0), |cursor| self.by_cursor.get(cursor).copied())?;
        Some(&self.pages[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn following_the_cursors_visits_every_item_once() {
        let items = ["1", "2", "3", "4", "5"];
        let pages = Pages::new("tools", &items, Some(2), 9);
        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = format!("{{{}}}", pages.get(cursor.as_deref()).expect("a page"));
            let page: serde_json::Value = serde_json::from_str(&page).expect("JSON");
            seen.push(page["tools"].to_string());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(seen, ["[1,2]", "[3,4]", "[5]"]);
        assert_eq!(pages.get(Some("nope")), None);
        assert_eq!(Pages::new("tools", &[], None, 0).get(None), Some("\"tools\":[]"));
    }
}
