//! The types of the columns, and how they are encoded.

use std::sync::Arc;

use ::parquet::basic::{
    Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::SortingColumn;
use ::parquet::file::properties::{BloomFilterPosition, WriterProperties};
use ::parquet::schema::types::{ColumnPath, Type};

use super::column_buffer::ColumnBuffer;
use crate::batch::{BATCH_ID, COLUMNS, CREATION_DATE, FieldType};
use crate::formats::record::EXTRA;

/// DECIMAL(18,2): the most digits that fit into 64 bits.
const PRECISION: i32 = 18;
const SCALE: i32 = 2;

/// The highest false positive rate of the Bloom filter of identifiers.
const FALSE_POSITIVES: f64 = 0.01;

impl ColumnBuffer {
    pub(super) fn describe(&self) -> Result<Arc<Type>, ParquetError> {
        let kind = self.kind();
        let (physical, logical) = match kind {
            FieldType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            FieldType::Integer => (Physical::INT64, None),
            FieldType::Decimal => {
                let logical = LogicalType::decimal(SCALE, PRECISION);
                (Physical::INT64, Some(logical))
            }
            FieldType::Date => {
                let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
                (Physical::INT64, Some(logical))
            }
            FieldType::Boolean => (Physical::BOOLEAN, None),
        };
        let builder = Type::primitive_type_builder(self.name(), physical)
            .with_logical_type(logical)
            .with_repetition(if self.is_required() {
                Repetition::REQUIRED
            } else {
                Repetition::OPTIONAL
            });
        let builder = if kind == FieldType::Decimal {
            builder.with_precision(PRECISION).with_scale(SCALE)
        } else {
            builder
        };
        builder.build().map(Arc::new)
    }
}

pub(super) fn properties(
    columns: &[ColumnBuffer],
    sorted_by: Option<Vec<SortingColumn>>,
    group_rows: u32,
) -> WriterProperties {
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let id = ColumnPath::from(COLUMNS[BATCH_ID].name);
    // The filter shrinks to the size that the rows of its group need. It is written after them, so that only
    // one is in memory.
    let properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_sorting_columns(sorted_by)
        .set_column_bloom_filter_fpp(id.clone(), FALSE_POSITIVES)
        .set_column_bloom_filter_max_ndv(id, group_rows.into())
        .set_bloom_filter_position(BloomFilterPosition::AfterRowGroup);
    // A dictionary does not help a column of distinct values.
    let distinct = columns.iter().map(ColumnBuffer::name).filter(|name| {
        let dates = COLUMNS[CREATION_DATE].name;
        matches!(*name, "batch_id" | "analysis_link" | EXTRA) || *name == dates
    });
    let plain = |properties: ::parquet::file::properties::WriterPropertiesBuilder, name: &str| {
        properties.set_column_dictionary_enabled(ColumnPath::from(name), false)
    };
    distinct.fold(properties, plain).build()
}
