use super::*;
use crate::faults::ALL;

/// Each fault with what becomes of the answer of `late`, and on HTTP also of `now`.
const SEEN: &str = include_str!("table.txt");

#[tokio::test]
async fn a_client_sees_of_each_fault_what_the_table_says() {
    let mut seen = String::new();
    for line in SEEN.lines() {
        let (transport, _) = line.trim_start().split_once(' ').unwrap_or_default();
        let fault = || seen.rsplit("\n\n").next().and_then(|block| block.lines().next()).expect("a fault").to_owned();
        let engine = || on_call(&fault());
        let actual = match transport {
            _ if !line.starts_with("  ") => line.to_owned(),
            "stdio" => stdio(engine(), &[call(MODERN, 1, "late")]).await,
            "json" => http(engine(), "now").await,
            "events" => http(engine(), "late").await,
            "session" => session(engine(), &[call("2025-11-25", 1, "late")]).await,
            "sse" => sse(engine(), &[call("2024-11-05", 1, "late")]).await,
            "ws" => ws(engine(), &[call(MODERN, 1, "late")]).await,
            _ => panic!("{line}"),
        };
        let actual = if line.starts_with("  ") { format!("  {transport:7} |{actual}") } else { actual };
        seen.push_str(&format!("{}\n", actual.trim_end()));
    }
    // Wine closes a connection that is to be reset.
    let shown = |line: &str| match cfg!(windows) {
        true => line.split('~').next().unwrap_or_default().trim_end().to_owned(),
        false => line.to_owned(),
    };
    let different = seen.lines().zip(SEEN.lines()).filter(|(seen, table)| shown(seen) != shown(table));
    assert_eq!(different.collect::<Vec<_>>(), []);
    let missing: Vec<_> = ALL.iter().map(|it| it.name).filter(|name| !SEEN.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
}
