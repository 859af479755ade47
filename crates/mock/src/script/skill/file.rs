//! One file of a skill.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::digest::{SHA256, digest};

use super::super::keys::KEYS;
use super::resource::{SCHEME, SkillResource, quote};
use rehearse_document::{Entry, Node, Problem, Problems, Span, Value};

/// Binary types are recognised too, in case a file with such a name has text.
const MIME_TYPES: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("html", "text/html"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("sh", "application/x-sh"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("ts", "text/typescript"),
    ("txt", "text/plain"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// A file before its URI is known.
#[derive(Debug)]
pub(super) struct SkillFile {
    /// The path within the skill.
    pub(super) path: String,
    mime_type: String,
    /// The member `text` or `blob` of the contents, as JSON text.
    content: String,
    digest: String,
    size: u64,
    span: Span,
}

/// Reads the object of paths and files.
///
/// # Errors
/// Every path that is outside the skill or not in canonical form, and every file with wrong content.
pub(super) fn read_files(node: &Node) -> Result<Vec<SkillFile>, Problems> {
    Problems::collect(node.entries()?.iter().map(SkillFile::read))
}

impl SkillFile {
    pub(super) fn text(path: &str, text: &str, span: Span) -> SkillFile {
        let content = format!(r#""text":{}"#, quote(text));
        SkillFile::new(path, content, text.as_bytes(), "text/plain", span)
    }

    fn new(path: &str, content: String, bytes: &[u8], otherwise: &str, span: Span) -> SkillFile {
        let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
        let known = MIME_TYPES.iter().find(|(known, _)| *known == extension).map(|(_, mime_type)| *mime_type);
        let sha256: String = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        SkillFile {
            path: path.to_owned(),
            mime_type: known.unwrap_or(otherwise).to_owned(),
            content,
            digest: format!("sha256:{sha256}"),
            size: bytes.len() as u64,
            span,
        }
    }

    fn read(entry: &Entry) -> Result<SkillFile, Problems> {
        let path = entry.key.as_str();
        check_path(entry)?;
        let Value::Mapping(_) = entry.node.value else {
            return Ok(SkillFile::text(path, entry.node.str()?, entry.key_span));
        };
        let fields = KEYS.fields(&entry.node, "skillFile")?;
        let Entry { key, node, .. } = fields.exactly_one(&KEYS.choices("skillFile"))?;
        let mut file = match key.as_str() {
            "blob" => {
                let bytes = STANDARD.decode(node.str()?).map_err(|_| {
                    node.problem("a `blob` must be base64")
                        .hint("one line without spaces; readable content goes under `text`")
                })?;
                let content = format!(r#""blob":{}"#, node.to_json_text());
                SkillFile::new(path, content, &bytes, "application/octet-stream", entry.key_span)
            }
            _ => SkillFile::text(path, node.str()?, entry.key_span),
        };
        if let Some(mime_type) = fields.read("mimeType", Node::str)? {
            mime_type.clone_into(&mut file.mime_type);
        }
        if let Some(digest) = fields.read("digest", Node::str)? {
            digest.clone_into(&mut file.digest);
        }
        if let Some(size) = fields.read("size", Node::integer)? {
            file.size = size;
        }
        Ok(file)
    }

    /// `labels` are the name and the description; without them it is named as its file.
    pub(super) fn into_resource(self, root: &str, labels: Option<(&str, &str)>) -> SkillResource {
        let path = format!("{root}/{}", self.path);
        let uri = format!("{SCHEME}{}", encode(&path));
        let file_name = self.path.rsplit('/').next().unwrap_or(&self.path);
        let name = labels.map_or(file_name, |(name, _)| name);
        let description = labels.map(|(_, text)| format!(r#","description":{}"#, quote(text))).unwrap_or_default();
        let (quoted_uri, mime_type) = (quote(&uri), quote(&self.mime_type));
        SkillResource {
            definition: format!(r#"{{"uri":{quoted_uri},"name":{}{description},"mimeType":{mime_type}}}"#, quote(name),),
            contents: format!(r#"[{{"uri":{quoted_uri},"mimeType":{mime_type},{}}}]"#, self.content),
            uri,
            path,
            digest: self.digest,
            size: self.size,
            span: self.span,
        }
    }
}

fn check_path(entry: &Entry) -> Result<(), Problems> {
    let plain = |segment: &str| !matches!(segment, "" | "." | "..");
    let forbidden = |c: char| c == '\\' || c.is_control();
    if entry.key.split('/').all(plain) && !entry.key.contains(forbidden) {
        return Ok(());
    }
    let problem = Problem::new(entry.key_span, format!("{:?} is not a path of a file in a skill", entry.key));
    Err(problem.hint("write names with `/` between them, from the skill's directory downwards").into())
}

/// The characters of a path that a URI does not have (RFC 3986, section 3.3) percent-encoded.
fn encode(path: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/".contains(c);
    let mut encoded = String::new();
    for character in path.chars() {
        if allowed(character) {
            encoded.push(character);
        } else {
            let bytes =
                character.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
            encoded.push_str(&bytes);
        }
    }
    encoded
}
