//! Compares the page indexes of a column with its pages.

use std::cmp::Ordering;

use super::node::{Node, damaged};
use super::pages::DataPage;
use super::statistics::{Claimed, SortOrder};
use crate::formats::record::ReadError;

/// Reads the column index; returns the statistics of each page.
pub(super) fn column_index(
    index: &Node,
    order: SortOrder,
    pages: &[DataPage],
) -> Result<Vec<Claimed>, ReadError> {
    let wrong = || damaged("the column index does not match its pages");
    let (empty, least, greatest) = (index.list(1), index.list(2), index.list(3));
    let nulls = index.list(5);
    let fits = [empty.len(), least.len(), greatest.len()] == [pages.len(); 3]
        && (nulls.is_empty() || nulls.len() == pages.len());
    if !fits {
        return Err(wrong());
    }
    let mut claims = Vec::new();
    let mut bounds: Vec<[&[u8]; 2]> = Vec::new();
    for (place, page) in pages.iter().enumerate() {
        let count = match nulls.get(place) {
            Some(Node::Int(_, count)) => Some(*count),
            Some(_) => return Err(wrong()),
            None => None,
        };
        match (&empty[place], &least[place], &greatest[place]) {
            (Node::Bool(true), _, _) => {
                let all = i64::try_from(page.values).map_err(|_| wrong())?;
                let mut claimed = Claimed::of_nulls(count);
                claimed.expect_nulls(all).map_err(|_| wrong())?;
                claims.push(claimed);
            }
            (Node::Bool(false), Node::Bytes(least), Node::Bytes(greatest)) => {
                bounds.push([least, greatest]);
                claims.push(Claimed::of_index(least, greatest, count));
            }
            _ => return Err(wrong()),
        }
    }
    let wrong_order = match index.int(4) {
        Some(1) => Some(Ordering::Greater),
        Some(2) => Some(Ordering::Less),
        Some(0) => None,
        _ => return Err(wrong()),
    };
    let is_sorted = |pair: &[[&[u8]; 2]]| {
        (0..2).all(|side| order.compare(pair[0][side], pair[1][side]) != wrong_order)
    };
    if wrong_order.is_some() && order != SortOrder::Undefined && !bounds.windows(2).all(is_sorted) {
        return Err(damaged(
            "the column index says that its pages are sorted, but they are not",
        ));
    }
    Ok(claims)
}

/// Compares the offset index with the pages.
pub(super) fn check_offset_index(index: &Node, pages: &[DataPage]) -> Result<(), ReadError> {
    let locations = index.list(1);
    let mut row = 0;
    let fits = |(page, location): (&DataPage, &Node)| {
        let expected = [page.offset, page.size, row].map(Some);
        row += page.values;
        [1, 2, 3].map(|id| location.size(id)) == expected
    };
    if locations.len() == pages.len() && pages.iter().zip(locations).all(fits) {
        Ok(())
    } else {
        Err(damaged("the offset index does not point to its pages"))
    }
}
