//! Answers to the requests of servers: elicitation, sampling and roots.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value, json};

use rehearse_protocol::RpcError;

/// The error code of a request that ended before it was answered; also that of a user who refuses.
const WITHDRAWN: i64 = -1;

/// The kinds of requests that a server can make (2026-07-28, Multi Round-Trip Requests: Input Requests).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputKind {
    /// `elicitation/create`: input of the user.
    Elicitation,
    /// `sampling/createMessage`: a completion of the model.
    Sampling,
    /// `roots/list`: the folders of the client.
    Roots,
}

/// One answer to a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The result, as it is sent.
    Result(Value),
    /// A JSON-RPC error, which only a legacy server accepts.
    Error(RpcError),
}

/// Prepared answers. Those of one kind are used in order, and the last one is repeated; a request of a kind without
/// answers is not answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerScript {
    /// Answers to `elicitation/create`.
    pub elicitation: Vec<Answer>,
    /// Answers to `sampling/createMessage`.
    pub sampling: Vec<Answer>,
    /// Answers to `roots/list`.
    pub roots: Vec<Answer>,
}

/// The answers of one session, and with them the capabilities that it declares. Clones share the remaining answers.
///
/// ```
/// use rehearse_client::{Answer, AnswerScript, Answers, ServerParams, Target};
/// use serde_json::json;
///
/// let accept = Answer::Result(json!({ "action": "accept", "content": { "city": "Oslo" } }));
/// let script = AnswerScript { elicitation: vec![accept], ..AnswerScript::default() };
/// let answers = Answers::from_script(script, []);
/// let params = ServerParams { answers, ..ServerParams::new("weather", Target::http("https://example.com/mcp")) };
/// # drop(params);
/// ```
#[derive(Clone, Default)]
pub struct Answers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    declared: Vec<InputKind>,
    layers: Mutex<Vec<Layer>>,
    handler: Option<InputHandler>,
}

/// Answers requests that no script answers, for example by asking a user or a model; `None` is no answer. It is called in
/// the order of the server's requests.
pub type InputHandler = Arc<dyn Fn(InputRequest) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send>> + Send + Sync>;

/// A request of a server.
#[derive(Clone, Debug)]
pub struct InputRequest {
    /// What it asks for.
    pub kind: InputKind,
    /// The parameters of the request.
    pub params: Value,
}

/// A script and how many of its answers are used. Of several layers the newest with answers of a kind is used.
#[derive(Default)]
struct Layer {
    number: u64,
    script: AnswerScript,
    used: [usize; InputKind::ALL.len()],
}

/// Answers that take precedence until this is dropped.
#[derive(Debug)]
#[must_use = "the answers are used only while this lives"]
pub struct ScopedAnswers {
    answers: Answers,
    number: u64,
}

impl InputKind {
    /// All kinds.
    pub const ALL: [InputKind; 3] = [InputKind::Elicitation, InputKind::Sampling, InputKind::Roots];

    /// The method of the request, in both eras.
    pub const fn method(self) -> &'static str {
        match self {
            InputKind::Elicitation => "elicitation/create",
            InputKind::Sampling => "sampling/createMessage",
            InputKind::Roots => "roots/list",
        }
    }

    /// The kind that a method requests.
    pub fn from_method(method: &str) -> Option<InputKind> {
        InputKind::ALL.into_iter().find(|kind| kind.method() == method)
    }
}

impl Answer {
    /// The answer to a request whose cause has ended, if the server still waits for one (2025-11-25, Elicitation:
    /// Response Actions).
    pub(crate) fn for_withdrawn(method: &str) -> Answer {
        match InputKind::from_method(method) {
            Some(InputKind::Elicitation) => Answer::Result(json!({ "action": "cancel" })),
            _ => Answer::Error(RpcError::new(WITHDRAWN, "what this was asked for is over")),
        }
    }
}

impl AnswerScript {
    /// The kinds with answers.
    pub fn kinds(&self) -> impl Iterator<Item = InputKind> {
        InputKind::ALL.into_iter().filter(|kind| !self.answers_to(*kind).is_empty())
    }

    fn answers_to(&self, kind: InputKind) -> &[Answer] {
        match kind {
            InputKind::Elicitation => &self.elicitation,
            InputKind::Sampling => &self.sampling,
            InputKind::Roots => &self.roots,
        }
    }
}

impl Answers {
    /// The answers of a script. The kinds in `also` are declared as capabilities too, for [later](Answers::push_scoped)
    /// answers: a legacy session declares its capabilities once.
    pub fn from_script(script: AnswerScript, also: impl IntoIterator<Item = InputKind>) -> Answers {
        let mut declared: Vec<_> = script.kinds().chain(also).collect();
        declared.sort();
        declared.dedup();
        let layers = vec![Layer { script, ..Layer::default() }];
        Answers(Arc::new(Shared { declared, layers: Mutex::new(layers), handler: None }))
    }

    /// The answers of a script, and those of `handler` to all other requests.
    pub fn with_handler(script: AnswerScript, handler: InputHandler) -> Answers {
        let layers = vec![Layer { script, ..Layer::default() }];
        let declared = InputKind::ALL.to_vec();
        Answers(Arc::new(Shared { declared, layers: Mutex::new(layers), handler: Some(handler) }))
    }

    /// Adds answers that take precedence over the present ones.
    pub fn push_scoped(&self, script: AnswerScript) -> ScopedAnswers {
        let mut layers = self.layers();
        let number = layers.last().map_or(0, |layer| layer.number + 1);
        layers.push(Layer { number, script, used: Default::default() });
        drop(layers);
        ScopedAnswers { answers: self.clone(), number }
    }

    /// The answer to a request of this method, if there is one.
    pub(crate) async fn answer(&self, method: &str, params: Value) -> Option<Answer> {
        let kind = InputKind::from_method(method)?;
        match (self.next(kind), &self.0.handler) {
            (None, Some(handler)) => handler(InputRequest { kind, params }).await,
            (answer, _) => answer,
        }
    }

    /// The next prepared answer.
    fn next(&self, kind: InputKind) -> Option<Answer> {
        let mut layers = self.layers();
        let layer = layers.iter_mut().rev().find(|layer| !layer.script.answers_to(kind).is_empty())?;
        let answers = layer.script.answers_to(kind);
        let used = &mut layer.used[kind as usize];
        let answer = answers.get(*used).or(answers.last()).cloned();
        *used += 1;
        answer
    }

    /// Whether the client declares that it answers requests of this method.
    pub(crate) fn declares(&self, method: &str) -> bool {
        method.split('/').next().is_some_and(|capability| self.capabilities().contains_key(capability))
    }

    /// The client's capabilities: every mode of the kinds with answers.
    pub(crate) fn capabilities(&self) -> Map<String, Value> {
        let capability = |kind: &InputKind| match kind {
            InputKind::Elicitation => ("elicitation".to_owned(), json!({ "form": {}, "url": {} })),
            InputKind::Sampling => ("sampling".to_owned(), json!({ "tools": {} })),
            InputKind::Roots => ("roots".to_owned(), json!({})),
        };
        self.0.declared.iter().map(capability).collect()
    }

    fn layers(&self) -> MutexGuard<'_, Vec<Layer>> {
        self.0.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ScopedAnswers {
    fn drop(&mut self) {
        self.answers.layers().retain(|layer| layer.number != self.number);
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").field("declared", &self.0.declared).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(elicitation: &[i64], roots: &[i64]) -> AnswerScript {
        let results = |numbers: &[i64]| numbers.iter().map(|number| Answer::Result(json!(number))).collect();
        AnswerScript { elicitation: results(elicitation), roots: results(roots), ..AnswerScript::default() }
    }

    fn next(answers: &Answers, kind: InputKind) -> Option<Value> {
        match answers.next(kind)? {
            Answer::Result(value) => Some(value),
            Answer::Error(_) => None,
        }
    }

    #[test]
    fn answers_are_used_in_order_and_the_last_one_repeats() {
        let answers = Answers::from_script(script(&[1, 2], &[7]), []);
        let elicited: Vec<_> = (0..4).map(|_| next(&answers.clone(), InputKind::Elicitation)).collect();
        assert_eq!(elicited, [1, 2, 2, 2].map(|number| Some(json!(number))));
        assert_eq!((next(&answers, InputKind::Roots), next(&answers, InputKind::Sampling)), (Some(json!(7)), None));
    }

    #[tokio::test]
    async fn a_respondent_answers_what_no_script_does() {
        let handler: InputHandler = Arc::new(|asked: InputRequest| {
            let answer = (asked.kind == InputKind::Elicitation).then(|| Answer::Result(asked.params["a"].clone()));
            Box::pin(async move { answer })
        });
        let answers = Answers::with_handler(script(&[], &[7]), handler);
        let answer = |method: &'static str| {
            let answers = answers.clone();
            async move { answers.answer(method, json!({ "a": 5 })).await }
        };
        assert_eq!(answer("elicitation/create").await, Some(Answer::Result(json!(5))));
        assert_eq!(answer("roots/list").await, Some(Answer::Result(json!(7))));
        assert_eq!((answer("sampling/createMessage").await, answer("ping").await), (None, None));
        assert_eq!(answers.capabilities().len(), 3);
    }

    #[test]
    fn an_overlay_answers_first_and_leaves_the_others_where_they_were() {
        let answers = Answers::from_script(script(&[1, 2], &[7]), []);
        assert_eq!(next(&answers, InputKind::Elicitation), Some(json!(1)));
        let overlay = answers.push_scoped(script(&[8, 9], &[]));
        assert_eq!(next(&answers, InputKind::Elicitation), Some(json!(8)));
        assert_eq!(next(&answers, InputKind::Roots), Some(json!(7)));
        drop(overlay);
        assert_eq!(next(&answers, InputKind::Elicitation), Some(json!(2)));
    }

    #[test]
    fn only_what_can_be_answered_is_declared() {
        assert_eq!(Value::from(Answers::default().capabilities()), json!({}));
        let answers = Answers::from_script(script(&[1], &[]), [InputKind::Sampling, InputKind::Elicitation]);
        let declared = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} } });
        assert_eq!(Value::from(answers.capabilities()), declared);
    }
}
