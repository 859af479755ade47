//! Resources and prompts of all servers.

use super::*;

/// A server that reports changes of its resources, but not of its prompts.
fn items() -> (Server, mpsc::UnboundedReceiver<String>) {
    let (seen, methods) = mpsc::unbounded_channel();
    let mut lists = 0;
    let server = in_memory(move |message| {
        let method = message["method"].as_str().unwrap_or_default();
        if method.ends_with("/list") {
            let _ = seen.send(method.to_owned());
        }
        match method {
            "initialize" => {
                let capabilities = json!({ "tools": {}, "resources": { "listChanged": true }, "prompts": {} });
                let info = json!({ "name": "s", "version": "1" });
                let greeting =
                    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info });
                vec![result(message, &greeting.to_string())]
            }
            "resources/list" => {
                lists += 1;
                let resources: Vec<_> = (0..lists).map(|n| json!({ "uri": format!("a://{n}"), "name": "a" })).collect();
                vec![result(message, &json!({ "resources": resources }).to_string())]
            }
            "prompts/list" => vec![result(message, r#"{"prompts":[{"name":"greet"}]}"#)],
            "tools/call" => {
                let changed = r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#.to_owned();
                [changed].into_iter().chain(answer("s", &[], message)).collect()
            }
            _ => answer("s", &["change"], message),
        }
    });
    (server, methods)
}

fn methods(seen: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| seen.try_recv().ok()).collect()
}

#[tokio::test]
async fn resources_and_prompts_are_listed_when_they_are_needed_and_again_after_a_change() {
    let ((with, mut seen), without) = (items(), server("without", &[]));
    let hub = Hub::new([member("without", &target(&without)), member("s", &target(&with))], options());
    hub.discover().await.expect("discovers");
    assert_eq!(methods(&mut seen), ["tools/list"]);
    let counts = || hub.status().into_iter().map(|(_, status)| (status.resources, status.prompts)).collect::<Vec<_>>();
    assert_eq!(counts(), [(None, None), (None, None)]);

    let uris = async || {
        let found = hub.items(List::Resources).await;
        found.items().map(|(server, item)| format!("{server} {}", item["uri"])).collect::<Vec<_>>()
    };
    assert_eq!((uris().await, uris().await), (vec!["s \"a://0\"".to_owned()], vec!["s \"a://0\"".to_owned()]));
    assert_eq!(methods(&mut seen), ["resources/list"]);
    for _ in 0..2 {
        let prompts = hub.items(List::Prompts).await;
        let names: Vec<_> = prompts.items().map(|(server, item)| format!("{server} {}", item["name"])).collect();
        assert_eq!(names, ["s \"greet\""]);
    }
    assert_eq!(methods(&mut seen), ["prompts/list", "prompts/list"]);
    assert_eq!(counts(), [(Some(0), Some(0)), (Some(1), Some(1))]);

    let mut events = hub.events();
    text(&hub, "change").await.expect("a result");
    wait_for(&mut events, |event| matches!(event, Event::ItemsChanged(_))).await;
    assert_eq!(hub.known_items(List::Resources).items().count(), 1);
    assert_eq!(uris().await.len(), 2);
    assert_eq!(methods(&mut seen), ["resources/list"]);
    hub.disconnect("s").await.expect("disconnects");
    assert_eq!(counts()[1], (None, None));
    assert!(uris().await.is_empty());
    hub.close().await;
}
