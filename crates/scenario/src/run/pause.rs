//! How long a server works on a call without a report of its progress.

use std::time::Duration;

use serde_json::Value as Json;

use rehearse_protocol::{Direction, Frame, Message};

/// The longest time from the start of a call to a report of its progress, between two of them, and to the end of the
/// call. The end is the answer or the cancellation; without one, the last frame. `None` without a call.
pub(crate) fn longest_pause(frames: &[Frame]) -> Option<Duration> {
    let (mut longest, mut call) = (None, None);
    let mut last = Duration::ZERO;
    for frame in frames {
        let token = |params: Option<&serde_json::value::RawValue>, pointer: &str| {
            let params = params.and_then(|params| serde_json::from_str::<Json>(params.get()).ok());
            params.and_then(|params| params.pointer(pointer).cloned())
        };
        let is_over = match (frame.direction, frame.message(), &call) {
            (Direction::ClientToServer, Ok(Message::Request(request)), _) if request.method == "tools/call" => {
                call = Some((request.id, token(request.params, "/_meta/progressToken")));
                last = frame.at;
                continue;
            }
            (Direction::ServerToClient, Ok(Message::Notification(note)), Some((_, Some(of))))
                if note.method == "notifications/progress"
                    && token(note.params, "/progressToken").as_ref() == Some(of) =>
            {
                false
            }
            (Direction::ServerToClient, Ok(Message::Response(response)), Some((id, _))) => {
                if response.id.as_ref() != Some(id) {
                    continue;
                }
                true
            }
            (Direction::ClientToServer, Ok(Message::Notification(note)), Some(_)) => {
                if note.method != "notifications/cancelled" {
                    continue;
                }
                true
            }
            _ => continue,
        };
        longest = longest.max(Some(frame.at.saturating_sub(last)));
        last = frame.at;
        if is_over {
            call = None;
        }
    }
    let end = frames.last().filter(|_| call.is_some()).map(|frame| frame.at.saturating_sub(last));
    longest.max(end)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The longest pause in messages at these seconds.
    fn pause(messages: &[(u64, Direction, Json)]) -> Option<u64> {
        let frame = |(at, direction, json): &(u64, Direction, Json)| {
            let mut json = json.clone();
            json["jsonrpc"] = "2.0".into();
            Frame::new(*direction, Duration::from_secs(*at), json.to_string().into())
        };
        longest_pause(&messages.iter().map(frame).collect::<Vec<_>>()).map(|pause| pause.as_secs())
    }

    #[test]
    fn a_pause_is_measured_from_the_start_to_the_end_of_a_call() {
        use Direction::{ClientToServer as Client, ServerToClient as Server};
        let request = |at, id: u64, method: &str| {
            let params = json!({ "_meta": { "progressToken": id } });
            (at, Client, json!({ "id": id, "method": method, "params": params }))
        };
        let report = |at, token: u64| {
            let params = json!({ "progressToken": token, "progress": at });
            (at, Server, json!({ "method": "notifications/progress", "params": params }))
        };
        let answer = |at, id: u64| (at, Server, json!({ "id": id, "result": {} }));
        let cancel = |at| (at, Client, json!({ "method": "notifications/cancelled", "params": {} }));
        let call = || request(10, 1, "tools/call");
        assert_eq!(pause(&[call(), report(13, 1), report(15, 1), answer(16, 1)]), Some(3));
        assert_eq!(pause(&[call(), report(11, 1), report(16, 1), answer(17, 1)]), Some(5));
        assert_eq!(pause(&[call(), report(11, 1), answer(18, 1)]), Some(7));
        // Reports of other requests, and what comes after the end.
        assert_eq!(pause(&[call(), report(11, 2), answer(12, 2), answer(14, 1), report(30, 1)]), Some(4));
        assert_eq!(pause(&[call(), report(11, 1), cancel(13), answer(40, 1)]), Some(2));
        // A list after the call, which is slow.
        assert_eq!(pause(&[call(), answer(11, 1), request(11, 2, "tools/list"), answer(60, 2)]), Some(1));
        assert_eq!(pause(&[request(11, 2, "tools/list"), answer(60, 2)]), None);
        assert_eq!(pause(&[call(), report(11, 1), report(19, 1)]), Some(8));
    }
}
