//! What a URI template takes out of a URI, it puts in again.
//!
//! The first line is the template, the second a URI, the others the values of its variables: texts, lists with commas,
//! mappings with colons.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rehearse_document::uri_template::UriTemplate;
use serde_json::{Map, Value as Json};

fn value(line: &str) -> Json {
    match line.split_once([',', ':']) {
        None => line.into(),
        Some(_) if line.contains(':') => {
            let pairs = line.split(',').map(|pair| pair.split_once(':').unwrap_or((pair, "")));
            pairs.map(|(name, value)| (name.to_owned(), Json::from(value))).collect()
        }
        Some(_) => line.split(',').collect(),
    }
}

fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let (written, given) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let template = match UriTemplate::parse(written) {
        Ok(template) => template,
        Err(error) => {
            assert!(error.offset <= written.len() && written.is_char_boundary(error.offset), "{error:?}");
            return;
        }
    };
    let names: Vec<String> = template.variables().into_iter().map(str::to_owned).collect();
    let values: Map<String, Json> = names.iter().cloned().zip(lines.map(value)).collect();
    let expanded = template.expand(&values);
    assert!(expanded.is_ascii(), "{expanded}");
    // A variable that occurs twice may be missing in one place and be there in the other, which no value says.
    let occurrences = written.split('{').skip(1).flat_map(|expression| expression.split('}').take(1));
    let occurs_once = occurrences.flat_map(|expression| expression.split(',')).count() == names.len();
    // Where a variable follows on another without anything between them, it is open which of them takes what.
    let is_clear =
        occurs_once && written.split("}{").skip(1).all(|next| next.starts_with(['#', '.', '/', ';', '?', '&']));
    let matched = |uri: &str| Some(template.match_uri(uri)?.into_iter().collect::<Map<_, _>>());
    for uri in [expanded.as_str(), given] {
        let Some(found) = matched(uri) else { continue };
        assert!(found.keys().all(|name| names.contains(name)), "{found:?}");
        let again = template.expand(&found);
        if !is_clear {
            continue;
        }
        // The values may be others where the template leaves it open which variable takes what.
        let refound = matched(&again).unwrap_or_else(|| panic!("{uri:?} gives {found:?}, which gives {again:?}"));
        let same = template.expand(&refound) == again;
        assert!(same, "{uri:?} gives {found:?}, which gives {again:?}, which gives {refound:?}");
    }
});
