//! How the members of a dialect are written in the file of its host.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

use super::{AppliesTo, Field, Key};

type Keys = &'static [&'static str];

pub(super) fn lists<'de: 'static, D: Deserializer<'de>>(from: D) -> Result<&'static [Keys], D::Error> {
    let lists: Vec<Vec<&'static str>> = Vec::deserialize(from)?;
    Ok(lists.into_iter().map(|list| &*list.leak()).collect::<Vec<_>>().leak())
}

/// Keys from the root on, with dots between them.
pub(super) fn path<'de: 'static, D: Deserializer<'de>>(from: D) -> Result<Keys, D::Error> {
    <&'static str>::deserialize(from).map(keys_of)
}

pub(super) fn some_path<'de: 'static, D: Deserializer<'de>>(from: D) -> Result<Option<Keys>, D::Error> {
    path(from).map(Some)
}

pub(super) fn paths<'de: 'static, D: Deserializer<'de>>(from: D) -> Result<&'static [Keys], D::Error> {
    let paths: Vec<&'static str> = Vec::deserialize(from)?;
    Ok(paths.into_iter().map(keys_of).collect::<Vec<_>>().leak())
}

fn keys_of(path: &'static str) -> Keys {
    path.split('.').collect::<Vec<_>>().leak()
}

pub(super) fn usual_roots() -> &'static [Keys] {
    &[&["mcpServers"]]
}

/// Groups of keys by the servers that they are for: `- process: { command: command, args: args }`.
pub(super) fn keys<'de: 'static, D: Deserializer<'de>>(from: D) -> Result<&'static [Key], D::Error> {
    let groups: Vec<Pairs<AppliesTo, Pairs<&'static str, Field>>> = Vec::deserialize(from)?;
    let groups = groups.into_iter().flat_map(|group| group.0);
    let key = |applies_to| move |(name, field)| Key { name, field, applies_to };
    Ok(groups.flat_map(|(applies_to, keys)| keys.0.into_iter().map(key(applies_to))).collect::<Vec<_>>().leak())
}

/// The members of an object in their order.
struct Pairs<K, V>(Vec<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Pairs<K, V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<K, V> {
    type Value = Pairs<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Pairs<K, V>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = members.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

/// `url` is [`Field::Url`] of any transport; everything else is as it is derived.
impl<'de: 'static> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Field, D::Error> {
        let value: &'static serde_json::Value = Box::leak(Box::new(Deserialize::deserialize(from)?));
        match value.as_str() {
            Some("url") => Ok(Field::Url(None)),
            _ => Field::deserialize(value).map_err(Error::custom),
        }
    }
}
