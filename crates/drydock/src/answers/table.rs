//! Tables: what `kubectl get` shows, computed by the server.

use super::columns::{self, Column};
use super::encode::{Include, metadata_of};
use crate::kinds::Kind;
use crate::object::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A table of objects.
pub(crate) fn table<'a>(
    kind: &Kind,
    objects: impl Iterator<Item = &'a Object>,
    include: Include,
    metadata: Value,
    now: Timestamp,
) -> Value {
    let columns = columns::of(kind);
    let definitions: Vec<Value> = columns.iter().map(Column::definition).collect();
    let rows: Vec<Value> = objects
        .map(|object| {
            let cells: Vec<Value> = columns.iter().map(|column| column.cell(object, now)).collect();
            let mut row = Map::new();
            row.insert("cells".to_owned(), Value::Array(cells));
            match include {
                Include::Nothing => None,
                Include::Metadata => row.insert("object".to_owned(), metadata_of(object)),
                Include::Object => row.insert("object".to_owned(), object.clone().into_value()),
            };
            Value::Object(row)
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions, "rows": rows})
}

/// A time span as `kubectl` shows it: `5s`, `3m12s`, `2d4h`.
pub(crate) fn human_duration(seconds: i64) -> String {
    let with_rest = |big: i64, big_unit: &str, rest: i64, rest_unit: &str| {
        if rest == 0 { format!("{big}{big_unit}") } else { format!("{big}{big_unit}{rest}{rest_unit}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => with_rest(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with_rest(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with_rest(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => with_rest(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// How long ago something was, or `<unknown>`.
pub(crate) fn age(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => human_duration(now.as_second() - time.as_second()),
        Err(_) => "<unknown>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_kubectl() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (315_360_000, "10y"),
        ] {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }
}
