//! Values of a script in which `{{ … }}` is filled in from the request (MiniJinja, strict about undefined names).
//!
//! In data a string that is a single expression keeps the expression's type: `"{{ args.count }}"` is a number
//! if the argument is one. Where MCP requires a string, the value is always rendered as text.

mod context;
mod data;
mod expression;
mod literal;
mod tags;
mod templates;

pub use context::{Bindings, Context, ProcessEnvironment};
pub use data::Data;
pub use expression::{NativeExpression, RenderError, Text};
pub use literal::without_templates;
pub use templates::{OUTPUT_LIMIT, SCRIPT_NAMES, Templates};
