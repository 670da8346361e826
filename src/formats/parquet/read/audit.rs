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
    page: Option<DataPage>,
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
            .is_none_or(|page| page.values == self.in_page.count)
        {
            self.end_page()?;
            let page = self.pages.next();
            let why = || format!("`{}` has more values than its pages", self.name);
            self.page = Some(page.ok_or_else(why)?);
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

    /// Returns how each value since the last call compares with its predecessor; empty if no order is declared.
    pub(super) fn take_steps(&mut self) -> Vec<Ordering> {
        let steps = self.sorted.as_mut().map(|sorted| &mut sorted.steps);
        steps.map(std::mem::take).unwrap_or_default()
    }

    fn end_page(&mut self) -> Result<(), String> {
        if let Some(page) = self.page.take() {
            let found = std::mem::take(&mut self.in_page);
            for claimed in page.claims {
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
        let claimed = self.claimed.distinct.map(usize::try_from);
        if distinct.map(Ok) != claimed {
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
