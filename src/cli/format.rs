//! The output formats of most commands.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Text
    #[default]
    Human,
    /// JSON
    Json,
}
