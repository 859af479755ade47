//! The lists of a server.

use crate::Operation;

/// A list of a server (2026-07-28, Server Features; a server has those of its capabilities).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum List {
    Tools,
    Prompts,
    Resources,
    ResourceTemplates,
}

/// What is said of a list.
struct Row {
    method: &'static str,
    member: &'static str,
    capability: &'static str,
    key: &'static str,
    noun: &'static str,
    title: &'static str,
    step: &'static str,
    item_method: &'static str,
    change: &'static str,
}

const fn row([method, member, capability, key, noun, title, step, item_method, change]: [&'static str; 9]) -> Row {
    Row { method, member, capability, key, noun, title, step, item_method, change }
}

/// In the order of [`List::ALL`].
const ROWS: [Row; 4] = [
    row([
        "tools/list",
        "tools",
        "tools",
        "name",
        "tool",
        "Tools",
        "discover",
        Operation::CALL,
        "notifications/tools/list_changed",
    ]),
    row([
        "prompts/list",
        "prompts",
        "prompts",
        "name",
        "prompt",
        "Prompts",
        "list_prompts",
        Operation::GET,
        "notifications/prompts/list_changed",
    ]),
    row([
        "resources/list",
        "resources",
        "resources",
        "uri",
        "resource",
        "Resources",
        "list_resources",
        Operation::READ,
        "notifications/resources/list_changed",
    ]),
    row([
        "resources/templates/list",
        "resourceTemplates",
        "resources",
        "uriTemplate",
        "template",
        "Resource templates",
        "list_resource_templates",
        Operation::READ,
        "notifications/resources/list_changed",
    ]),
];

impl List {
    /// All lists, in the order of a surface file.
    pub const ALL: [List; 4] = [List::Tools, List::Prompts, List::Resources, List::ResourceTemplates];

    /// The lists that have a notification of their changes for themselves (2026-07-28, Subscriptions: Notification Filter).
    pub const WATCHED: [List; 3] = [List::Tools, List::Prompts, List::Resources];

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The list that a method requests.
    pub fn of_method(method: &str) -> Option<List> {
        List::ALL.into_iter().find(|list| list.method() == method)
    }

    /// The first list of whose items a method requests one.
    pub fn of_item_method(method: &str) -> Option<List> {
        List::ALL.into_iter().find(|list| list.item_method() == method)
    }

    /// The first list that a notification says has changed.
    pub fn of_change(notification: &str) -> Option<List> {
        List::ALL.into_iter().find(|list| list.change() == notification)
    }

    /// The list that a step of a scenario requests.
    pub fn of_step(step: &str) -> Option<List> {
        List::ALL.into_iter().find(|list| list.step() == step)
    }

    /// The method that requests it.
    pub const fn method(self) -> &'static str {
        self.row().method
    }

    /// The member of a result, and of a surface file, that has the items.
    pub const fn member(self) -> &'static str {
        self.row().member
    }

    /// The capability of a server that has it.
    pub const fn capability(self) -> &'static str {
        self.row().capability
    }

    /// The member that identifies an item.
    pub const fn key(self) -> &'static str {
        self.row().key
    }

    /// What an item is.
    pub const fn noun(self) -> &'static str {
        self.row().noun
    }

    /// What the items are, as a title.
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// The step of a scenario that requests it: that for tools also requests the other lists.
    pub const fn step(self) -> &'static str {
        self.row().step
    }

    /// The method that requests one of the items.
    pub const fn item_method(self) -> &'static str {
        self.row().item_method
    }

    /// The notification that it has changed. That of resources is also that of their templates.
    pub const fn change(self) -> &'static str {
        self.row().change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_its_own_row() {
        for list in List::ALL {
            assert_eq!((List::of_method(list.method()), List::of_step(list.step())), (Some(list), Some(list)));
            assert_eq!(list.member().to_lowercase(), list.title().to_lowercase().replace(' ', ""));
        }
        assert_eq!(List::of_method("tools/call"), None);
    }
}
