use bytes::Bytes;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use rehearse_document::{Source, parse_yaml};
use rehearse_testing::table;

pub(super) const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"text":"hello"}}"#;

/// Reads what stands under `do`.
pub(super) fn fault(text: &str) -> Result<Vec<Fault>, String> {
    let source = Source::new("f", text);
    let read = |node: Node| {
        if node.as_items().is_some() { node.each(Fault::read) } else { Fault::read(&node).map(|it| vec![it]) }
    };
    parse_yaml(&source).and_then(read).map_err(|problems| problems.in_source(&source).to_string())
}

/// The mistakes in what stands under `do`.
pub(super) fn error(text: &str) -> String {
    fault(text).expect_err(text)
}

fn notification(number: usize) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n{number}\"}}").into()
}

/// An answer with three notifications, a question and a response.
fn answer() -> Vec<ResponsePart> {
    let question = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"q"}"#);
    let frames = [notification(1), notification(2), question, notification(3)].map(Packet::on_the_way);
    let response = Packet::response(200, Bytes::from_static(RESPONSE.as_bytes()));
    let packets = frames.into_iter().chain([response]).map(ResponsePart::Packet);
    [ResponsePart::Begin].into_iter().chain(packets).chain([ResponsePart::Stop(Stop::Finish)]).collect()
}

pub(super) fn parts(text: &str, seed: u64) -> Vec<ResponsePart> {
    let faults = fault(text).unwrap_or_else(|error| panic!("{error}"));
    let mut chain = Chain::new(Some(&7.into()), faults.into_iter().map(|fault| (fault, seed)));
    answer().into_iter().flat_map(|part| chain.push(part)).collect()
}

/// What becomes of an answer, in words: `n1` is its first notification, `q` its question, `r` its response.
pub(super) fn apply(text: &str) -> Vec<String> {
    let word = |part: ResponsePart| match part {
        ResponsePart::Packet(Packet { bytes, drip, cut, .. }) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let text = match text.split("\"method\":\"").nth(1) {
                Some(rest) => rest.trim_end_matches("\"}").to_owned(),
                None if text == RESPONSE => "r".into(),
                None => text,
            };
            let drip = drip.map(|drip| format!(" dripping {drip:?}")).unwrap_or_default();
            text + &drip + &cut.map(|cut| format!(" cut {cut:?}")).unwrap_or_default()
        }
        part => format!("{part:?}"),
    };
    parts(text, 1).into_iter().map(word).collect()
}

/// The bytes of the response.
pub(super) fn response(text: &str) -> Bytes {
    let packets = parts(text, 1).into_iter().filter_map(|part| match part {
        ResponsePart::Packet(packet) if packet.kind == FrameKind::Response => Some(packet.bytes),
        _ => None,
    });
    packets.last().expect("a response")
}

#[test]
fn every_fault_has_an_example_and_its_transports() {
    for info in ALL {
        let read = fault(info.example).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.iter().map(|it| it.info().name).collect::<Vec<_>>(), [info.name]);
        assert!(!info.transports.is_empty() && !info.summary.ends_with('.'), "{}", info.name);
        let bare = fault(info.name);
        assert!(bare.is_ok() || bare.is_err_and(|error| error.contains("needs a")), "{}", info.name);
    }
}

#[test]
fn the_faults_of_a_chain_work_one_after_the_other_and_nothing_follows_the_end() {
    assert_eq!(
        apply("[{ delay: 1s }, { drop: notifications }, { close: { after: 5 } }, duplicate]"),
        ["Wait(1s)", "Begin", "q", "r cut (5, Close(1000))", "r cut (5, Close(1000))", "Stop(Finish)"]
    );
    assert_eq!(apply("[{ close: { after: 1000 } }, { exit: 3 }]"), ["Stop(Exit(3))"]);
    assert_eq!(apply("[{ reset: { after: 1000 } }, { delay: 1s }]").last().map(String::as_str), Some("Stop(Reset)"));
}

#[test]
fn mistakes_have_a_position_and_a_hint() {
    for [text, expected] in table::rows(include_str!("mistakes.txt"), "any fault") {
        assert_eq!(error(&text), expected, "{text}");
    }
}

#[test]
fn sizes_are_read_in_decimal_and_binary_units() {
    for (text, size) in
        [("20", 20), ("'20 b'", 20), ("2kb", 2000), ("1MB", 1_000_000), ("1 KiB", 1024), ("1GiB", 1 << 30)]
    {
        let read = parse_yaml(&Source::new("f", text)).and_then(|node| node.bytes());
        assert_eq!(read, Ok(size), "{text}");
    }
}

#[test]
fn a_packet_that_drips_pauses_between_its_pieces_and_one_that_is_cut_loses_its_framing() {
    let framed = |bytes: Bytes, is_whole| {
        if is_whole { [b"<", &bytes[..], b">"] } else { [b"<", &bytes[..], b""] }.concat().into()
    };
    let steps = |drip, cut| {
        let packet = Packet { drip, cut, ..Packet::new(FrameKind::Response, Bytes::from_static(b"abcd")) };
        packet
            .steps(framed)
            .map(|step| match step {
                SendStep::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                step => format!("{step:?}"),
            })
            .collect::<Vec<_>>()
    };
    let drip = Some((4, Duration::from_millis(3)));
    assert_eq!(steps(None, None), ["<abcd>"]);
    assert_eq!(steps(drip, None), ["<abc", "Wait(3ms)", "d>"]);
    assert_eq!(steps(None, Some((2, Stop::Reset))), ["<ab", "Stop(Reset)"]);
    assert_eq!(steps(drip, Some((3, Stop::Hang))), ["<abc", "Stop(Hang)"]);
    assert_eq!(steps(None, Some((0, Stop::Hang))), ["Stop(Hang)"]);
}

fn any_fault() -> impl Strategy<Value = String> {
    let examples: Vec<_> = ALL.iter().map(|info| info.example.to_owned()).collect();
    let more =
        ["hang", "garbage: random", "garbage: invalid_utf8", "wrong_id: missing", "drop: notifications", "reorder"];
    let more = more.map(str::to_owned);
    prop_oneof![
        proptest::sample::select([&examples[..], &more].concat()),
        (0usize..70).prop_map(|after| format!("close: {{ after: {after} }}")),
        (0usize..70).prop_map(|after| format!("truncate: {{ after: {after} }}")),
        (1usize..90).prop_map(|size| format!("oversize: {size}")),
    ]
}

proptest! {
    #[test]
    fn any_chain_ends_once_begins_at_most_once_and_does_the_same_with_the_same_seed(
        faults in proptest::collection::vec(any_fault(), 0..5), seed: u64,
    ) {
        prop_assume!(!faults.iter().any(|it| it.starts_with("oversize: 40MB")));
        let lines: String = faults.iter().map(|it| format!("- {it}\n")).collect();
        let text = if faults.is_empty() { "[]" } else { &lines };
        let sent = parts(text, seed);
        let stops = |part: &ResponsePart| matches!(part, ResponsePart::Stop(_));
        prop_assert!(sent.last().is_some_and(stops), "{:?}", sent);
        prop_assert_eq!(sent.iter().filter(|it| stops(it)).count(), 1);
        prop_assert!(sent.iter().filter(|it| **it == ResponsePart::Begin).count() <= 1);
        let begin = sent.iter().position(|it| *it == ResponsePart::Begin).unwrap_or(sent.len());
        prop_assert!(!sent[..begin].iter().any(|it| matches!(it, ResponsePart::Packet(_))));
        prop_assert_eq!(parts(text, seed), sent);
    }
}
