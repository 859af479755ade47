//! Names of tools that say that something is deleted or written.

use rehearse_document::characters::words;

/// Verbs that delete what follows.
const DELETES: [&str; 5] = ["delete", "erase", "destroy", "wipe", "truncate"];
/// Words that make a deletion no deletion, or one within a text that the caller gives.
const HARMLESS: [&str; 20] = [
    "preview",
    "dry",
    "simulate",
    "simulated",
    "plan",
    "check",
    "validate",
    "impact",
    "estimate",
    "confirm",
    "can",
    "text",
    "line",
    "lines",
    "string",
    "whitespace",
    "spaces",
    "duplicates",
    "characters",
    "history",
];
/// Verbs that also mean a change of a value that is only returned: what follows must be something that is stored.
const CHANGES: [&str; 4] = ["remove", "drop", "write", "overwrite"];
const STORED: [&str; 18] = [
    "file",
    "files",
    "folder",
    "directory",
    "database",
    "table",
    "tables",
    "collection",
    "index",
    "record",
    "records",
    "row",
    "rows",
    "user",
    "users",
    "repository",
    "branch",
    "account",
];

/// Whether a tool with this name certainly changes something: `delete_user`, `removeFile`, not `remove_background`.
pub(super) fn changes(name: &str) -> bool {
    let words: Vec<_> = words(name).iter().map(|word| word.to_lowercase()).collect();
    let Some((verb, rest)) = words.split_first() else { return false };
    let has = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(&word.as_str()));
    let deletes = DELETES.contains(&verb.as_str()) && !rest.is_empty();
    let changes = CHANGES.contains(&verb.as_str()) && has(&STORED);
    (deletes || changes) && !has(&HARMLESS)
}

#[cfg(test)]
mod tests {
    use super::changes;

    #[test]
    fn only_certain_names_say_that_something_changes() {
        for name in
            ["delete_user", "deleteAll", "remove_file", "drop_table", "write_file", "wipe-disk", "truncate_table"]
        {
            assert!(changes(name), "{name}");
        }
        let harmless =
            ["clear_cache", "remove_background", "drop_na", "write_poem", "delete_duplicate_lines", "truncate_text"];
        for name in harmless.iter().chain(&["list_deleted_files", "delete_dry_run", "delete", "write", "undelete_file"])
        {
            assert!(!changes(name), "{name}");
        }
    }
}
