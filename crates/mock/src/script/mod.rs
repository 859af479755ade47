//! A mock server's script: its items and their answers. It is immutable; changes at run time are in the engine.
//!
//! [`Script::parse`] reads the YAML of a file; `docs/mock-scripts.md` has the whole language with examples.

mod added_rule;
mod auth;
mod builtin;
mod capabilities;
mod completion;
mod condition;
mod definition;
mod fault;
mod http;
mod input_request;
mod item;
mod limits;
mod log_level;
mod method;
mod prompt;
mod reader;
mod repeat;
mod reply;
mod resource;
mod root;
mod rule;
mod schema;
mod skill;
mod step;
mod tool;

pub use added_rule::AddedRule;
pub use auth::{Auth, Challenge, Token};
pub use builtin::BuiltinScript;
pub use capabilities::Capabilities;
pub(crate) use capabilities::{SKILLS, TASKS, merge};
pub use completion::{Completion, CompletionTarget};
pub use condition::{Condition, LazyJson, RequestFacts};
pub use fault::{FaultRule, FaultTarget};
pub use http::{HttpForm, HttpPolicy, HttpResponseOptions};
pub use input_request::InputRequest;
pub(crate) use input_request::includes;
pub use item::{CallRange, Item, ItemKind, ItemRef};
pub use limits::Limits;
pub use log_level::LogLevel;
pub use method::MethodItem;
pub use prompt::PromptItem;
use reader::ScriptReader;
pub use reader::UsedFeatures;
use reply::ReplySubject;
pub use reply::{Body, Reply};
pub use resource::{ResourceItem, ResourceTemplateItem};
pub use root::{Script, ScriptError};
pub use rule::{AnswerPlan, AnswerSpec, Rule, SequenceEnd};
pub use schema::schema;
pub(crate) use skill::directory as skill_directory;
pub use skill::{SkillItem, SkillResource};
pub use step::{Action, ListChange, Step, TaskSpec};
pub use tool::ToolItem;
