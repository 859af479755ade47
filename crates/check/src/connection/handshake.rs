//! How the prober opens a session.

use std::time::Duration;

use rehearse_client::PeerVersion;
use rehearse_conformance::{Case, CaseGroup};
use rehearse_protocol::Era;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Answer, LEAST_WAIT, ProbeConnection};
use crate::options::Budget;

/// How long a process may be silent when others have answered, unless they have taken long.
const PASSED_OVER: Duration = Duration::from_secs(5);

/// Ends when other processes of the server have answered their first message long before.
async fn passed_over(budget: &Budget) {
    budget.first_start().await;
    let since = Instant::now();
    while let limit = PASSED_OVER.max(budget.slowest_start() * 10)
        && since.elapsed() < limit
    {
        tokio::time::sleep_until(since + limit).await;
    }
}

impl ProbeConnection {
    /// Opens the session: `initialize` and `notifications/initialized`, or `server/discover`. `Some` is the result.
    pub(crate) async fn handshake(&mut self) -> Option<Value> {
        let answer = self.negotiate().await;
        self.open_session();
        self.is_silent = answer.message.is_none() && !self.wire.is_http();
        if answer.result().is_none() {
            // What was sent to see why says nothing more.
            self.late.clear();
        }
        // Only a process starts anew in each version.
        if self.is_silent && !self.has_answered && !self.wire.is_closed() {
            self.budget.note_hang();
        }
        answer.result().cloned()
    }

    /// The handshake is over; a probe may have sent its messages itself.
    pub(crate) fn open_session(&mut self) {
        self.starting = None;
        self.is_open = true;
    }

    async fn negotiate(&mut self) -> Answer {
        if self.version.era() == Era::Modern {
            let budget = self.budget.clone();
            let answer = tokio::select! {
                answer = self.within(self.options.start_timeout, "server/discover", json!({})) => answer,
                () = passed_over(&budget) => Answer::default(),
            };
            let is_unknown = answer.message.as_ref().is_some_and(|it| it["error"]["code"] == -32601)
                || self.last_head.as_ref().is_some_and(|(status, _)| *status == 404);
            if answer.result().is_some() || !is_unknown {
                return answer;
            }
            let listed = self.list_undiscovered().await.map(|result| json!({ "result": result }));
            return Answer { message: listed.or(answer.message) };
        }
        let params = self.exchange.initialize_params();
        let answer = self.within(self.options.start_timeout, "initialize", params.into()).await;
        let Some(result) = answer.result() else { return answer };
        if let Some(version) = result["protocolVersion"].as_str().and_then(|text| text.parse().ok()) {
            self.version = version;
            self.exchange.set_version(PeerVersion::Known(version));
        }
        self.send(&Case::notification("", CaseGroup::Main, "notifications/initialized", Value::Null)).await;
        answer
    }

    /// What a modern server without `server/discover` would have said there, as far as its lists show it; `None` if it serves
    /// none of them as a modern server does.
    async fn list_undiscovered(&mut self) -> Option<Value> {
        let (mut capabilities, mut meta) = (Map::new(), Value::Null);
        for capability in ["tools", "resources", "prompts"] {
            let limit = self.grace().max(LEAST_WAIT);
            let answer = self.within(limit, &format!("{capability}/list"), json!({})).await;
            answer.message.as_ref()?;
            if let Some(result) = answer.result().filter(|result| result.get("resultType").is_some()) {
                capabilities.insert(capability.to_owned(), json!({}));
                meta = result["_meta"].clone();
            }
        }
        (!capabilities.is_empty()).then(|| json!({ "capabilities": capabilities, "_meta": meta }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_process_is_passed_over_long_after_another_one_has_answered() {
        let budget = Budget::new(Instant::now(), Duration::from_secs(3600));
        let longest = Duration::from_secs(60);
        assert!(tokio::time::timeout(longest, passed_over(&budget)).await.is_err());
        let begun = Instant::now();
        budget.note_start(Duration::from_millis(100));
        passed_over(&budget).await;
        assert_eq!(begun.elapsed(), PASSED_OVER);
        budget.note_start(Duration::from_secs(2));
        passed_over(&budget).await;
        assert_eq!(begun.elapsed(), PASSED_OVER + Duration::from_secs(20));
    }
}
