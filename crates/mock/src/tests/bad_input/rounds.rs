//! Exchanges of several messages: rounds of input, tasks, subscriptions, server requests, ids that are in use.

use super::*;
use crate::tests::bad_input::line::Line;

/// The first round of a call that asks back: the state that it gives.
async fn state(line: &mut Line, params: &Json) -> String {
    let frames = line.exchange(modern("first", "tools/call", params.clone()).to_string().as_bytes()).await;
    let result = &frames[0]["result"];
    assert_eq!(result["resultType"], "input_required", "{frames:?}");
    result["requestState"].as_str().expect("a state").to_owned()
}

fn answered(mut params: Json, state: &str) -> Json {
    params["requestState"] = state.into();
    params["inputResponses"] = json!({ "guest": { "action": "accept", "content": { "name": "Ada" } } });
    params
}

async fn call(line: &mut Line, params: Json) -> Json {
    line.exchange(modern("second", "tools/call", params).to_string().as_bytes()).await.remove(0)
}

/// 2026-07-28, Multi Round-Trip Requests: Server Requirements 4 and 5.
#[tokio::test]
async fn a_state_is_taken_for_the_request_that_it_was_made_for_and_no_other() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    for (on, mut line) in Line::open_all(&engine, &server).await.into_iter().filter(|(on, _)| *on != "sse") {
        let ask = json!({ "name": "ask", "arguments": { "n": 1, "m": [2] } });
        let state = state(&mut line, &ask).await;
        let mut flipped = state.clone().into_bytes();
        let last = flipped.len() - 2;
        flipped[last] = if flipped[last] == b'A' { b'B' } else { b'A' };
        let (payload, signature) = state.split_once('.').expect("a dot");
        for (what, wrong) in [
            ("a byte is another one", String::from_utf8(flipped).expect("UTF-8")),
            ("more at the end", format!("{state}-TAMPERED")),
            ("no signature", payload.to_owned()),
            ("an empty signature", format!("{payload}.")),
            ("no payload", format!(".{signature}")),
            ("twice", format!("{state}{state}")),
        ] {
            assert_eq!(
                call(&mut line, answered(ask.clone(), &wrong)).await["error"]["code"],
                -32_602,
                "{what} on {on}"
            );
        }
        for (what, other) in [
            ("another tool", json!({ "name": "ask_again", "arguments": { "n": 1, "m": [2] } })),
            ("another argument", json!({ "name": "ask", "arguments": { "n": 2, "m": [2] } })),
            ("another order of a list", json!({ "name": "ask", "arguments": { "n": 1, "m": [2, 2] } })),
            ("no arguments", json!({ "name": "ask" })),
        ] {
            assert_eq!(call(&mut line, answered(other, &state)).await["error"]["code"], -32_602, "{what} on {on}");
        }
        let get = modern(3, "prompts/get", answered(json!({ "name": "greet", "arguments": { "who": "x" } }), &state));
        assert_eq!(line.exchange(get.to_string().as_bytes()).await[0]["error"]["code"], -32_602, "another method");
        let reordered = answered(json!({ "arguments": { "m": [2.0], "n": 1 }, "name": "ask" }), &state);
        assert_eq!(call(&mut line, reordered).await["result"]["content"][0]["text"], "accept Ada", "the same on {on}");
    }
}

#[tokio::test]
async fn an_expired_state_or_one_of_another_server_is_refused() {
    let ask = json!({ "name": "ask" });
    let mut line = Line::pipe(&engine(&format!("{SCRIPT}requestState: {{ ttl: 0ms }}\n")));
    let lapsed = state(&mut line, &ask).await;
    let refused = async {
        loop {
            let reply = call(&mut line, answered(ask.clone(), &lapsed)).await;
            if reply["error"]["code"] == -32_602 {
                break reply["error"]["message"].clone();
            }
        }
    };
    let message = tokio::time::timeout(PATIENCE, refused).await.expect("it lapses");
    assert_eq!(message, "Invalid requestState: it has expired");
    let script = Script::parse(&Source::new("s", SCRIPT)).expect("a script");
    let mut other = Line::pipe(&Engine::new(script, 2, Journal::default()));
    let foreign = state(&mut other, &ask).await;
    let mut line = Line::pipe(&engine(SCRIPT));
    assert_eq!(call(&mut line, answered(ask, &foreign)).await["error"]["code"], -32_602);
}

/// Error Handling: what is missing is asked for again, what is not known is ignored.
#[tokio::test]
async fn missing_answers_are_requested_again() {
    let mut line = Line::pipe(&engine(SCRIPT));
    let ask = json!({ "name": "ask" });
    let state = state(&mut line, &ask).await;
    for answers in [json!({}), json!({ "gast": { "action": "accept" } })] {
        let params = json!({ "name": "ask", "requestState": state, "inputResponses": answers });
        assert_eq!(call(&mut line, params).await["result"]["resultType"], "input_required", "{answers}");
    }
    let mut params = answered(ask, &state);
    params["inputResponses"]["more"] = json!({ "x": 1 });
    assert_eq!(call(&mut line, params).await["result"]["content"][0]["text"], "accept Ada");
}

/// SEP-2663.
#[tokio::test]
async fn a_task_that_is_over_takes_what_comes_and_stays_as_it_is() {
    let mut line = Line::pipe(&engine(SCRIPT));
    let made = call(&mut line, json!({ "name": "task" })).await;
    let id = made["result"]["taskId"].clone();
    assert_eq!(made["result"]["resultType"], "task", "{made}");
    let mut ask = async |method: &str, params: Json| {
        line.exchange(modern(1, method, params).to_string().as_bytes()).await.remove(0)
    };
    let completed = async {
        while ask("tasks/get", json!({ "taskId": id })).await["result"]["status"] != "completed" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, completed).await.expect("it completes");
    for (method, params) in [
        ("tasks/cancel", json!({ "taskId": id })),
        ("tasks/update", json!({ "taskId": id, "inputResponses": {} })),
        ("tasks/update", json!({ "taskId": id, "inputResponses": { "unknown": { "asked": true } } })),
    ] {
        assert_eq!(ask(method, params).await["result"]["resultType"], "complete", "{method} is acknowledged");
    }
    for params in [
        json!({ "taskId": id }),
        json!({ "taskId": id, "inputResponses": null }),
        json!({ "taskId": id, "inputResponses": [] }),
    ] {
        assert_eq!(ask("tasks/update", params.clone()).await["error"]["code"], -32_602, "{params}");
    }
    assert_eq!(ask("tasks/get", json!({ "taskId": id })).await["result"]["status"], "completed");
}

fn listen(id: impl Into<Json>, filter: Json) -> String {
    modern(id, "subscriptions/listen", json!({ "notifications": filter })).to_string()
}

#[tokio::test]
async fn a_second_subscription_with_the_id_of_the_first_is_refused_and_the_first_goes_on() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    for (on, mut line) in Line::open_all(&engine, &server).await.into_iter().filter(|(on, _)| *on != "sse") {
        let frame = listen("s", json!({ "resourceSubscriptions": ["file:///a"] }));
        line.send(frame.as_bytes()).await;
        assert_eq!(line.next().await["method"], "notifications/subscriptions/acknowledged", "{on}");
        // Basic: Requests.
        line.send(frame.as_bytes()).await;
        assert_eq!(line.next().await["error"]["code"], -32_600, "{on}");
        let updates = modern(2, "tools/call", json!({ "name": "updates" })).to_string();
        line.send(updates.as_bytes()).await;
        let both = [line.next().await, line.next().await];
        let update = both.iter().find(|frame| frame["method"] == "notifications/resources/updated").expect("an update");
        assert_eq!(update["params"]["_meta"][format!("{META}subscriptionId")], "s", "{on}");
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "s" } });
        assert_eq!(line.exchange(cancel.to_string().as_bytes()).await, [0; 0], "it ends without a word");
    }
}

/// Over HTTP requests do not know of each other.
#[tokio::test]
async fn subscriptions_over_http_are_apart_even_with_one_id() {
    let server = serve(&engine(SCRIPT)).await;
    let frame = listen("s", json!({ "resourceSubscriptions": ["file:///a"] }));
    let open = async || {
        let request = http::client().post(server.url(rehearse_protocol::Transport::Http).expect("a URL"));
        let headers = modern::mirrored(frame.as_bytes());
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let mut stream = request.body(frame.clone()).send().await.expect("a stream");
        let first = stream.chunk().await.expect("reads").expect("an event");
        assert!(String::from_utf8_lossy(&first).contains("acknowledged"), "{first:?}");
        stream
    };
    let mut streams = [open().await, open().await];
    let updates = modern(2, "tools/call", json!({ "name": "updates" })).to_string();
    let reply =
        modern::post(&server.address().to_string(), updates.as_bytes(), &modern::mirrored(updates.as_bytes())).await;
    assert_eq!(reply.status, 200);
    for stream in &mut streams {
        let event = tokio::time::timeout(PATIENCE, stream.chunk()).await.expect("in time").expect("reads");
        assert!(String::from_utf8_lossy(&event.expect("an event")).contains("resources/updated"));
    }
}

/// 2025-11-25, Elicitation; JSON-RPC 2.0, 5.
#[tokio::test]
async fn answers_of_a_legacy_client_that_are_wrong_end_the_call_as_an_error_of_the_tool() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    for (on, mut line) in Line::open_all(&engine, &server).await {
        line.greet(&json!({ "elicitation": {} })).await;
        for (answer, is_error) in [
            (json!({ "result": { "action": "accept", "content": { "name": "Ada" } } }), false),
            (json!({ "result": { "action": "decline" } }), false),
            (json!({ "result": {} }), true),
            (json!({ "result": { "action": "maybe" } }), true),
            (json!({ "result": { "action": "accept" } }), true),
            (json!({ "result": { "action": "accept", "content": { "name": 5 } } }), true),
            (json!({ "result": null }), true),
            (json!({ "result": [1] }), true),
            (json!({ "error": { "code": -1, "message": "no" } }), true),
        ] {
            line.send(request(1, "tools/call", json!({ "name": "ask" })).to_string().as_bytes()).await;
            let question = line.next().await;
            assert_eq!(question["method"], "elicitation/create", "{on}");
            // What is not an answer to it leaves it open.
            let nothing = json!({ "jsonrpc": "2.0", "id": "nope", "result": { "action": "decline" } });
            assert_eq!(line.exchange(nothing.to_string().as_bytes()).await, [0; 0], "{on}");
            let broken = json!({ "jsonrpc": "2.0", "id": question["id"], "result": {}, "error": {} });
            assert_eq!(line.exchange(broken.to_string().as_bytes()).await[0]["error"]["code"], -32_600, "{on}");
            let mut frame = json!({ "jsonrpc": "2.0", "id": question["id"] });
            for (name, value) in answer.as_object().expect("an object") {
                frame[name] = value.clone();
            }
            line.send(frame.to_string().as_bytes()).await;
            let result = line.next().await;
            assert_eq!(result["id"], 1, "{on}");
            assert_eq!(result["result"]["isError"] == true, is_error, "{answer} on {on}: {result}");
            assert!(result.get("error").is_none(), "{answer} on {on}: {result}");
            assert_eq!(line.exchange(frame.to_string().as_bytes()).await, [0; 0], "answered twice on {on}");
        }
    }
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_and_free_again_after_a_cancellation() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    for (on, mut line) in Line::open_all(&engine, &server).await {
        line.greet(&json!({ "elicitation": {} })).await;
        let ask = request("x", "tools/call", json!({ "name": "ask" })).to_string();
        line.send(ask.as_bytes()).await;
        assert_eq!(line.next().await["method"], "elicitation/create", "{on}");
        assert_eq!(line.exchange(ask.as_bytes()).await[0]["error"]["code"], -32_600, "Basic: Requests, on {on}");
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "x" } });
        let mut replies = line.exchange(cancel.to_string().as_bytes()).await;
        let idle = async {
            while engine.in_flight() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, idle).await.expect("it stops");
        let plain = request("x", "tools/call", json!({ "name": "plain" })).to_string();
        replies.extend(line.exchange(plain.as_bytes()).await);
        // No response to what was cancelled; and the question is withdrawn with it.
        assert_eq!(replies.len(), 2, "Cancellation, on {on}: {replies:?}");
        assert_eq!(replies[0]["method"], "notifications/cancelled", "{on}");
        assert_eq!(replies[1]["result"]["content"][0]["text"], "x", "{on}");
    }
}
