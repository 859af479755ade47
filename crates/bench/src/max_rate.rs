//! The highest rate at which a condition holds: doubled until it breaks, then halved.

use std::time::Duration;

use rehearse_report::bench::{Latencies, Measure, RateStep, TargetResult};

use crate::{
    load::Loader,
    options::{BenchOptions, Extent},
    threshold::Threshold,
};

/// The first rate.
const FIRST: f64 = 10.0;
/// The highest rate that is tried.
const HIGHEST: f64 = 1e6;
/// How often the interval between a rate that held and one that did not is halved.
const HALVINGS: usize = 5;
/// The part of the requests that are due which must be answered: a server that falls behind has reached its highest rate.
const ANSWERED: f64 = 0.95;
/// The length of a step, of an extent in requests.
const STEP: Duration = Duration::from_secs(2);

/// Searches; the steps and the rate are in the result. Returns how much later than planned requests became due.
pub(crate) async fn search(
    name: &str,
    loader: &mut Loader,
    condition: &Threshold,
    options: &BenchOptions,
    result: &mut TargetResult,
) -> Latencies {
    let step = match options.extent {
        Extent::Duration(whole) => whole,
        Extent::Requests(_) => STEP,
    };
    let mut lag = Latencies::default();
    let (mut held, mut broken) = (0.0, None);
    let mut rate = options.rate.unwrap_or(FIRST);
    let mut halvings = 0;
    while halvings < HALVINGS && rate <= HIGHEST && !loader.is_over() {
        options.progress.begin(format!("{name}: {rate:.0} per second"));
        let measured = loader.run(Extent::Duration(step), Some(rate), 1).await;
        measured.lag.iter().for_each(|later| lag.merge(later));
        let mut sum = Measure::named("all requests");
        for measure in &measured.measures {
            let seconds = sum.seconds;
            sum.merge(measure);
            sum.seconds = seconds.max(measure.seconds);
        }
        sum.slices.clear();
        let answered = sum.rate();
        let holds = condition.holds(&sum) && answered >= rate * ANSWERED;
        result.steps.push(RateStep { rate, answered, found: condition.found(&sum), holds });
        match holds {
            true => {
                held = rate;
                result.max_rate = Some(rate);
                result.measures = vec![sum];
            }
            false => broken = Some(rate),
        }
        rate = match broken {
            None => held * 2.0,
            Some(broken) => {
                halvings += 1;
                f64::midpoint(held, broken)
            }
        };
    }
    lag
}
