//! Durations as numbers of milliseconds with three decimals, for `#[serde(with)]`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((duration.as_secs_f64() * 1e6).round() / 1e3)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let milliseconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(milliseconds / 1e3).map_err(D::Error::custom)
}
