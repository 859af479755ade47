//! Changes while a hub is used.

use super::*;
#[cfg(unix)]
use rehearse_client::{CommandSpec, StderrSink, StopGrace};
#[cfg(unix)]
use rehearse_testing::is_running;

#[tokio::test]
async fn a_server_that_logs_to_stdout_is_usable_and_reported() {
    let server = in_memory(|message| {
        let noise = (message["method"] == "tools/call").then(|| "npm warn deprecated".to_owned());
        noise.into_iter().chain(answer("s", &["echo"], message)).collect()
    });
    let hub = Hub::new([member("s", &target(&server))], options());
    hub.discover().await.expect("discovers");
    assert_eq!(text(&hub, "echo").await.expect("a result"), "s: echo");
    let unsolicited: Vec<_> =
        hub.take_unsolicited().into_iter().map(|(server, stray)| format!("{server}: {stray}")).collect();
    assert!(unsolicited.len() == 1 && unsolicited[0].contains("npm warn deprecated"), "{unsolicited:?}");
    assert!(hub.take_unsolicited().is_empty());
    hub.close().await;
}

#[tokio::test]
async fn a_changed_list_changes_the_registry() {
    let (server, _methods) = changing();
    let hub = Hub::new([member("s", &target(&server))], options());
    hub.discover().await.expect("discovers");
    let mut events = hub.events();
    text(&hub, "change").await.expect("a result");
    wait_for(&mut events, |event| matches!(event, Event::ToolsChanged)).await;
    assert_eq!(names(&hub), ["s/other", "s/die", "s/never"]);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_restored_by_retries() {
    let (server, _methods) = changing();
    let hub = Hub::new([member("s", &target(&server))], options());
    hub.discover().await.expect("discovers");
    let mut events = hub.events();
    assert!(matches!(text(&hub, "die").await, Err(CallError::Failed(Failure::Disconnected { .. }))));
    wait_for(&mut events, |event| matches!(event, Event::Disconnected { .. })).await;
    assert_eq!(states(&hub), [ConnectionState::Failed]);
    hub.close().await;

    let retry = Retry { attempts: 2, pause: Duration::from_secs(1), max_pause: Duration::from_secs(1) };
    let (server, _methods) = changing();
    let hub = Hub::new([member("s", &target(&server))], HubOptions { retry, repeats_calls: true, ..options() });
    hub.discover().await.expect("discovers");
    let mut events = hub.events();
    assert!(matches!(text(&hub, "die").await, Err(CallError::Failed(Failure::Disconnected { .. }))));
    wait_for(&mut events, |event| matches!(event, Event::ToolsChanged)).await;
    assert_eq!((states(&hub)[0], names(&hub)[0].as_str()), (ConnectionState::Connected, "s/other"));
    hub.close().await;
}

#[tokio::test]
async fn a_changed_config_restarts_only_changed_servers() {
    let (one, two, three) = (server("one", &["a"]), server("two", &["b"]), server("three", &["c"]));
    let hub = Hub::new([member("one", &target(&one)), member("two", &target(&two))], options());
    hub.discover().await.expect("discovers");
    let mut renamed = member("two", &target(&two));
    renamed.config.timeouts.call = Duration::from_secs(5);
    let allowed = HubServer { is_trusted: true, ..member("one", &target(&one)) };
    let reloaded = hub.reload([member("three", &target(&three)), renamed, allowed]).await.expect("reloads");
    let names_of = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((names_of(&reloaded.added), names_of(&reloaded.restarted)), (vec!["three".into()], vec!["two".into()]));
    assert_eq!(names(&hub), ["three/c", "two/b", "one/a"]);
    assert!(hub.server("one").expect("there").is_trusted);
    let reloaded = hub.reload([member("one", &target(&one))]).await.expect("reloads");
    assert_eq!(
        (names_of(&reloaded.removed), names(&hub)),
        (vec!["three".into(), "two".into()], vec!["one/a".to_owned()])
    );
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_responding_is_disconnected() {
    let server = in_memory(|message| match message["method"].as_str() {
        Some("ping") => Vec::new(),
        _ => answer("s", &["echo"], message),
    });
    let health = Some(Duration::from_secs(30));
    let hub = Hub::new([member("s", &target(&server))], HubOptions { health_interval: health, ..options() });
    hub.discover().await.expect("discovers");
    let mut events = hub.events();
    wait_for(&mut events, |event| matches!(event, Event::Disconnected { .. })).await;
    assert_eq!(states(&hub), [ConnectionState::Failed]);
    let (_, status) = &hub.status()[0];
    assert_eq!(status.last_error.as_deref(), Some("ping was not answered"));
    assert_eq!(text(&hub, "echo").await.expect("connects again"), "s: echo");
    hub.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_hanging_server_is_replaced_at_once_and_stopped_before_the_hub_closes() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = r#"
        answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
        echo pid $$ >&2
        read -r line; answer 0 '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
        read -r line; read -r line; answer 1 '{"tools":[]}'
        if mkdir been; then exec sleep 600; fi
        id=2
        while read -r line; do answer $id '{}'; id=$((id + 1)); done"#;
    let spec = CommandSpec {
        program: "sh".into(),
        args: vec!["-c".into(), script.to_owned()],
        cwd: Some(folder.path().to_owned()),
        grace: StopGrace { exit: Duration::from_secs(600), ..StopGrace::default() },
        ..CommandSpec::default()
    };
    let mut server = member("s", &Target::Stdio(spec));
    server.config.timeouts.call = Duration::from_millis(500);
    let shutdown = server.config.shutdown.clone();
    let (sender, mut lines) = mpsc::unbounded_channel();
    let stderr: Option<StderrSink> = Some(Arc::new(move |line| drop(sender.send(line.line))));
    let retry = Retry { attempts: 1, pause: Duration::ZERO, max_pause: Duration::ZERO };
    let hub = Hub::new(
        [server],
        HubOptions { health_interval: Some(Duration::from_millis(100)), retry, stderr, ..options() },
    );
    let mut events = hub.events();
    hub.discover().await.expect("discovers");
    let replaced = async {
        wait_for(&mut events, |event| matches!(event, Event::Disconnected { .. })).await;
        wait_for(&mut events, |event| matches!(event, Event::ToolsChanged)).await;
    };
    tokio::time::timeout(Duration::from_secs(20), replaced).await.expect("before the hanging server has ended");
    let first = lines.recv().await.expect("a line").trim_start_matches("pid ").to_owned();
    assert!(is_running(&first), "it still runs");
    shutdown.cancel();
    hub.close().await;
    assert!(!is_running(&first));
}
