//! Test clients and servers of the Model Context Protocol (MCP): mock servers, scenarios, a client, a config linter.
//!
//! This library is a facade over the crates of the project; depend on one of them alone to compile less.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`mock`] | scriptable mock servers; tests start with [`mock::MockServer::builder`] |
//! | [`client`] | a session with one server |
//! | [`hub`] | all servers of a config as one set of tools |
//! | [`client_configs`] | config files of MCP clients: reading, linting, conversion |
//! | [`scenario`] | scenario files, their cells, expectations, snapshots |
//! | [`report`] | the results of runs, and their renderers |
//! | [`llm`] | tools for language models, and the final answer of a subagent |
//! | [`document`] | files with a position for every value, JSON Schema, matchers, templates |
//! | [`protocol`] | frames, JSON-RPC messages, versions, transports, traces |
//! | [`builtin_scripts`] | the mock scripts that `rehearse` serves by name |

pub mod builtin_scripts;

pub use rehearse_client as client;
pub use rehearse_client_configs as client_configs;
pub use rehearse_document as document;
pub use rehearse_hub as hub;
pub use rehearse_llm as llm;
pub use rehearse_mock as mock;
pub use rehearse_protocol as protocol;
pub use rehearse_report as report;
pub use rehearse_scenario as scenario;
