//! The server as a whole.

use serde_json::json;

use super::build::{
    Definitions, Keys, any, choice, duration, flag, integer, keys, list_of, mapping, object, one_or_more, reference,
    size, text,
};
use rehearse_protocol::{Transport, Version};

/// The keys of a script.
pub(super) fn keys() -> Keys {
    let versions = choice(&Version::ALL.map(Version::as_str));
    keys! {
        "server": reference("server"),
            "The name and version of the server: an MCP `Implementation`.",
            [{ "name": "weather", "version": "1.0.0" }];
        "instructions": text(),
            "How a client should use the server; part of `initialize` and `server/discover`.",
            ["Ask for a forecast before you ask for advice."];
        "protocol": one_or_more(versions),
            "The protocol versions that are offered: one or a list. All of them by default.",
            ["2026-07-28", ["2025-06-18", "2025-11-25"]];
        "pageSize": integer(1),
            "How many items are on a page of every list. Without it every list has one page.",
            [50];
        "capabilities": json!({ "type": "object", "additionalProperties": { "type": ["object", "null"] } }),
            "A JSON merge patch onto what is declared anyway, which follows from what the script has. `null` removes a \
             capability.",
            [{ "prompts": null, "tools": { "listChanged": true } }];
        "state": mapping(),
            "The server's state at its start. Templates see it as `state`, the step `set` changes it, the condition \
             `state` looks at it. All clients share it.",
            [{ "cart": [], "visits": 0 }];
        "http": reference("http"),
            "How the server uses streamable HTTP where the protocol leaves a choice.",
            [{ "sessions": false, "answers": "json" }];
        "auth": reference("auth"),
            "The bearer tokens that requests over the network must carry.",
            [{ "tokens": [{ "token": "reader", "scopes": ["notes:read"] }] }];
        "requestState": object(&[], keys! {
            "ttl": duration(), "How long a client may take from one round to the next.", ["10m"];
            "required": flag(true), "Whether answers without the state are refused.", [false];
        }),
            "The state that a modern client carries from one round of input requests to the next.",
            [{ "ttl": "30s" }];
        "limits": object(&[], keys! {
            "output": size(), "A text or JSON value that is filled in from templates; 16 MiB by default.", ["64MiB"];
            "state": size(), "All values of the state, as they are in memory; 64 MiB by default.", ["1MiB"];
        }),
            "How large the values of the running mock can become. A call that exceeds a limit fails.",
            [{ "output": "1MiB" }];
        "unexpected": choice(&["error", "fail"]),
            "How to treat a request that nothing in the script answers. `error` (the default): answer it as the \
             protocol says. `fail`: the verification fails as well.",
            ["fail"];
        "act": object(&[], keys! {
            "transports": one_or_more(choice(&Transport::ALL.map(Transport::as_str))),
                "The transports on which the act says something. Without it, all.", [["http"]];
            "era": choice(&["legacy", "modern"]),
                "The era of the versions of which the act says something. Without it, both.", ["modern"];
            "idle": duration(), "After what time without traffic the client is ended.", ["10s"];
            "needs": one_or_more(text()),
                "The methods that a client must have used before the act is over.", [["tools/list", "tools/call"]];
            "like": text(), "The act with which what the client does is compared; `clean` by default.", ["auth"];
            "process": object(&[], keys! {
                "stderr": integer(0), "How many bytes the process writes to standard error first.", [200];
                "linger": duration(), "How long it lives after the end of its standard input.", ["400ms"];
                "deaf": flag(false), "Whether it then ignores SIGTERM.", [true];
            }),
                "What the process of the server does over stdio.", [{ "linger": "400ms" }];
        }),
            "How `rehearse check client` uses the script.",
            [{ "transports": ["http"] }];
        "tools": list_of(reference("tool")),
            "MCP tools as in the result of `tools/list`, and how each of them answers.",
            [[{ "name": "echo", "reply": "{{ args.text }}" }]];
        "resources": list_of(reference("resource")),
            "MCP resources as in the result of `resources/list`, and what is in them.",
            [[{ "uri": "file:///readme.md", "text": "# Hello" }]];
        "resourceTemplates": list_of(reference("resourceTemplate")),
            "Resources of a pattern. The variables of the URI are `args` in their answers.",
            [[{ "uriTemplate": "file:///{+path}", "text": "This is {{ args.path }}" }]];
        "prompts": list_of(reference("prompt")),
            "MCP prompts as in the result of `prompts/list`, and their messages.",
            [[{ "name": "greet", "messages": [{ "role": "user", "content": "Hello" }] }]];
        "completions": list_of(reference("completion")),
            "How arguments of prompts and variables of resource templates are completed.",
            [[{ "prompt": "greet", "argument": "language", "values": ["en", "es"] }]];
        "methods": list_of(reference("method")),
            "Methods that the protocol does not have, or other answers to those that it has.",
            [[{ "method": "example/time", "reply": { "result": { "time": "{{ now }}" } } }]];
        "faults": list_of(reference("faultRule")),
            "How answers break on their way out: which of them, and in what way.",
            [[{ "on": { "tool": "echo" }, "do": { "truncate": { "after": 20 } } }]];
        "skills": list_of(reference("skill")),
            "Skills (SEP-2640): directories of resources with a SKILL.md in them.",
            [[{ "name": "refunds", "description": "Process refunds.", "body": "Be kind." }]];
    }
}

pub(super) fn definitions() -> Definitions {
    vec![
        ("server".into(), object(&["name"], server())),
        ("http".into(), object(&[], [sessions(), http_answer()].concat())),
        ("httpAnswer".into(), object(&[], http_answer())),
        ("auth".into(), {
            let mut auth = object(&[], auth());
            auth["anyOf"] = json!([{ "required": ["tokens"] }, { "required": ["issuer"] }]);
            auth
        }),
        ("issuer".into(), object(&[], issuer())),
    ]
}

fn server() -> Keys {
    keys! {
        "name": text(), "The server's name.", ["weather"];
        "title": text(), "The name as people read it.", ["Weather service"];
        "version": text(), "The version of the server; 0.0.0 by default.", ["1.0.0"];
        "description": any(), "What the server is for.", ["Forecasts for every city."];
        "websiteUrl": any(), "Where there is more about it.", ["https://example.com"];
        "icons": list_of(mapping()),
            "MCP icons.", [[{ "src": "https://example.com/icon.png", "mimeType": "image/png" }]];
    }
}

fn sessions() -> Keys {
    keys! {
        "sessions": json!({ "enum": [true, false, "odd"], "default": true }),
            "Whether legacy clients get an `Mcp-Session-Id`, with unusual characters if it is `odd`. Without sessions no \
             request needs a handshake, and the client cannot be asked for input.",
            [false];
        "get": integer(200), "The status with which each GET is refused.", [405];
        "delete": integer(200), "The status with which each DELETE is refused.", [405];
        "sse": object(&[], keys! {
            "delay": duration(), "How long the client waits for the endpoint.", ["300ms"];
            "endpoint": choice(&["relative", "absolute", "foreign"]),
                "How the endpoint is named: by its path (the default), by a whole URL, or by one of another origin.",
                ["absolute"];
            "status": integer(200), "The status of an accepted POST; 202 by default.", [200];
        }),
            "What the server does on HTTP+SSE.",
            [{ "delay": "300ms", "status": 200 }];
    }
}

fn http_answer() -> Keys {
    keys! {
        "answers": choice(&["auto", "json", "sse"]),
            "`auto` (the default): a JSON object if nothing comes before the response, else a stream. `json`: a JSON \
             object always; messages before the answer are lost. `sse`: a stream always.",
            ["sse"];
        "priming": flag(false),
            "Whether a legacy stream begins with an event that has only an id, from which a client can resume.",
            [true];
        "retry": duration(), "How long a client should wait before it reconnects to a closed stream.", ["500ms"];
    }
}

fn auth() -> Keys {
    let scopes = || list_of(json!({ "type": "string", "pattern": r#"^[!#-\[\]-~]+$"# }));
    let token = object(
        &["token"],
        keys! {
            "token": json!({ "type": "string", "pattern": "^[A-Za-z0-9._~+/=-]+$" }),
                "The text after `Authorization: Bearer`.", ["reader"];
            "scopes": scopes(), "What it allows.", [["notes:read"]];
        },
    );
    keys! {
        "tokens": list_of(token), "The tokens that are accepted.", [[{ "token": "reader", "scopes": ["notes:read"] }]];
        "scopes": scopes(), "The scopes that every request needs.", [["notes:read"]];
        "authorizationServers": list_of(text()),
            "Where clients get tokens, as the metadata of the resource say.",
            [["https://auth.example.com"]];
        "issuer": reference("issuer"),
            "The mock is its own authorization server, and approves every request of a token.", [{}];
    }
}

fn issuer() -> Keys {
    let path = json!({ "type": "string", "pattern": "^(/.*[^/])?$" });
    let client = object(
        &["id"],
        keys! {
            "id": text(), "Its id.", ["my-client"];
            "secret": text(), "Its secret, if it has one.", ["s3cret"];
        },
    );
    let fail = object(
        &[],
        keys! {
            "register": text(), "The error of each registration.", ["invalid_redirect_uri"];
            "token": text(), "The error of each token request.", ["invalid_grant"];
        },
    );
    keys! {
        "path": one_or_more(path),
            "The path of the issuer; none by default. When a token expires, the next one of several is in charge; the \
             tokens of the last one do not expire.",
            ["/as", ["/old", "/new"]];
        "clients": list_of(client), "The clients that are registered beforehand.", [[{ "id": "my-client" }]];
        "expireAfter": integer(0), "How many requests a token is good for.", [3];
        "grant": list_of(text()), "The scopes of every token, whatever is asked for.", [["notes:read"]];
        "challenge": text(),
            "The `WWW-Authenticate` of a request without a valid token; empty for none. `{metadata}` stands for the URL \
             of the metadata, here and below `{origin}` for that of the mock.",
            ["Bearer", "Basic realm=\"x\", Bearer resource_metadata=\"{metadata}\""];
        "missing": list_of(text()), "Paths that are not found.", [["/.well-known/oauth-protected-resource/mcp"]];
        "resource": mapping(), "Members of the metadata of the resource; null removes one.",
            [{ "resource": "https://other.example.com/mcp" }];
        "metadata": mapping(), "Members of the metadata of the authorization server; null removes one.",
            [{ "code_challenge_methods_supported": null }];
        "response": mapping(), "Parameters of the redirect to the client; null removes one.",
            [{ "iss": "{origin}/other" }, { "code": null, "error": "access_denied" }];
        "token": mapping(), "Members of the response with a token; null removes one.", [{ "refresh_token": null }];
        "dpop": json!({ "enum": [true, false, "nonce"], "default": false }),
            "Whether tokens are bound to a key of the client, so that each request needs a proof (RFC 9449); with \
             `nonce` each proof needs a nonce, too.",
            ["nonce"];
        "jwt": json!({ "type": "boolean", "default": false }),
            "Whether access tokens are JSON Web Tokens, with the `resource` of the request as their audience.", [true];
        "fail": fail, "What is refused.", [{ "register": "invalid_redirect_uri" }];
    }
}
