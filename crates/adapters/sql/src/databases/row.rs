//! Rows of any database as JSON.

use serde_json::{Map, Number, Value as Json};
#[cfg(feature = "mysql")]
use sqlx::mysql::MySqlRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Column as _, Row as _, TypeInfo as _, ValueRef as _};

/// Reads a column as the first type that holds its value exactly.
macro_rules! columns {
    ($row:expr, [$($number:ty),+]) => {{
        let mut columns = Map::new();
        for (place, column) in $row.columns().iter().enumerate() {
            let name = column.name().to_owned();
            let raw = $row.try_get_raw(place).map_err(|error| error.to_string())?;
            let kind = raw.type_info().name().to_owned();
            let value = if raw.is_null() {
                Json::Null
            } $(else if let Ok(number) = $row.try_get::<$number, _>(place) {
                Json::from(number)
            })+ else if let Ok(text) = $row.try_get::<String, _>(place) {
                Json::from(text)
            } else if kind == "DECIMAL"
                && let Ok(text) = $row.try_get_unchecked::<String, _>(place)
            {
                decimal(text)
            } else {
                return Err(format!(
                    "the column `{name}` has the type {kind}, which is not read: convert it with CAST"
                ));
            };
            columns.insert(name, value);
        }
        Ok(columns)
    }};
}

pub fn of_sqlite(row: &SqliteRow) -> Result<Map<String, Json>, String> {
    columns!(row, [i64, f64])
}

#[cfg(feature = "mysql")]
pub fn of_mysql(row: &MySqlRow) -> Result<Map<String, Json>, String> {
    columns!(row, [i64, u64, f64, f32])
}

/// A decimal as a number, if that holds all of its digits.
fn decimal(text: String) -> Json {
    match serde_json::from_str::<Number>(&text) {
        Ok(number) if number.to_string() == text => Json::Number(number),
        _ => Json::from(text),
    }
}
