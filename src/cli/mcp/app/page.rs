//! The page of an app: what `resources/read` sends for a tool.

use base64::Engine as _;
use serde_json::{Value, json, value::RawValue};

/// What a page may reach elsewhere, and the key of `csp` with it.
pub(super) const PURPOSES: [(&str, &str); 4] = [
    ("requests to", "connectDomains"),
    ("scripts, styles and media from", "resourceDomains"),
    ("frames from", "frameDomains"),
    ("base", "baseUriDomains"),
];

/// The page of an app.
#[derive(Debug)]
pub(super) struct AppPage {
    pub(super) uri: String,
    pub(super) mime_type: String,
    pub(super) html: String,
    /// What it says of itself: `_meta.ui` of its content.
    pub(super) ui: Value,
}

/// The page that a tool names, by its definition.
pub(super) fn page_uri(definition: &RawValue) -> Option<String> {
    let tool: Value = serde_json::from_str(definition.get()).unwrap_or_default();
    let meta = &tool["_meta"];
    let uri = meta["ui"]["resourceUri"].as_str().or_else(|| meta["ui/resourceUri"].as_str());
    uri.map(ToOwned::to_owned)
}

impl AppPage {
    /// The first content of a result.
    ///
    /// # Errors
    /// It is no text.
    pub(super) fn parse(uri: &str, result: &RawValue) -> Result<AppPage, String> {
        let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
        let content = &result["contents"][0];
        let bytes = |blob: &str| base64::prelude::BASE64_STANDARD.decode(blob).ok();
        let blob = || String::from_utf8(bytes(content["blob"].as_str()?)?).ok();
        let html = content["text"].as_str().map(ToOwned::to_owned).or_else(blob);
        Ok(AppPage {
            uri: uri.to_owned(),
            mime_type: content["mimeType"].as_str().unwrap_or_default().to_owned(),
            html: html.ok_or_else(|| format!("{uri} has neither a text nor a text in base64"))?,
            ui: content["_meta"]["ui"].clone(),
        })
    }

    /// The origins that the page declares for one purpose. One that could end a directive is left out.
    pub(super) fn origins(&self, key: &str) -> Vec<&str> {
        let all = self.ui["csp"][key].as_array().into_iter().flatten().filter_map(Value::as_str);
        let is_safe = |it: &&str| !it.is_empty() && it.chars().all(|it| it.is_ascii_graphic() && !";,'\"".contains(it));
        all.filter(is_safe).collect()
    }

    /// The content security policy of the page (Content Security Policy Enforcement): what it does not declare is blocked.
    pub(super) fn policy(&self) -> String {
        let joined = |fixed: &str, key: &str| [&[fixed][..], &self.origins(key)].concat().join(" ");
        let or = |key: &str, none: &str| match self.origins(key) {
            origins if origins.is_empty() => none.to_owned(),
            origins => origins.join(" "),
        };
        let resources = |fixed: &str| joined(fixed, "resourceDomains");
        format!(
            "default-src 'none'; script-src {}; style-src {}; img-src {}; font-src {}; media-src {}; connect-src {}; \
             frame-src {}; object-src 'none'; base-uri {}",
            resources("'self' 'unsafe-inline'"),
            resources("'self' 'unsafe-inline'"),
            resources("'self' data:"),
            resources("'self'"),
            resources("'self' data:"),
            or("connectDomains", "'none'"),
            or("frameDomains", "'none'"),
            or("baseUriDomains", "'self'"),
        )
    }

    /// The features of a browser that the page asks for, as the attribute `allow` of a frame has them.
    pub(super) fn features(&self) -> String {
        let names = [
            ("camera", "camera"),
            ("microphone", "microphone"),
            ("geolocation", "geolocation"),
            ("clipboardWrite", "clipboard-write"),
        ];
        let asked = names.iter().filter(|(key, _)| self.ui["permissions"].get(*key).is_some());
        asked.map(|(_, feature)| *feature).collect::<Vec<_>>().join("; ")
    }

    /// The page without its text.
    pub(super) fn report(&self) -> Value {
        json!({ "uri": self.uri, "mimeType": self.mime_type, "bytes": self.html.len(), "ui": self.ui, "policy": self.policy() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ui: &Value) -> AppPage {
        let content =
            json!({ "uri": "ui://a", "mimeType": "text/html;profile=mcp-app", "text": "x", "_meta": { "ui": ui } });
        let result = serde_json::value::to_raw_value(&json!({ "contents": [content] })).expect("JSON");
        AppPage::parse("ui://a", &result).expect("a page")
    }

    #[test]
    fn a_policy_allows_what_is_declared_and_nothing_else() {
        let nothing = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
                       img-src 'self' data:; font-src 'self'; media-src 'self' data:; connect-src 'none'; \
                       frame-src 'none'; object-src 'none'; base-uri 'self'";
        assert_eq!(page(&Value::Null).policy(), nothing);
        let origins = ["https://a.example; script-src *", "https://b.example", "'unsafe-eval'", "https://c.example x"];
        let declared = page(&json!({ "csp": { "resourceDomains": origins, "connectDomains": ["wss://d.example"] } }));
        let policy = declared.policy();
        assert!(policy.contains("script-src 'self' 'unsafe-inline' https://b.example; style-src"), "{policy}");
        assert!(policy.contains("connect-src wss://d.example; frame-src 'none'"), "{policy}");
        let features = page(&json!({ "permissions": { "clipboardWrite": {}, "camera": {}, "other": {} } })).features();
        assert_eq!(features, "camera; clipboard-write");
    }
}
