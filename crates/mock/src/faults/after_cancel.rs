//! The answer comes although the client has cancelled the request.

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, ResponsePart, options};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "after_cancel",
    summary: "The answer comes although the client has cancelled the request; on HTTP in the legacy versions only, \
              since closing the response is what cancels in 2026-07-28",
    options: &[],
    example: "after_cancel: {}",
    transports: EVERYWHERE,
    read: |node| options::read(&INFO, node).map(|_| Fault::AfterCancel(AfterCancel)),
};

/// The one fault that does not change the answer: the sender checks the chain for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfterCancel;

impl AfterCancel {
    pub(super) fn apply(self, part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        out.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Chain,
        tests::{apply, error, fault},
    };

    #[test]
    fn the_answer_is_as_it_is_and_cannot_be_cancelled() {
        assert_eq!(apply("after_cancel").len(), 7);
        let chain = |text: &str| Chain::new(None, fault(text).expect(text).into_iter().map(|it| (it, 1)));
        assert!(chain("[drip, after_cancel]").ignores_cancellation() && !chain("drip").ignores_cancellation());
        assert!(error("after_cancel: { x: 1 }").contains("has no key `x`"));
    }
}
