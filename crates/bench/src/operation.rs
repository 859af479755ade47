//! The kinds of requests of a run, and what a valid answer to each is.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rehearse_protocol::{Id, Message, Operation, Version};
use serde::{Deserialize, de::IgnoredAny};

use crate::request::RequestTemplate;

/// One kind of request.
pub(crate) struct MeasuredOperation {
    /// The name of its measure.
    pub(crate) title: String,
    pub(crate) template: RequestTemplate,
    weight: u32,
    /// The hash of the last valid result: most results are equal, and are looked at once.
    valid: AtomicU64,
    /// How many items the first result had.
    items: OnceLock<usize>,
    /// What the first error said.
    error: OnceLock<String>,
}

/// The operations in the order in which they are sent, again and again.
pub(crate) struct Mix {
    pub(crate) operations: Vec<MeasuredOperation>,
    order: Vec<usize>,
}

/// The members of a result that say whether it is one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultMembers {
    #[serde(default)]
    is_error: bool,
    result_type: Option<String>,
    #[serde(default)]
    content: Vec<IgnoredAny>,
    #[serde(default)]
    contents: Vec<IgnoredAny>,
    #[serde(default)]
    messages: Vec<IgnoredAny>,
    #[serde(default)]
    tools: Vec<IgnoredAny>,
}

/// What is wrong with an answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidAnswer {
    #[error("an answer that is not a JSON-RPC response")]
    NoResponse,
    #[error("error {0}")]
    Rpc(i64),
    #[error("an answer with another id")]
    Id,
    #[error("a result of another shape")]
    Shape,
    #[error("isError")]
    ToolError,
    #[error("resultType {0}")]
    ResultType(String),
    #[error("a result with another number of items than the first, {0}")]
    Items(usize),
}

impl MeasuredOperation {
    pub(crate) fn new(request: Operation, weight: u32, version: Version) -> MeasuredOperation {
        let (title, template) = (request.title(), RequestTemplate::new(request, version));
        MeasuredOperation {
            title,
            template,
            weight: weight.max(1),
            valid: AtomicU64::new(0),
            items: OnceLock::new(),
            error: OnceLock::new(),
        }
    }

    /// What the first error said, if it said something.
    pub(crate) fn error(&self) -> Option<&String> {
        self.error.get().filter(|text| !text.is_empty())
    }

    /// Checks an answer to the request with this id.
    ///
    /// # Errors
    /// What is wrong with it: the id, an error, or a result that is none. A rate of such answers is no rate.
    pub(crate) fn check(&self, reply: &[u8], id: u64) -> Result<(), InvalidAnswer> {
        let Ok(Message::Response(response)) = Message::parse(reply) else { return Err(InvalidAnswer::NoResponse) };
        let raw = response.outcome.map_err(|error| {
            self.error.get_or_init(|| error.message.clone());
            InvalidAnswer::Rpc(error.code)
        })?;
        if response.id != Some(Id::Number(id.into())) {
            return Err(InvalidAnswer::Id);
        }
        let mut hasher = DefaultHasher::new();
        raw.get().hash(&mut hasher);
        let hash = hasher.finish();
        if self.valid.load(Ordering::Relaxed) == hash {
            return Ok(());
        }
        let result: ResultMembers = serde_json::from_str(raw.get()).map_err(|_| InvalidAnswer::Shape)?;
        if result.is_error {
            self.error.get_or_init(|| first_text(raw.get()));
            return Err(InvalidAnswer::ToolError);
        }
        if let Some(kind) = result.result_type.filter(|kind| kind != "complete") {
            return Err(InvalidAnswer::ResultType(kind));
        }
        let items = result.content.len() + result.contents.len() + result.messages.len() + result.tools.len();
        let first = *self.items.get_or_init(|| items);
        if items != first {
            return Err(InvalidAnswer::Items(first));
        }
        self.valid.store(hash, Ordering::Relaxed);
        Ok(())
    }
}

/// The first text of a result; empty if it has none.
fn first_text(result: &str) -> String {
    let result: serde_json::Value = serde_json::from_str(result).unwrap_or_default();
    result["content"].as_array().into_iter().flatten().find_map(|it| it["text"].as_str()).unwrap_or_default().to_owned()
}

impl Mix {
    /// Spreads the operations: of weights 3 and 1 the order is a, a, b, a.
    pub(crate) fn new(operations: Vec<MeasuredOperation>) -> Mix {
        let all: u32 = operations.iter().map(|it| it.weight).sum();
        let mut sent = vec![0_u32; operations.len()];
        let mut order = Vec::new();
        for place in 1..=all {
            // The one that is furthest behind its share.
            let behind = |at: &usize| {
                i64::from(operations[*at].weight) * i64::from(place) - i64::from(sent[*at]) * i64::from(all)
            };
            let Some(next) = (0..operations.len()).max_by_key(|at| (behind(at), std::cmp::Reverse(*at))) else { break };
            sent[next] += 1;
            order.push(next);
        }
        Mix { operations, order }
    }

    /// The place of the operation of the request with this number.
    pub(crate) fn pick(&self, number: u64) -> usize {
        self.order[(number % self.order.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(weight: u32) -> MeasuredOperation {
        MeasuredOperation::new(Operation::call("x", None), weight, Version::LATEST)
    }

    #[test]
    fn operations_are_spread_by_their_weights() {
        let mix = Mix::new(vec![operation(3), operation(1)]);
        let order: Vec<_> = (0..8).map(|number| mix.pick(number)).collect();
        assert_eq!(order, [0, 0, 1, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn only_a_result_like_the_first_is_valid() {
        let operation = operation(1);
        let check = |reply: &str| operation.check(reply.as_bytes(), 7);
        let of = |id: u32, rest: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}}}"#);
        let good = of(7, r#""result":{"content":[{"type":"text","text":"a"}]}"#);
        assert_eq!(check(&good), Ok(()));
        assert_eq!(check(&good), Ok(()));
        assert_eq!(check(&of(7, r#""result":{"content":[{"type":"text","text":"b"}],"isError":false}"#)), Ok(()));
        let wrong = [
            (of(8, r#""result":{"content":[1]}"#), "an answer with another id"),
            (of(7, r#""result":{"content":[{"text":"no such file"}],"isError":true}"#), "isError"),
            (of(7, r#""result":{"content":[1,2]}"#), "a result with another number of items than the first, 1"),
            (of(7, r#""result":{"resultType":"input_required"}"#), "resultType input_required"),
            (of(7, r#""result":{"content":5}"#), "a result of another shape"),
            (of(7, r#""error":{"code":-32602,"message":"no"}"#), "error -32602"),
            ("{".to_owned(), "an answer that is not a JSON-RPC response"),
        ];
        for (reply, error) in wrong {
            assert_eq!(check(&reply).map_err(|error| error.to_string()), Err(error.to_owned()), "{reply}");
        }
        assert_eq!(operation.error().map(String::as_str), Some("no such file"));
    }
}
