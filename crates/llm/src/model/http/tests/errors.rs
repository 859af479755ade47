use std::sync::atomic::AtomicU32;

use serde_json::json;

use super::*;

fn busy(retry_after: Option<Duration>) -> ModelError {
    ModelError::Rejected { endpoint: "e".into(), status: 429, message: String::new(), retry_after }
}

/// How many tries there were, how long it took, and the result.
async fn retry(policy: RetryPolicy, failures: u32, error: ModelError) -> (u32, Duration, Result<(), ModelError>) {
    let (tries, start) = (AtomicU32::new(0), tokio::time::Instant::now());
    let attempt = || async {
        let earlier = tries.fetch_add(1, Ordering::Relaxed);
        if earlier < failures { Err(error.clone()) } else { Ok(()) }
    };
    let result = policy.run(attempt, || true, |_, _| {}).await;
    (tries.load(Ordering::Relaxed), start.elapsed(), result)
}

#[tokio::test(start_paused = true)]
async fn a_busy_provider_is_asked_again_after_the_time_that_it_names() {
    let usual = RetryPolicy::default();
    let ms = Duration::from_millis;
    assert_eq!(retry(usual, 2, busy(None)).await, (3, ms(1500), Ok(())));
    assert_eq!(retry(usual, 9, busy(None)).await, (3, ms(1500), Err(busy(None))));
    let asked = busy(Some(ms(7000)));
    assert_eq!(retry(usual, 1, asked).await, (2, ms(7000), Ok(())));
    let too_long = busy(Some(ms(60_001)));
    assert_eq!(retry(usual, 1, too_long.clone()).await, (1, ms(0), Err(too_long)));
    assert_eq!(retry(RetryPolicy::NEVER, 1, busy(None)).await, (1, ms(0), Err(busy(None))));
    let many = RetryPolicy { retries: 40, max_wait: ms(1000), ..usual };
    assert_eq!(retry(many, 40, busy(None)).await, (41, ms(39_500), Ok(())));
    let refused = ModelError::Rejected { endpoint: "e".into(), status: 401, message: String::new(), retry_after: None };
    assert_eq!(retry(usual, 1, refused.clone()).await, (1, ms(0), Err(refused)));
}

#[tokio::test]
async fn a_request_is_repeated_over_the_network() {
    let server = MockServer::start().await;
    let busy = ResponseTemplate::new(529).insert_header("retry-after-ms", "1");
    Mock::given(method("POST")).respond_with(busy).up_to_n_times(2).mount(&server).await;
    let whole = json!({ "content": [], "stop_reason": "end_turn" });
    Mock::given(method("POST")).respond_with(json_answer(&whole.to_string())).mount(&server).await;
    let options = HttpModelOptions { retry: RetryPolicy::default(), ..options(Anthropic, &server.uri()) };
    let model = HttpModel::new(options).expect("a model");
    let deltas = Mutex::new(Vec::new());
    let answer = ask(&model, Some(&|delta| deltas.lock().expect("no panic").push(delta))).await;
    assert_eq!(answer.expect("an answer").stop, StopReason::EndTurn);
    let retry =
        Delta::Retry { error: format!("{}/v1/messages: HTTP 529", server.uri()), wait: Duration::from_millis(1) };
    assert_eq!(deltas.into_inner().expect("no panic"), [retry.clone(), retry]);
    assert_eq!(server.received_requests().await.expect("recorded").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_last_error_names_the_first_one() {
    let gone = |why: &str| ModelError::Unreachable { endpoint: "e".into(), why: why.into() };
    for (first, text) in [
        (gone("it closed the connection"), "e: refused (the first try: it closed the connection)"),
        (busy(None), "e: refused (the first try: HTTP 429)"),
        (gone("refused"), "e: refused"),
    ] {
        let errors = Mutex::new(vec![gone("refused"), gone("refused"), first]);
        let attempt = || async { Err::<(), _>(errors.lock().expect("no panic").pop().expect("three tries")) };
        let error = RetryPolicy::default().run(attempt, || true, |_, _| {}).await.expect_err("no answer");
        assert_eq!(error.to_string(), text);
    }
}

#[tokio::test]
async fn nothing_is_repeated_after_the_first_piece() {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for (text, tries) in [(piece, 1), (": nothing\n\n", 3)] {
        let server = MockServer::start().await;
        Mock::given(method("POST")).respond_with(events(text)).mount(&server).await;
        let retry = RetryPolicy { first_wait: Duration::ZERO, ..RetryPolicy::default() };
        let model = HttpModel::new(HttpModelOptions { retry, ..options(OpenAi, &server.uri()) });
        let error = ask(&model.expect("a model"), Some(&|_| {})).await.expect_err("a cut stream");
        assert!(error.to_string().ends_with("the connection ended before the answer was complete"), "{error}");
        assert_eq!(server.received_requests().await.expect("recorded").len(), tries);
    }
}

#[tokio::test]
async fn an_error_has_the_message_of_the_provider_and_never_the_key() {
    let answer = |status, body: &str, media_type: &str| ResponseTemplate::new(status).set_body_raw(body, media_type);
    let json = |status, body: &str| answer(status, body, "application/json");
    let unknown_key = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid key sk-secret"}}"#;
    for (answer, expected) in [
        (json(401, unknown_key), "HTTP 401: invalid key ***"),
        (json(404, r#"{"error":{"message":"no model m","code":"model_not_found"}}"#), "HTTP 404: no model m"),
        (json(400, r#"{"detail":"bad"}"#), "HTTP 400: bad"),
        (json(400, r#"{"error":"bad"}"#), "HTTP 400: bad"),
        (answer(502, "no upstream\nsk-secret", "text/plain"), "HTTP 502: no upstream"),
        (answer(502, "<html>sk-secret</html>", "text/html"), "HTTP 502"),
        (
            answer(307, "", "text/plain").insert_header("location", "http://127.0.0.1:1/other?a=b"),
            "HTTP 307: it redirects to http://127.0.0.1:1/other",
        ),
        (json_answer(r#"{"error":{"message":"no credits","code":402}}"#), "HTTP 402: no credits"),
        (
            json_answer("sk-secret"),
            "the answer is not one of this API: it is not JSON: expected value at line 1 column 1",
        ),
    ] {
        let (_server, model) = model(OpenAi, answer).await;
        let error = ask(&model, None).await.expect_err(expected).to_string();
        assert_eq!(error, format!("{}: {expected}", model.endpoint()));
    }
    let long = json!({ "message": "x".repeat(1000) }).to_string();
    let (_server, model) = model(OpenAi, json(400, &long).insert_header("retry-after", "2.5")).await;
    let ModelError::Rejected { message, retry_after, .. } = ask(&model, None).await.expect_err("400") else {
        panic!("400")
    };
    assert_eq!((message.len(), retry_after), (500, Some(Duration::from_millis(2500))));
}

#[tokio::test]
async fn a_key_that_is_a_word_is_not_hidden() {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(404).set_body_raw(r#"{"error":"none of the models"}"#, "application/json");
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let key = Some(ApiKey::new("none"));
    let model = HttpModel::new(HttpModelOptions { key, ..options(Provider::OpenAi, &server.uri()) });
    let error = ask(&model.expect("a model"), None).await.expect_err("404");
    assert!(error.to_string().ends_with("HTTP 404: none of the models"), "{error}");
}

#[tokio::test]
async fn an_error_in_a_stream_has_a_status() {
    let failed =
        json!({ "status": "failed", "output": [], "error": { "code": "server_error", "message": "Overloaded" } });
    for (api, event, expected) in [
        (Anthropic, json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }), 529),
        (OpenAi, json!({ "error": { "message": "Overloaded", "type": "server_error" } }), 500),
        (OpenAiResponses, json!({ "type": "error", "code": "rate_limit_exceeded", "message": "Overloaded" }), 429),
        (OpenAiResponses, json!({ "type": "response.failed", "response": failed }), 500),
    ] {
        let event = format!("data: {event}\n\n");
        let error = stream(api, &event).await.0.expect_err(&event);
        let ModelError::Rejected { status, message, .. } = error else { panic!("{error}") };
        assert_eq!((status, message.as_str()), (expected, "Overloaded"));
    }
}

#[tokio::test]
async fn answers_of_another_form_are_errors() {
    let begun = r#"{"type":"message_start","message":{}}"#;
    for (api, events) in [
        (Anthropic, vec!["{"]),
        (Anthropic, vec![r#"{"type":"message_start","message":7}"#]),
        (Anthropic, vec![r#"{"type":"message_delta","delta":7}"#, r#"{"type":"message_stop"}"#]),
        (Anthropic, vec![begun, r#"{"type":"content_block_start","index":4000000000,"content_block":{}}"#]),
        (Anthropic, vec![begun, r#"{"type":"content_block_delta","index":0,"delta":{}}"#]),
        (Anthropic, vec![begun, r#"{"type":"message_stop"}"#]),
        (OpenAi, vec!["7"]),
        (OpenAi, vec!["[DONE]"]),
        (OpenAi, vec![r#"{"choices":[{"delta":{"tool_calls":[{"index":7}]}}]}"#]),
        (OpenAiResponses, vec![r#"{"type":"response.completed","response":7}"#]),
        (OpenAiResponses, vec![r#"{"type":"response.completed","response":{"output":[{"type":"function_call"}]}}"#]),
    ] {
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let error = stream(api, &text).await.0.expect_err(&text);
        assert!(matches!(error, ModelError::Malformed { .. }), "{text}: {error}");
    }
    for whole in ["7", "{}", r#"{"content":[7],"choices":[7],"output":[{"type":"function_call","call_id":7}]}"#] {
        for api in Provider::ALL {
            let (_server, model) = model(api, json_answer(whole)).await;
            let error = ask(&model, None).await.expect_err(whole);
            assert!(matches!(error, ModelError::Malformed { .. }), "{api} {whole}: {error}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_does_not_answer_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("http://{}", listener.local_addr().expect("bound"));
    let limit = Duration::from_millis(20);
    let silent = HttpModelOptions { timeout: limit, ..options(Anthropic, &uri) };
    let error = ask(&HttpModel::new(silent).expect("a model"), None).await.expect_err("silence");
    assert_eq!(error, ModelError::TimedOut { endpoint: format!("{uri}/v1/messages"), limit });
    drop(listener);
    let model = HttpModel::new(options(Anthropic, &uri)).expect("a model");
    let error = ask(&model, None).await.expect_err("nobody");
    assert!(matches!(error, ModelError::Unreachable { .. }) && error.is_temporary(), "{error}");
}
