use std::{pin::pin, time::Duration};

use futures_util::FutureExt;

use super::*;
use rehearse_protocol::{Closed, Id};

fn receive(recorder: &ClientRecorder, text: &'static str) {
    recorder.record(Direction::ServerToClient, Bytes::from_static(text.as_bytes()));
}

fn by_id(id: &Id) -> ResponseFilter<'_> {
    ResponseFilter { id: Some(id), unaddressed: false, unsolicited: AcceptUnsolicited::None }
}

#[tokio::test(start_paused = true)]
async fn frames_carry_the_time_since_the_connection_was_opened() {
    let recorder = ClientRecorder::new();
    tokio::time::advance(Duration::from_millis(1500)).await;
    receive(&recorder, "{}");
    recorder.clone().record(Direction::ClientToServer, Bytes::from_static(b"x"));
    let frames = recorder.since(0);
    assert_eq!(frames.iter().map(|frame| frame.at.as_millis()).collect::<Vec<_>>(), [1500, 1500]);
    assert_eq!((recorder.end(), recorder.since(1).len(), recorder.since(9).len()), (2, 1, 0));
}

#[tokio::test]
async fn dropped_frames_keep_their_numbers_and_answers_are_still_found() {
    let recorder = ClientRecorder::with_limit(2);
    let id = Id::from(7);
    let mut early = pin!(recorder.wait_for_response(0, by_id(&id)));
    assert!(early.as_mut().now_or_never().is_none());
    for _ in 0..5 {
        receive(&recorder, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    }
    receive(&recorder, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    assert_eq!((recorder.end(), recorder.since(0).len(), recorder.since(5).len()), (6, 2, 1));
    assert_eq!(early.await.map(|matched| matched.index), Some(5));
    assert_eq!(recorder.find_response(0, by_id(&id)).map(|matched| matched.index), Some(5));
    let (index, _) = recorder.wait_for(1, |_| true).await.expect("a frame");
    assert_eq!(index, 4);
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_is_seen_although_events_flow() {
    let (recorder, mut seen) = (ClientRecorder::with_limit(1), 0);
    let flow = async {
        while seen < 10_000 && recorder.has_more(seen).await {
            receive(&recorder, "{}");
            seen += 1;
        }
    };
    receive(&recorder, "{}");
    assert!(tokio::time::timeout(Duration::ZERO, flow).await.is_err());
}

#[tokio::test]
async fn nothing_more_comes_when_no_more_is_kept() {
    let recorder = ClientRecorder::of_beginning(2, 100, Instant::now());
    receive(&recorder, "1");
    let mut waiting = pin!(recorder.has_more(2));
    assert!(waiting.as_mut().now_or_never().is_none());
    receive(&recorder, "2");
    receive(&recorder, "3");
    assert!(recorder.is_full() && !waiting.await);
    assert_eq!((recorder.since(0).len(), recorder.bytes(), recorder.largest()), (2, 2, 100));
    assert!(recorder.wait_for(2, |_| true).await.is_none());
}

#[test]
fn a_second_process_has_a_record_of_its_own_with_the_same_limit() {
    let first = ClientRecorder::with_limit(2);
    let (sender, seen) = std::sync::mpsc::channel();
    first.on_another(move |another| sender.send(another.clone()).expect("a receiver"));
    let another = first.another(first.take_see_another());
    for _ in 0..5 {
        receive(&another, "{}");
    }
    assert!(seen.recv().is_ok_and(|it| it.is_same_as(&another)) && another.is_another());
    assert_eq!((another.end(), another.since(0).len(), first.end()), (5, 2, 0));
}

#[tokio::test]
async fn a_waiter_sees_old_and_new_frames_once_each() {
    let recorder = ClientRecorder::new();
    receive(&recorder, "0");
    receive(&recorder, "1");
    let mut shown = Vec::new();
    {
        let mut waiting = pin!(recorder.wait_for(1, |frame| {
            shown.push(frame.bytes.clone());
            frame.bytes == "3"
        }));
        assert!(waiting.as_mut().now_or_never().is_none());
        receive(&recorder, "2");
        assert!(waiting.as_mut().now_or_never().is_none());
        receive(&recorder, "3");
        let (index, frame) = waiting.await.expect("a frame");
        assert_eq!((index, &frame.bytes[..]), (3, &b"3"[..]));
    }
    assert_eq!(shown, ["1", "2", "3"]);
}

#[tokio::test]
async fn closing_ends_every_wait_and_keeps_the_first_reason() {
    let recorder = ClientRecorder::new();
    let (mut any, id) = (pin!(recorder.wait_for(0, |_| false)), Id::from(1));
    let mut answer = pin!(recorder.wait_for_response(0, by_id(&id)));
    assert!(any.as_mut().now_or_never().is_none() && answer.as_mut().now_or_never().is_none());
    recorder.close(Closed::by_server("gone").broken());
    recorder.close(Closed::by_client("later"));
    assert!(any.await.is_none() && answer.await.is_none());
    assert_eq!(recorder.closed(), Some(Closed::by_server("gone").broken()));
    assert!(recorder.wait_for_response(0, by_id(&id)).await.is_none());
}

#[tokio::test]
async fn an_answer_is_found_by_its_id_before_and_after_it_came() {
    let recorder = ClientRecorder::new();
    let id = Id::from(7);
    let mut early = pin!(recorder.wait_for_response(0, by_id(&id)));
    assert!(early.as_mut().now_or_never().is_none());
    receive(&recorder, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    receive(&recorder, r#"{"jsonrpc":"2.0","id":"7","result":{}}"#);
    assert!(early.as_mut().now_or_never().is_none(), "neither a request nor another type of id answers");
    recorder.record(Direction::ClientToServer, Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"result":1}"#));
    receive(&recorder, r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#);
    let batch = &br#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#[..];
    assert_eq!(early.await.expect("an answer").frame.bytes, batch);
    assert_eq!(recorder.wait_for_response(0, by_id(&id)).await.expect("an answer").frame.bytes, batch);
    assert!(recorder.find_response(recorder.end(), by_id(&id)).is_none());
}

#[tokio::test]
async fn an_invalid_answer_with_a_readable_id_is_an_answer() {
    let recorder = ClientRecorder::new();
    receive(&recorder, r#"{"jsonrpc":"1.0","id":7,"result":{}}"#);
    assert!(recorder.wait_for_response(0, by_id(&Id::from(7))).await.is_some());
}

#[tokio::test]
async fn an_unsolicited_frame_answers_the_only_request_that_accepts_it() {
    let recorder = ClientRecorder::new();
    let (one, two) = (Id::from(1), Id::from(2));
    let any = |id| ResponseFilter { id: Some(id), unaddressed: false, unsolicited: AcceptUnsolicited::Any };
    recorder.record(Direction::ClientToServer, Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"a"}"#));
    let mut first = pin!(recorder.wait_for_response(0, any(&one)));
    {
        let mut second = pin!(recorder.wait_for_response(0, any(&two)));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        receive(&recorder, "between two");
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    }
    receive(&recorder, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    assert!(first.as_mut().now_or_never().is_none());
    receive(&recorder, "for one");
    let matched = first.await.expect("an answer");
    assert_eq!((&matched.frame.bytes[..], matched.index), (&b"for one"[..], 3));
    assert!(matches!(matched.unsolicited, Some(UnsolicitedFrame::NotAMessage { .. })));
    assert_eq!(
        recorder.wait_for_response(0, any(&two)).await.expect("an answer").index,
        1,
        "the first one that is here"
    );
    assert!(recorder.find_response(0, by_id(&one)).is_none());
}

#[tokio::test]
async fn invalid_messages_can_be_ignored_without_other_unsolicited_frames() {
    let recorder = ClientRecorder::new();
    let id = Id::from(1);
    let wanted = ResponseFilter { id: Some(&id), unaddressed: false, unsolicited: AcceptUnsolicited::Responses };
    let mut waiting = pin!(recorder.wait_for_response(0, wanted));
    assert!(waiting.as_mut().now_or_never().is_none());
    receive(&recorder, "starting…");
    assert!(waiting.as_mut().now_or_never().is_none());
    receive(&recorder, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
    assert!(matches!(waiting.await.expect("an answer").unsolicited, Some(UnsolicitedFrame::UnknownId(_))));
}

#[tokio::test]
async fn a_response_answers_only_its_request_and_an_error_without_an_id_only_on_demand() {
    let recorder = ClientRecorder::new();
    let id = Id::from(2);
    for id in 1..3 {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a"}}"#);
        recorder.record(Direction::ClientToServer, request.into());
    }
    receive(&recorder, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    receive(&recorder, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert!(
        recorder
            .find_response(0, ResponseFilter { id: Some(&id), unaddressed: true, unsolicited: AcceptUnsolicited::Any })
            .is_none()
    );
    receive(&recorder, r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#);
    assert!(recorder.find_response(0, by_id(&id)).is_none());
    let found = recorder
        .find_response(0, ResponseFilter { id: None, unaddressed: true, unsolicited: AcceptUnsolicited::None })
        .expect("an error");
    assert!(matches!(found.unsolicited, Some(UnsolicitedFrame::ErrorWithoutId(error)) if error.code == -32700));
}
