//! The order of the rows in a row group, and how the file declares it.
//!
//! Engines read less if rows of the same time are next to each other. Without `--sort`, the rows of each
//! group are sorted by creation date, then by identifier; with it, they are already in order.

use ::parquet::file::metadata::SortingColumn;

use super::column_buffer::ColumnBuffer;
use crate::batch::filter::{Fields, Sorting};
use crate::batch::{BATCH_ID, CREATION_DATE};

/// The sort order of rows.
pub(super) struct RowOrder {
    /// The fields that rows are sorted by, each with whether it is descending. Nulls are last.
    keys: Vec<(usize, bool)>,
    /// Whether `--sort` has already sorted the rows.
    is_given: bool,
}

impl RowOrder {
    pub(super) fn new(fields: &Fields, sorting: Option<&Sorting>) -> Self {
        let given = sorting.into_iter().flat_map(|sorting| &sorting.keys);
        let given = given.map(|key| (key.column, key.descending));
        // `--sort` breaks ties in this order, too.
        let all = given.chain([(CREATION_DATE, false), (BATCH_ID, false)]);
        let mut keys: Vec<(usize, bool)> = Vec::new();
        for (column, descending) in all {
            // If this column is not in the file, the keys after it do not describe an order.
            if !fields.columns.contains(&column) {
                break;
            }
            if keys.iter().all(|(known, _)| *known != column) {
                keys.push((column, descending));
            }
        }
        Self {
            keys,
            is_given: sorting.is_some(),
        }
    }

    /// Returns the sort order that the footer declares.
    pub(super) fn declared(&self, columns: &[ColumnBuffer]) -> Option<Vec<SortingColumn>> {
        let place = |column: usize| {
            columns
                .iter()
                .position(|buffer| buffer.column == Some(column))
        };
        let declared = self.keys.iter().filter_map(|(column, descending)| {
            Some(SortingColumn {
                column_idx: i32::try_from(place(*column)?).ok()?,
                descending: *descending,
                nulls_first: false,
            })
        });
        Some(declared.collect()).filter(|keys: &Vec<_>| !keys.is_empty())
    }

    /// Returns the order in which rows must be written.
    pub(super) fn permutation(&self, columns: &[ColumnBuffer], rows: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..rows).collect();
        let find = |column: usize| columns.iter().find(|buffer| buffer.column == Some(column));
        let dates = find(CREATION_DATE).filter(|_| !self.is_given);
        let Some(dates) = dates else {
            return order;
        };
        // No date is as late as a missing one.
        let dates = dates.numbers().map(|date| date.unwrap_or(i64::MAX));
        let dates: Vec<i64> = dates.collect();
        let ids = find(BATCH_ID).map(|ids| ids.texts().collect());
        let ids: Vec<_> = ids.unwrap_or_default();
        order.sort_by(|left, right| {
            let (left, right) = (*left as usize, *right as usize);
            let by_date = dates[left].cmp(&dates[right]);
            by_date.then_with(|| ids.get(left).cmp(&ids.get(right)))
        });
        order
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunks::ChunkPool;
    use super::*;
    use crate::batch::{Batch, COLUMNS};

    fn buffers(columns: &[usize], rows: &[(&str, &str)]) -> Vec<ColumnBuffer> {
        let columns = columns.iter().copied().map(Some);
        let mut buffers: Vec<ColumnBuffer> = columns.map(ColumnBuffer::new).collect();
        let mut pool = ChunkPool::default();
        for (id, date) in rows {
            let json = format!("{{\"batch_id\":\"{id}\",\"batch_creation_date\":{date}}}");
            let batch = Batch::read(&json).batch.expect("a batch");
            for column in &mut buffers {
                assert!(column.add(&batch, &mut pool).is_ok());
            }
        }
        buffers
    }

    fn fields(columns: &[usize]) -> Fields {
        Fields {
            columns: columns.to_vec(),
            named: true,
        }
    }

    #[test]
    fn rows_are_sorted_by_date_then_identifier_and_nulls_come_last() {
        const MORNING: &str = "\"2026-05-01T06:00:00Z\"";
        const NOON: &str = "\"2026-05-01T12:00:00Z\"";
        let both = [BATCH_ID, CREATION_DATE];
        let order = RowOrder::new(&fields(&both), None);
        let permutation = |rows: &[(&str, &str)]| {
            let count = u32::try_from(rows.len()).expect("few rows");
            order.permutation(&buffers(&both, rows), count)
        };
        let mixed = [
            ("d", "null"),
            ("c", NOON),
            ("b", NOON),
            ("a", "null"),
            ("e", MORNING),
        ];
        assert_eq!(permutation(&mixed), [4, 2, 1, 3, 0]);
        assert_eq!(
            permutation(&[("e", MORNING), ("b", NOON), ("a", "null")]),
            [0, 1, 2]
        );
        assert!(permutation(&[]).is_empty());
        // Without identifiers, rows of the same date keep their order.
        let dates = [CREATION_DATE];
        let order = RowOrder::new(&fields(&dates), None);
        let rows = [("c", NOON), ("b", NOON), ("e", MORNING)];
        let permutation = order.permutation(&buffers(&dates, &rows), 3);
        assert_eq!(permutation, [2, 0, 1]);
    }

    #[test]
    fn only_a_true_order_is_declared() {
        let declared = |columns: &[usize], sorting: Option<&str>| {
            let sorting = sorting.map(|word| Sorting::parse(word).expect(word));
            let order = RowOrder::new(&fields(columns), sorting.as_ref());
            let columns = columns.iter().copied().map(Some);
            let columns: Vec<ColumnBuffer> = columns.map(ColumnBuffer::new).collect();
            let declared = order.declared(&columns).unwrap_or_default().into_iter();
            let keys = declared.map(|key| (key.column_idx, key.descending));
            keys.collect::<Vec<_>>()
        };
        let images = COLUMNS
            .iter()
            .position(|column| column.name == "number_of_images")
            .expect("a column");
        let all = [images, BATCH_ID, CREATION_DATE];
        assert_eq!(declared(&all, None), [(2, false), (1, false)]);
        assert_eq!(
            declared(&all, Some("number_of_images:desc")),
            [(0, true), (2, false), (1, false)]
        );
        assert_eq!(
            declared(&all, Some("batch_creation_date:desc")),
            [(2, true), (1, false)]
        );
        assert_eq!(
            declared(&all, Some("batch_id:desc,number_of_images")),
            [(1, true), (0, false), (2, false)]
        );
        assert_eq!(
            declared(&all, Some("number_of_images,crop_type,batch_id")),
            [(0, false)]
        );
        // Sorted by a column that is not in the file, or not sorted at all.
        assert_eq!(declared(&all, Some("crop_type")), []);
        assert_eq!(declared(&[BATCH_ID, images], None), []);
        let images_and_id = [images, BATCH_ID];
        assert_eq!(
            declared(&images_and_id, Some("number_of_images")),
            [(0, false)]
        );
    }
}
