//! A schema within a document, and where it is.

use std::rc::Rc;

use serde_json::Value as Json;

use rehearse_document::json_schema::View;

/// A schema within a document, and the JSON pointer to it.
#[derive(Clone, Debug)]
pub(super) struct Place<'s> {
    pub view: View<'s>,
    root: &'s Json,
    pub pointer: String,
    /// What holds beside it, if it is an alternative that is compared by itself.
    pub base: Option<Rc<Place<'s>>>,
}

impl<'s> Place<'s> {
    pub(super) fn new(root: &'s Json) -> Self {
        Place { view: View::without_references(root), root, pointer: String::new(), base: None }
    }

    /// The schema that accepts everything, for a keyword that is absent.
    pub(super) fn anything(pointer: String) -> Place<'static> {
        static ANYTHING: Json = Json::Bool(true);
        Place { pointer, ..Place::new(&ANYTHING) }
    }

    pub(super) fn json(&self) -> &'s Json {
        self.view.json()
    }

    /// The pointer to a member.
    pub(super) fn below(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, escape(key))
    }

    /// The schema of a keyword.
    pub(super) fn schema(&self, keyword: &str) -> Option<Place<'s>> {
        self.view.schema(keyword).map(|view| Place { view, root: self.root, pointer: self.below(keyword), base: None })
    }

    /// The schemas that a keyword such as `properties` names.
    pub(super) fn named(&self, keyword: &str) -> Vec<(&'s str, Place<'s>)> {
        let base = self.below(keyword);
        let pointer = |name| format!("{base}/{}", escape(name));
        let place = |(name, view)| (name, Place { view, root: self.root, pointer: pointer(name), base: None });
        self.view.named(keyword).map(place).collect()
    }

    /// The schemas of all members.
    pub(super) fn members(&self) -> Vec<(&'s str, Place<'s>)> {
        let keys = self.json().as_object().into_iter().flat_map(|members| members.keys());
        keys.filter_map(|key| Some((&**key, self.schema(key)?))).collect()
    }

    /// The schemas in a list, such as `anyOf`.
    pub(super) fn schemas(&self, keyword: &str) -> Option<Vec<Place<'s>>> {
        let base = self.below(keyword);
        let place = |(index, view)| Place { view, root: self.root, pointer: format!("{base}/{index}"), base: None };
        Some(self.view.schemas(keyword)?.enumerate().map(place).collect())
    }

    /// What a reference within the document refers to.
    pub(super) fn referred(&self, reference: &str) -> Option<Place<'s>> {
        let view = self.view.referred(reference)?;
        let fragment = reference.trim_start_matches('#');
        if (fragment.is_empty() || fragment.starts_with('/')) && !fragment.contains('%') {
            return Some(Place { view, root: self.root, pointer: fragment.to_owned(), base: None });
        }
        let pointer = pointer_to(self.root, view.json(), &mut String::new())?;
        Some(Place { view, root: self.root, pointer, base: None })
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The pointer to a node of a document. An anchor does not say it.
fn pointer_to(root: &Json, node: &Json, at: &mut String) -> Option<String> {
    if std::ptr::eq(root, node) {
        return Some(at.clone());
    }
    let length = at.len();
    let mut visit = |key: &str, member: &Json| {
        at.push('/');
        at.push_str(&escape(key));
        let found = pointer_to(member, node, at);
        at.truncate(length);
        found
    };
    match root {
        Json::Object(members) => members.iter().find_map(|(key, member)| visit(key, member)),
        Json::Array(items) => items.iter().enumerate().find_map(|(index, item)| visit(&index.to_string(), item)),
        _ => None,
    }
}
