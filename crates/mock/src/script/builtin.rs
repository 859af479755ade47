//! Scripts that are part of a program.

/// A script that is part of a program and is served by name, without a file. The program that embeds the mock owns the
/// list; see [`Script::load`](super::Script::load).
///
/// ```
/// use rehearse_mock::script::{BuiltinScript, Script};
///
/// let scripts = [BuiltinScript { name: "hello", text: "tools: [{ name: hi, reply: hello }]" }];
/// let script = Script::load("hello".as_ref(), &scripts)?;
/// assert_eq!(script.tools[0].item.name, "hi");
/// # Ok::<_, rehearse_mock::script::ScriptError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltinScript {
    /// The name of the script.
    pub name: &'static str,
    /// The YAML of the script.
    pub text: &'static str,
}
