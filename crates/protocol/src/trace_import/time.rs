//! Times of recordings.

use std::time::Duration;

use serde_json::Value;

/// A time of RFC 3339, since 1970.
pub(super) fn instant(text: &str) -> Option<Duration> {
    let (date, time) = text.split_once(['T', ' '])?;
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, "Z"),
    };
    let numbers = |text: &str, separator: char| {
        let parts = text.split(separator).map(|part| part.parse::<i64>().ok());
        parts.collect::<Option<Vec<_>>>()
    };
    let [year, month @ 1..=12, day @ 1..=31] = numbers(date, '-')?[..] else { return None };
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':')?[..] else { return None };
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let east = match offset.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        (sign, offset) => {
            let [hours, minutes] = numbers(offset, ':')?[..] else { return None };
            let minutes = hours * 60 + minutes;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    // Days of the Gregorian calendar, in years that begin in March.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute - east) * 60 + second;
    Some(Duration::from_secs(u64::try_from(seconds).ok()?) + Duration::from_secs_f64(fraction))
}

/// A time or a duration in units of which a second has so many.
pub(super) fn duration(value: &Value, per_second: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value.as_f64()? / per_second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_fraction_and_offset() {
        let at = |text: &str| instant(text).map(|time| time.as_millis());
        assert_eq!(at("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(at("2026-08-08T10:00:00.250Z"), Some(1_786_183_200_250));
        assert_eq!(at("2026-08-08T12:00:00.25+02:00"), at("2026-08-08T10:00:00.250Z"));
        assert_eq!(at("2024-02-29 23:59:59"), Some(1_709_251_199_000));
        for wrong in ["", "2026-08-08", "2026-13-08T10:00:00Z", "10:00:00", "a-b-cTd", "2026-08-08T10:00:00+é"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
