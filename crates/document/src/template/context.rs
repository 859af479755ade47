//! What a template can see of a request.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use bytes::Bytes;
use minijinja::value::{Object, Serde};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{seeded_rng::SeededRng, state::State};
use rehearse_protocol::Id;

/// Values that templates see under further names, which can be added while the context is in use.
#[derive(Clone, Debug, Default)]
pub struct Bindings(Arc<Mutex<BTreeMap<String, minijinja::Value>>>);

impl Bindings {
    /// Binds a name to a value.
    pub fn bind(&self, name: &str, value: &serde_json::Value) {
        let value = minijinja::Value::from(Serde(value));
        self.0.lock().insert(name.to_owned(), value);
    }

    fn get(&self, name: &str) -> Option<minijinja::Value> {
        self.0.lock().get(name).cloned()
    }
}

/// The request as a template sees it. It is parsed on first use.
#[derive(Debug)]
pub struct Context {
    /// The `params` of the request as JSON text.
    pub params: Option<Bytes>,
    /// The id of the request, which a `raw` reply needs.
    pub id: Id,
    /// The HTTP headers of the request, names in lower case; empty on other transports.
    pub headers: Vec<(String, String)>,
    /// Which call this is, counted from 1.
    pub call: u64,
    /// The number of the item, if it is one of many with `repeat`.
    pub repetition: Option<u64>,
    /// Seeds `rand`, so that the same run draws the same numbers.
    pub seed: u64,
    /// When the request came.
    pub now: SystemTime,
    /// The server's state, as it is whenever a template looks at it.
    pub state: Option<Arc<State>>,
    /// Instead of the `arguments` of the request.
    pub args: Option<serde_json::Value>,
    /// The variables that a script sets while it answers, if it does.
    pub bound: Option<Bindings>,
}

impl Context {
    /// The context as a value for MiniJinja.
    pub fn into_value(self) -> minijinja::Value {
        let (params, args, rand) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        minijinja::Value::from_object(LazyContext { context: self, params, args, rand })
    }
}

#[derive(Debug)]
struct LazyContext {
    context: Context,
    params: OnceLock<minijinja::Value>,
    args: OnceLock<minijinja::Value>,
    rand: OnceLock<Arc<Rand>>,
}

impl LazyContext {
    fn params(&self) -> &minijinja::Value {
        self.params.get_or_init(|| {
            let params = self.context.params.as_deref();
            params.map_or_else(empty, |text| serde_json::from_slice(text).unwrap_or_else(unreadable))
        })
    }

    fn args(&self) -> &minijinja::Value {
        #[derive(Deserialize)]
        struct Arguments<'a> {
            #[serde(borrow)]
            arguments: Option<&'a RawValue>,
        }
        self.args.get_or_init(|| {
            if let Some(args) = &self.context.args {
                return minijinja::Value::from(Serde(args));
            }
            let params = self.context.params.as_deref();
            let arguments = params.and_then(|text| serde_json::from_slice::<Arguments<'_>>(text).ok()?.arguments);
            arguments.map_or_else(empty, |text| serde_json::from_str(text.get()).unwrap_or_else(unreadable))
        })
    }
}

/// A value that makes every expression that uses it fail: nesting that is too deep, or a string that is not Unicode.
fn unreadable(error: serde_json::Error) -> minijinja::Value {
    let what = format!("the request cannot be read: {error}");
    minijinja::Value::from(minijinja::Error::new(minijinja::ErrorKind::BadSerialization, what))
}

fn empty() -> minijinja::Value {
    minijinja::Value::from(BTreeMap::<String, minijinja::Value>::new())
}

impl Object for LazyContext {
    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<minijinja::Value> {
        Some(match key {
            "args" => self.args().clone(),
            "params" => self.params().clone(),
            "id" => match &self.context.id {
                Id::Number(number) => (*number).into(),
                Id::String(text) => (&**text).into(),
            },
            "uri" => self.params().get_attr("uri").ok().filter(|value| !value.is_undefined())?,
            "headers" => {
                minijinja::Value::from(Serde(self.context.headers.iter().cloned().collect::<BTreeMap<_, _>>()))
            }
            "call" => self.context.call.into(),
            "env" => minijinja::Value::from_object(ProcessEnvironment),
            "rand" => {
                let rand = || Arc::new(Rand(Mutex::new(SeededRng::new(self.context.seed))));
                minijinja::Value::from_dyn_object(self.rand.get_or_init(rand).clone())
            }
            "state" => {
                let state = self.context.state.as_ref().map(|state| state.get());
                minijinja::Value::from(Serde(state.as_deref().unwrap_or(&serde_json::Map::new())))
            }
            "n" if self.context.repetition.is_some() => self.context.repetition?.into(),
            "now" => humantime::format_rfc3339_millis(self.context.now).to_string().into(),
            name => return self.context.bound.as_ref()?.get(name),
        })
    }

    fn get_value(self: &Arc<Self>, key: &minijinja::Value) -> Option<minijinja::Value> {
        self.get_value_by_str(key.as_str()?)
    }
}

/// `env.NAME`: a variable of the process environment, read when a template asks for it.
#[derive(Debug)]
pub struct ProcessEnvironment;

impl Object for ProcessEnvironment {
    fn get_value(self: &Arc<Self>, key: &minijinja::Value) -> Option<minijinja::Value> {
        std::env::var(key.as_str()?).ok().map(minijinja::Value::from)
    }
}

/// `rand()` is a number from 0 to below 1; `rand(1, 6)` is a whole number from 1 to 6.
#[derive(Debug)]
struct Rand(Mutex<SeededRng>);

impl Object for Rand {
    fn call(
        self: &Arc<Self>,
        _: &mut minijinja::State<'_, '_>,
        args: &[minijinja::Value],
    ) -> Result<minijinja::Value, minijinja::Error> {
        let mut draws = self.0.lock();
        if args.is_empty() {
            return Ok(draws.fraction().into());
        }
        let (low, high): (i64, i64) = minijinja::value::from_args(args)?;
        if low > high {
            return Err(minijinja::Error::new(
                minijinja::ErrorKind::InvalidOperation,
                "rand(low, high) with low > high",
            ));
        }
        Ok(draws.number_in(low, high).into())
    }
}
