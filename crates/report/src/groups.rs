//! Values that belong together.

/// The values of each key, in the order in which the keys come first.
pub(crate) fn grouped<K, V>(pairs: impl Iterator<Item = (K, V)>, is_same: impl Fn(&K, &K) -> bool) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| is_same(known, &key)) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
