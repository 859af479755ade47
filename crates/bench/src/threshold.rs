//! Conditions on what was measured, such as `p99 > 50ms`.

use std::{fmt, str::FromStr, time::Duration};

use crate::comparison::measure_of;
use rehearse_report::bench::{BenchResult, Measure, TargetResult, ThresholdResult, readable};

/// A condition on a measure.
///
/// ```
/// use std::time::Duration;
///
/// use rehearse_bench::Threshold;
/// use rehearse_report::bench::Measure;
///
/// let mut measure = Measure::named("call echo");
/// measure.latency.record(Duration::from_millis(60));
/// let threshold: Threshold = "p99 > 50ms".parse()?;
/// assert!(threshold.holds(&measure));
/// # Ok::<(), rehearse_bench::ThresholdError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    figure: Figure,
    operator: Operator,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// Seconds, requests per second, or a share from 0 to 1.
    Value(f64),
    /// So many times the same figure of an earlier result.
    Base(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Percentile(f64),
    Mean,
    Max,
    Rate,
    Errors,
    Late,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}; write a figure, a comparison and a bound: 'p99 > 50ms', 'errors > 0.1%', 'rate < 100', 'p95 > base*1.15'"
)]
pub struct ThresholdError(String);

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Threshold, ThresholdError> {
        let error = |why: &str| ThresholdError(why.to_owned());
        let at = text.find(['<', '>']).ok_or_else(|| error("there is no < or >"))?;
        let (figure, rest) = (text[..at].trim(), &text[at..]);
        let (operator, bound) = match () {
            () if rest.starts_with("<=") => (Operator::LessOrEqual, &rest[2..]),
            () if rest.starts_with(">=") => (Operator::GreaterOrEqual, &rest[2..]),
            () if rest.starts_with('<') => (Operator::Less, &rest[1..]),
            () => (Operator::Greater, &rest[1..]),
        };
        let figure = match figure {
            "mean" => Figure::Mean,
            "max" => Figure::Max,
            "rate" => Figure::Rate,
            "errors" => Figure::Errors,
            "late" => Figure::Late,
            other => {
                let percent = other.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok());
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                let unknown = || format!("unknown figure {other:?}: use p50, p99.9, mean, max, rate, errors or late");
                Figure::Percentile(percent.ok_or_else(|| ThresholdError(unknown()))?)
            }
        };
        let bound = match bound.trim().strip_prefix("base") {
            Some(rest) => Bound::Base(factor(rest).ok_or_else(|| error("what follows `base` is not *NUMBER"))?),
            None => Bound::Value(figure.bound(bound.trim()).map_err(ThresholdError)?),
        };
        Ok(Threshold { text: text.trim().to_owned(), figure, operator, bound })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// By what a base is multiplied: `*1.15`, or nothing for 1.
fn factor(text: &str) -> Option<f64> {
    match text.trim() {
        "" => Some(1.0),
        text => text.strip_prefix('*')?.trim().parse().ok().filter(|factor| *factor > 0.0 && f64::is_finite(*factor)),
    }
}

impl Figure {
    /// A bound for the figure: a duration, a share, or a number.
    fn bound(self, text: &str) -> Result<f64, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        let invalid = |wanted: &str| format!("{text:?} is not {wanted}");
        match self {
            Figure::Rate => number(text.trim_end_matches("/s")).ok_or_else(|| invalid("a number per second")),
            Figure::Errors | Figure::Late => match text.strip_suffix('%') {
                Some(percent) => number(percent).map(|percent| percent / 100.0),
                None => number(text).filter(|share| *share <= 1.0),
            }
            .ok_or_else(|| invalid("a share, such as 0.1%")),
            Figure::Percentile(_) | Figure::Mean | Figure::Max => {
                let units = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
                let found = units.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
                let seconds = found.and_then(|(value, seconds)| Some(number(value)? * seconds));
                seconds.ok_or_else(|| invalid("a duration, such as 50ms"))
            }
        }
    }

    fn of(self, measure: &Measure) -> f64 {
        match self {
            Figure::Percentile(percent) => measure.latency.percentile(percent).as_secs_f64(),
            Figure::Mean => measure.latency.mean().as_secs_f64(),
            Figure::Max => measure.latency.max().as_secs_f64(),
            Figure::Rate => measure.rate(),
            Figure::Errors => measure.error_share(),
            Figure::Late => match measure.requests() {
                0 => 0.0,
                all => measure.late as f64 / all as f64,
            },
        }
    }
}

/// Applies the conditions of `--fail-if` to all measures of a benchmark, and gives the verdict. A condition with `base` is
/// about an earlier result. It takes the place of the comparison with that, and is not applied to what the base does not
/// have.
pub fn judge(thresholds: &[Threshold], base: Option<&BenchResult>, result: &mut BenchResult) {
    let measures = result.targets.iter().flat_map(|target| target.measures.iter().map(move |it| (target, it)));
    let of = |(target, measure): (&TargetResult, &Measure)| -> Vec<_> {
        let base = base.and_then(|base| measure_of(base, &target.name, &measure.name));
        thresholds.iter().filter_map(|threshold| threshold.judge(&target.name, measure, base)).collect()
    };
    let judged: Vec<_> = measures.flat_map(of).collect();
    if thresholds.iter().any(Threshold::has_base) {
        result.comparisons.iter_mut().for_each(|comparison| comparison.is_gate = false);
    }
    result.thresholds.extend(judged);
    result.conclude();
}

impl Threshold {
    /// Whether it needs an earlier result.
    pub fn has_base(&self) -> bool {
        matches!(self.bound, Bound::Base(_))
    }

    /// Whether the condition is true. Where nothing has an answer, no condition on latencies is; nor is one that needs an
    /// earlier result.
    pub fn holds(&self, measure: &Measure) -> bool {
        let Bound::Value(bound) = self.bound else { return false };
        let is_latency = matches!(self.figure, Figure::Percentile(_) | Figure::Mean | Figure::Max);
        if is_latency && measure.latency.count() == 0 {
            return false;
        }
        let value = self.figure.of(measure);
        match self.operator {
            Operator::Less => value < bound,
            Operator::LessOrEqual => value <= bound,
            Operator::Greater => value > bound,
            Operator::GreaterOrEqual => value >= bound,
        }
    }

    /// The condition without `base`, which is this measure.
    fn over(&self, base: &Measure) -> Threshold {
        let bound = match self.bound {
            Bound::Base(factor) => Bound::Value(factor * self.figure.of(base)),
            bound => bound,
        };
        Threshold { bound, ..self.clone() }
    }

    /// What was measured, as text.
    pub fn found(&self, measure: &Measure) -> String {
        let name = self.text.split(['<', '>']).next().unwrap_or_default().trim();
        let value = self.figure.of(measure);
        match self.figure {
            Figure::Rate => format!("{name} {value:.1}"),
            Figure::Errors | Figure::Late => format!("{name} {:.2} %", 100.0 * value),
            _ if measure.latency.count() == 0 => format!("no {name}: nothing was answered"),
            _ => format!("{name} {}", readable(Duration::from_secs_f64(value))),
        }
    }

    /// The result of `--fail-if` for a measure. Without any answer it is met: silence is no pass.
    fn judge(&self, target: &str, measure: &Measure, base: Option<&Measure>) -> Option<ThresholdResult> {
        let base = base.filter(|base| self.has_base() && base.latency.count() > 0);
        if self.has_base() && base.is_none() {
            return None;
        }
        let is_silent = measure.latency.count() == 0;
        let of_base = base.map(|base| format!("; base: {}", self.found(base))).unwrap_or_default();
        Some(ThresholdResult {
            expression: self.to_string(),
            target: target.to_owned(),
            measure: measure.name.clone(),
            found: format!("{}{of_base}", self.found(measure)),
            is_met: is_silent || base.map_or_else(|| self.holds(measure), |base| self.over(base).holds(measure)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure() -> Measure {
        let mut measure = Measure { seconds: 2.0, ..Measure::named("call x") };
        (1..=99).for_each(|ms| measure.latency.record(Duration::from_millis(ms)));
        measure.errors.insert("isError".to_owned(), 1);
        measure
    }

    #[test]
    fn a_condition_is_read_and_holds() {
        let holds = |text: &str| text.parse::<Threshold>().expect(text).holds(&measure());
        for text in
            ["p50 > 40ms", "p99.9<0.2s", "max >= 90ms", "mean < 51000us", "rate >= 49", "errors >= 1%", "late <= 0"]
        {
            assert!(holds(text), "{text}");
        }
        for text in ["p50 > 60ms", "rate < 49/s", "errors > 1%", "errors > 0.5"] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_explained() {
        let error = |text: &str| text.parse::<Threshold>().expect_err(text).0;
        assert_eq!(error("p99 = 5ms"), "there is no < or >");
        assert!(error("p101 < 5ms").starts_with("unknown figure \"p101\""));
        assert_eq!(error("p99 < 5"), "\"5\" is not a duration, such as 50ms");
        assert_eq!(error("errors > 5"), "\"5\" is not a share, such as 0.1%");
        assert_eq!(error("rate > -1"), "\"-1\" is not a number per second");
        assert_eq!(error("p99 > base+1"), "what follows `base` is not *NUMBER");
    }

    #[test]
    fn a_condition_with_a_base_is_about_the_same_measure_of_an_earlier_result() {
        let base = measure();
        let mut slower = measure();
        (1..=99).for_each(|_| slower.latency.record(Duration::from_millis(60)));
        let judged = |text: &str, base: Option<&Measure>| {
            let threshold: Threshold = text.parse().expect(text);
            threshold.judge("x", &slower, base).map(|judged| judged.is_met)
        };
        assert_eq!(judged("p50 > base*1.15", Some(&base)), Some(true));
        assert_eq!(judged("p50 > base * 1.25", Some(&base)), Some(false));
        assert_eq!(judged("rate < base", Some(&base)), Some(false));
        assert_eq!(judged("p50 > base", None), None);
        assert_eq!(judged("p50 > base", Some(&Measure::named("call x"))), None);
    }

    #[test]
    fn silence_is_no_pass() {
        let threshold: Threshold = "p99 > 50ms".parse().expect("a condition");
        assert!(threshold.judge("x", &Measure::named("call x"), None).expect("judged").is_met);
        assert!(!threshold.holds(&Measure::named("call x")));
    }
}
