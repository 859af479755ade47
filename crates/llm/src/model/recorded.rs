//! Answers of models, kept in a folder so that they can be played again.
//!
//! A recorded answer is one file of JSON for each request: what was asked, and the answer. A model that finds its request
//! in the folder does not ask the provider. To play them needs no key, and the answers are the same each time.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tokio::sync::Mutex as AsyncMutex;

use super::{Budget, HttpModel, ModelError, Price, Request, Response};
use rehearse_document::text::shortened;
use rehearse_system::private;

/// The version of the format of the files.
const FORMAT: u32 = 1;
/// How many bytes of the digest are in the name of a file.
const NAME_LENGTH: usize = 8;
/// Makes the names of temporary files different.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// How many characters of a value a message shows.
const EXCERPT: usize = 80;

/// A folder of recorded answers, with a folder for each model.
#[derive(Debug)]
pub struct RecordedAnswers {
    folder: PathBuf,
    /// What was read or written, by the name of the model.
    known: Mutex<BTreeMap<String, Vec<Arc<RecordedAnswer>>>>,
    /// What is being asked: another one with the same question waits, and plays the answer.
    asked: Mutex<BTreeMap<PathBuf, Arc<AsyncMutex<()>>>>,
}

/// A file for an answer that is still to come.
struct NewAnswer {
    path: PathBuf,
    temporary: PathBuf,
}

/// One answer, as it is in its file.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedAnswer {
    format: u32,
    request: Json,
    response: Response,
    #[serde(skip)]
    path: PathBuf,
}

/// A model of a provider whose answers are recorded, and which plays those that are.
#[derive(Debug)]
pub struct RecordedModel {
    /// The name in the scenario or config.
    pub name: String,
    /// The API and the name at the provider, such as `anthropic:claude-sonnet-4-5`.
    pub id: String,
    /// The provider. Without one only recorded answers are there.
    pub live: Option<Arc<HttpModel>>,
    /// Why there is no provider, such as a missing key.
    pub missing: String,
    pub recorded: Option<Arc<RecordedAnswers>>,
    pub budget: Option<Arc<Budget>>,
    pub price: Option<Price>,
    /// The number of the run, from 1: the same question has another answer in each.
    pub run: u32,
}

impl RecordedAnswers {
    /// A folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> RecordedAnswers {
        RecordedAnswers { folder: folder.into(), known: Mutex::default(), asked: Mutex::default() }
    }

    fn folder_of(&self, model: &str) -> PathBuf {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        let name: String = model.chars().map(|it| if is_plain(it) { it } else { '_' }).collect();
        // Never `..`, and no hidden folder.
        self.folder.join(if name.starts_with('.') { name.replacen('.', "_", 1) } else { name })
    }

    /// All answers of a model.
    ///
    /// # Errors
    /// A file cannot be read, or is none of ours.
    fn all(&self, model: &str) -> Result<Vec<Arc<RecordedAnswer>>, ModelError> {
        let mut known = self.known.lock();
        if let Some(all) = known.get(model) {
            return Ok(all.clone());
        }
        let folder = self.folder_of(model);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => {
                entries.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&folder, error.to_string()))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(&folder, error.to_string())),
        };
        let mut paths: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let read = paths.into_iter().map(|path| {
            let failed = |why: String| failed(&path, format!("{why}; delete the file to ask again"));
            // To read a pipe could take for ever.
            let is_file = fs::metadata(&path).map_err(|error| failed(error.to_string()))?.is_file();
            if !is_file {
                return Err(failed("it is no regular file".to_owned()));
            }
            let bytes = fs::read(&path).map_err(|error| failed(error.to_string()))?;
            let json: Json = serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))?;
            if json["format"] != FORMAT {
                return Err(failed(format!(
                    "its format is {}, and this version of rehearse reads {FORMAT}",
                    json["format"]
                )));
            }
            let answer: RecordedAnswer = serde_json::from_value(json).map_err(|error| failed(error.to_string()))?;
            Ok(Arc::new(RecordedAnswer { path, ..answer }))
        });
        let all = read.collect::<Result<Vec<_>, _>>()?;
        Ok(known.entry(model.to_owned()).or_insert(all).clone())
    }

    /// The file for an answer. That it can be written is known before the question.
    ///
    /// # Errors
    /// It cannot be written.
    fn create(&self, model: &str, request: &Json) -> Result<NewAnswer, ModelError> {
        let folder = self.folder_of(model);
        let name = file_name(request);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!("{name}.{}-{unique}.new", std::process::id()));
        // An answer may hold what is for its owner alone.
        let created = fs::create_dir_all(&folder).and_then(|()| private::create_new(&temporary));
        created.map_err(|error| failed(&folder, format!("cannot write: {error}")))?;
        Ok(NewAnswer { path: folder.join(format!("{name}.json")), temporary })
    }

    /// Keeps an answer. The file is whole or not there.
    fn add(&self, model: &str, new: &NewAnswer, request: Json, response: &Response) -> Result<(), ModelError> {
        let answer = RecordedAnswer { format: FORMAT, request, response: response.clone(), path: new.path.clone() };
        let failed = |why: String| failed(&new.path, format!("cannot write: {why}"));
        let text = serde_json::to_string_pretty(&answer).map_err(|error| failed(error.to_string()))?;
        fs::write(&new.temporary, text + "\n")
            .and_then(|()| fs::rename(&new.temporary, &new.path))
            .map_err(|error| failed(error.to_string()))?;
        self.known.lock().entry(model.to_owned()).or_default().push(Arc::new(answer));
        Ok(())
    }

    /// The lock of a question.
    fn question(&self, model: &str, request: &Json) -> Arc<AsyncMutex<()>> {
        self.asked.lock().entry(self.folder_of(model).join(file_name(request))).or_default().clone()
    }
}

impl Drop for NewAnswer {
    fn drop(&mut self) {
        // It is not there any more if the answer came.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// The name of the file for a request, without its ending.
fn file_name(request: &Json) -> String {
    let digest = digest(&SHA256, request.to_string().as_bytes());
    digest.as_ref().iter().take(NAME_LENGTH).fold(String::new(), |name, byte| format!("{name}{byte:02x}"))
}

fn failed(path: &Path, why: String) -> ModelError {
    ModelError::RecordedAnswer { path: path.display().to_string(), why }
}

impl RecordedModel {
    /// The recorded answer, or that of the provider, which is recorded.
    ///
    /// # Errors
    /// Nothing is recorded for this request and there is no provider, the budget is used up, or the provider fails.
    pub async fn generate(&self, request: &Request<'_>) -> Result<Response, ModelError> {
        let asked = self.key(request);
        let Some(recorded) = &self.recorded else { return self.ask(request).await };
        let question = recorded.question(&self.name, &asked);
        let _one_at_a_time = question.lock().await;
        let known = recorded.all(&self.name)?;
        if let Some(answer) = known.iter().find(|it| it.request == asked) {
            return Ok(answer.response.clone());
        }
        if self.live.is_none() {
            return Err(self.not_recorded(&asked, &known));
        }
        let new = recorded.create(&self.name, &asked)?;
        let response = self.ask(request).await?;
        recorded.add(&self.name, &new, asked, &response)?;
        Ok(response)
    }

    /// The answer of the provider.
    async fn ask(&self, request: &Request<'_>) -> Result<Response, ModelError> {
        let Some(live) = &self.live else { return Err(self.not_recorded(&Json::Null, &[])) };
        if let Some(budget) = &self.budget {
            budget.check()?;
        }
        let response = live.generate(request, None).await?;
        if let Some(budget) = &self.budget {
            budget.add(&response.usage, self.price.as_ref());
        }
        Ok(response)
    }

    /// What a request is known by: everything that the provider gets, and the number of the run.
    fn key(&self, request: &Request<'_>) -> Json {
        let tools = request.tools.iter().map(|tool| {
            let schema: Json = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
            json!({ "name": tool.name, "description": tool.description, "inputSchema": schema })
        });
        json!({
            "model": self.id,
            "run": self.run,
            "options": request.options,
            "system": request.system,
            "tools": tools.collect::<Vec<_>>(),
            "messages": request.messages,
        })
    }

    /// Names the recorded request that is nearest, and where it differs.
    fn not_recorded(&self, asked: &Json, known: &[Arc<RecordedAnswer>]) -> ModelError {
        let nearest = known.iter().map(|answer| {
            let mut found = Vec::new();
            differences(&answer.request, asked, &mut String::new(), &mut found);
            (found, answer)
        });
        let nearest = nearest.min_by_key(|(found, _)| found.len());
        let why = match nearest {
            None => "nothing is recorded of this model".to_owned(),
            Some((found, answer)) => {
                let (pointer, [recorded, now]) = &found[0];
                let more = match found.len() - 1 {
                    0 => String::new(),
                    1 => ", and at one more place".to_owned(),
                    more => format!(", and at {more} more places"),
                };
                format!(
                    "the nearest recorded request, {}, differs at {pointer}: it has {recorded}, the request has {now}{more}",
                    answer.path.display()
                )
            }
        };
        ModelError::NotRecorded { model: self.name.clone(), run: self.run, why, missing: self.missing.clone() }
    }
}

/// The pointers of the values in which two texts of JSON differ, with both values.
fn differences(one: &Json, other: &Json, pointer: &mut String, found: &mut Vec<(String, [String; 2])>) {
    let mut below = |key: &str, one: Option<&Json>, other: Option<&Json>| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(key);
        match (one, other) {
            (Some(one), Some(other)) => differences(one, other, pointer, found),
            (one, other) => found.push((pointer.clone(), [one, other].map(excerpt))),
        }
        pointer.truncate(length);
    };
    match (one, other) {
        (one, other) if one == other => {}
        (Json::Object(one), Json::Object(other)) => {
            one.iter().for_each(|(key, value)| below(key, Some(value), other.get(key)));
            let added = other.iter().filter(|(key, _)| !one.contains_key(*key));
            added.for_each(|(key, value)| below(key, None, Some(value)));
        }
        (Json::Array(one), Json::Array(other)) => {
            (0..one.len().max(other.len())).for_each(|at| below(&at.to_string(), one.get(at), other.get(at)));
        }
        _ => found.push((pointer.clone(), [Some(one), Some(other)].map(excerpt))),
    }
}

fn excerpt(value: Option<&Json>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| shortened(&value.to_string(), EXCERPT))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

    use super::*;
    use crate::{
        Provider, ToolDefinition,
        model::{Block, GenerationOptions, HttpModelOptions, Message, http::ApiKey},
    };

    const SECRET: &str = "sk-very-secret";

    async fn provider(answers: u64) -> MockServer {
        let server = MockServer::start().await;
        let body = json!({
            "id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": "Hello." }],
            "usage": { "input_tokens": 900, "output_tokens": 100 },
        });
        let answer = Mock::given(any()).respond_with(ResponseTemplate::new(200).set_body_json(body));
        answer.expect(answers).mount(&server).await;
        server
    }

    fn live(server: &MockServer) -> Option<Arc<HttpModel>> {
        let options = HttpModelOptions {
            base_url: Some(server.uri()),
            key: Some(ApiKey::new(SECRET)),
            ..HttpModelOptions::new(Provider::Anthropic, "c")
        };
        Some(Arc::new(HttpModel::new(options).expect("a model")))
    }

    fn model(folder: &Path, live: Option<Arc<HttpModel>>, run: u32) -> RecordedModel {
        RecordedModel {
            name: "claude".into(),
            id: "anthropic:c".into(),
            live,
            missing: "API key missing: KEY not set".into(),
            recorded: Some(Arc::new(RecordedAnswers::new(folder))),
            budget: None,
            price: None,
            run,
        }
    }

    async fn ask(model: &RecordedModel, prompt: &str, description: &str) -> Result<Response, ModelError> {
        let schema = RawValue::from_string(r#"{"type":"object"}"#.into()).expect("JSON");
        let tools = [ToolDefinition { description: Some(description), ..ToolDefinition::new("search", &schema) }];
        let messages = [Message::user(prompt)];
        let options = GenerationOptions::default();
        model.generate(&Request { system: None, messages: &messages, tools: &tools, options: &options }).await
    }

    #[tokio::test]
    async fn an_answer_that_repeats_the_key_is_kept_without_it_and_for_its_owner() {
        let (folder, server) = (tempfile::tempdir().expect("a folder"), MockServer::start().await);
        let body = json!({
            "id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": format!("Your key is {SECRET}.") }],
            "usage": { "input_tokens": 900, "output_tokens": 100 },
        });
        Mock::given(any()).respond_with(ResponseTemplate::new(200).set_body_json(body)).mount(&server).await;
        let answer = ask(&model(folder.path(), live(&server), 1), "Hi.", "").await.expect("an answer");
        assert_eq!(answer.content, [Block::Text { text: "Your key is ***.".into() }]);
        let files = fs::read_dir(folder.path().join("claude")).expect("a folder");
        let files: Vec<_> = files.flatten().map(|file| file.path()).collect();
        assert!(!fs::read_to_string(&files[0]).expect("a file").contains(SECRET));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&files[0]).expect("a file").permissions().mode() & 0o777, 0o600);
        }
    }

    #[tokio::test]
    async fn a_recorded_answer_is_played_without_key_and_provider() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = provider(1).await;
        let recorded = ask(&model(folder.path(), live(&server), 1), "Hi", "Finds.").await.expect("an answer");
        // The provider expects one request.
        for live in [live(&server), None] {
            let played = ask(&model(folder.path(), live, 1), "Hi", "Finds.").await.expect("a recorded answer");
            assert_eq!(played, recorded);
        }
        let files: Vec<_> = fs::read_dir(folder.path().join("claude")).expect("a folder").flatten().collect();
        assert_eq!(files.len(), 1);
        let text = fs::read_to_string(files[0].path()).expect("a file");
        assert!(text.contains("Hello.") && !text.contains(SECRET), "{text}");
    }

    #[tokio::test]
    async fn a_request_that_is_not_recorded_names_what_differs() {
        let folder = tempfile::tempdir().expect("a folder");
        let nothing = ask(&model(folder.path(), None, 1), "Hi", "Finds.").await.expect_err("nothing").to_string();
        assert_eq!(
            nothing,
            "the answer of claude is not recorded (run 1): nothing is recorded of this model; API key missing: KEY not set"
        );
        let server = provider(1).await;
        ask(&model(folder.path(), live(&server), 1), "Hi", "Finds.").await.expect("an answer");
        let changed = ask(&model(folder.path(), None, 1), "Hi", "Finds all.").await.expect_err("changed").to_string();
        let differs = r#"differs at /tools/0/description: it has "Finds.", the request has "Finds all."; API"#;
        assert!(changed.contains(differs), "{changed}");
        let again = ask(&model(folder.path(), None, 2), "Hi", "Finds.").await.expect_err("run 2").to_string();
        assert!(again.contains("differs at /run: it has 1, the request has 2"), "{again}");
        assert!(matches!(
            ask(&model(folder.path(), None, 1), "Bye", "Finds.").await,
            Err(ModelError::NotRecorded { why, .. }) if why.contains("/messages/0/content/0/text")
        ));
    }

    #[tokio::test]
    async fn one_question_is_asked_once_even_if_several_ask_it_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        // The provider expects one request.
        let server = provider(1).await;
        let model = model(folder.path(), live(&server), 1);
        let answers = futures_util::future::join_all((0..8).map(|_| ask(&model, "Hi", "Finds."))).await;
        answers.into_iter().for_each(|answer| drop(answer.expect("an answer")));
        let files: Vec<_> = fs::read_dir(folder.path().join("claude")).expect("a folder").flatten().collect();
        assert_eq!(files.len(), 1, "{files:?}");
    }

    #[tokio::test]
    async fn nothing_is_asked_if_the_answer_cannot_be_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("claude"), "a file").expect("writes");
        let server = provider(0).await;
        let error = ask(&model(folder.path(), live(&server), 1), "Hi", "Finds.").await.expect_err("a file").to_string();
        assert!(error.starts_with("cannot use the recorded answer"), "{error}");
    }

    #[test]
    fn a_model_has_its_folder_below_that_of_all() {
        let answers = RecordedAnswers::new("x");
        for (model, folder) in [("claude-4.5", "x/claude-4.5"), ("..", "x/_."), ("a/../b", "x/a_.._b")] {
            assert_eq!(answers.folder_of(model), Path::new(folder));
        }
    }

    #[tokio::test]
    async fn a_budget_counts_what_is_asked_and_not_what_is_played() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = provider(1).await;
        let budget = Arc::new(Budget::new(None, Some(1000)));
        let limited = |run| RecordedModel { budget: Some(budget.clone()), ..model(folder.path(), live(&server), run) };
        ask(&limited(1), "Hi", "Finds.").await.expect("an answer");
        ask(&limited(1), "Hi", "Finds.").await.expect("a recorded answer");
        assert!(matches!(ask(&limited(2), "Hi", "Finds.").await, Err(ModelError::Budget { .. })));
    }

    #[tokio::test]
    async fn a_file_that_is_no_recorded_answer_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("claude").join("x.json");
        fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
        fs::write(&path, "{}").expect("writes");
        let error =
            ask(&model(folder.path(), None, 1), "Hi", "Finds.").await.expect_err("no recorded answer").to_string();
        assert!(error.starts_with(&format!("cannot use the recorded answer {}: ", path.display())), "{error}");
    }
}
