//! Compares the values of a column with everything that the file says about them.

use std::cmp::Ordering;
use std::collections::HashSet;

use ::parquet::schema::types::ColumnDescriptor;
use xxhash_rust::xxh3::xxh3_64;

use super::filter::Filter;
use super::pages::DataPage;
use super::statistics::{Claimed, FoundValues, SortOrder};

/// Compares the values of a column in a row group with the statistics, indexes, filter and sort order.
pub(super) struct ColumnAudit {
    pub(super) name: String,
    /// The definition level of values that are not null.
    pub(super) level: i16,
    order: SortOrder,
    claimed: Claimed,
    pages: std::vec::IntoIter<DataPage>,
    /// The bounds of each page in the column index.
    index: std::vec::IntoIter<Claimed>,
    page: Option<(DataPage, Option<Claimed>)>,
    in_page: FoundValues,
    all: FoundValues,
    distinct: Option<HashSet<u64>>,
    filter: Option<Filter>,
    /// The sort order that the file declares; `None` if the column is not a sort key.
    sorted: Option<Sorted>,
}

/// The declared sort order of a column, and how its values compare.
#[derive(Default)]
pub(super) struct Sorted {
    descending: bool,
    nulls_first: bool,
    /// The previous value, if it is not null, and whether there is one.
    last: Option<Vec<u8>>,
    has_last: bool,
    steps: Vec<Ordering>,
}

impl Sorted {
    pub(super) fn new(descending: bool, nulls_first: bool) -> Self {
        Self {
            descending,
            nulls_first,
            ..Self::default()
        }
    }

    /// Adds the next value, and whether it is in order: `Less` or `Equal` if it is.
    fn add(&mut self, order: SortOrder, value: Option<&[u8]>) {
        let step = match (&self.last, value) {
            _ if !self.has_last => Ordering::Less,
            (None, None) => Ordering::Equal,
            (None, Some(_)) if !self.nulls_first => Ordering::Greater,
            (Some(_), None) if self.nulls_first => Ordering::Greater,
            (Some(last), Some(value)) => match order.compare(last, value) {
                Some(step) if self.descending => step.reverse(),
                Some(step) => step,
                // Values that cannot be compared count as sorted.
                None => Ordering::Less,
            },
            _ => Ordering::Less,
        };
        self.steps.push(step);
        self.has_last = true;
        match value {
            Some(value) => value.clone_into(self.last.get_or_insert_default()),
            None => self.last = None,
        }
    }
}

impl ColumnAudit {
    /// Starts with everything that the file says about the column.
    pub(super) fn new(
        column: &ColumnDescriptor,
        claimed: Claimed,
        pages: Vec<DataPage>,
        index: Vec<Claimed>,
        filter: Option<Filter>,
        sorted: Option<Sorted>,
    ) -> Self {
        Self {
            name: column.path().string(),
            level: column.max_def_level(),
            order: SortOrder::of(column),
            distinct: claimed.distinct.map(|_| HashSet::new()),
            claimed,
            pages: pages.into_iter(),
            index: index.into_iter(),
            page: None,
            in_page: FoundValues::default(),
            all: FoundValues::default(),
            filter,
            sorted,
        }
    }

    /// Adds the next value.
    pub(super) fn add(&mut self, value: Option<&[u8]>) -> Result<(), String> {
        while self
            .page
            .as_ref()
            .is_none_or(|(page, _)| page.values == self.in_page.count)
        {
            self.end_page()?;
            let Some(page) = self.pages.next() else {
                return Err(format!("`{}` has more values than its pages", self.name));
            };
            self.page = Some((page, self.index.next()));
        }
        self.in_page.add(self.order, value);
        if let Some(value) = value {
            if let Some(distinct) = &mut self.distinct {
                distinct.insert(xxh3_64(value));
            }
            if let Some(filter) = &mut self.filter {
                filter.add(value);
            }
        }
        if let Some(sorted) = &mut self.sorted {
            sorted.add(self.order, value);
        }
        Ok(())
    }

    /// Returns how each value since the last call compares with its predecessor; `None` if no order is declared.
    pub(super) fn take_steps(&mut self) -> Option<Vec<Ordering>> {
        let sorted = self.sorted.as_mut()?;
        Some(std::mem::take(&mut sorted.steps))
    }

    fn end_page(&mut self) -> Result<(), String> {
        if let Some((page, index)) = self.page.take() {
            let found = std::mem::take(&mut self.in_page);
            for claimed in [Some(page.claimed), index].into_iter().flatten() {
                let checked = claimed.check(self.order, &found);
                checked.map_err(|why| format!("a page of `{}` has the {why}", self.name))?;
            }
            self.all.merge(self.order, &found);
        }
        Ok(())
    }

    /// Checks the end of the column, which must have `rows` values.
    pub(super) fn finish(mut self, rows: u64) -> Result<(), String> {
        self.end_page()?;
        // Pages without values may follow.
        let is_whole = self.pages.all(|page| page.values == 0) && self.all.count == rows;
        if !is_whole {
            return Err(format!(
                "`{}` has more or fewer rows than the file says",
                self.name
            ));
        }
        let distinct = self.distinct.as_ref().map(HashSet::len);
        let is_distinct = match (self.claimed.distinct, distinct) {
            (Some(claimed), Some(found)) => usize::try_from(claimed) == Ok(found),
            _ => true,
        };
        if !is_distinct {
            return Err(format!(
                "the statistics of `{}` have the wrong number of distinct values",
                self.name
            ));
        }
        if let Some(Err(why)) = self.filter.as_ref().map(Filter::check) {
            return Err(format!("the Bloom filter of `{}` {why}", self.name));
        }
        let checked = self.claimed.check(self.order, &self.all);
        checked.map_err(|why| format!("the statistics of `{}` have the {why}", self.name))
    }
}
