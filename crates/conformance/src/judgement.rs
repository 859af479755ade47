//! What a judge says of a check.

use rehearse_report::check::CheckVerdict;

use crate::{EventRef, Level, Message, call::Call};

/// One violation of a rule.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What violates it: the name of a tool, a URI, a method.
    pub subject: Option<String>,
    /// What was found, as the end of "found …".
    pub found: String,
    /// The frames that show it, in order.
    pub places: Vec<EventRef>,
    /// The level, if it is another one than that of the check.
    pub level: Option<Level>,
    /// If it is an error with another code than the right one: the code, and the right one.
    pub wrong_code: Option<(i64, i64)>,
    /// The SDK that behaves like this, whatever the author of the peer does.
    pub sdk: Option<&'static str>,
    /// Whether it is that an answer is not there.
    pub(crate) awaits_answer: bool,
}

/// What a judge has found so far.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// How often the rule was exercised.
    pub exercised: usize,
    /// How often by messages that are there: nothing that may come later changes it.
    pub settled: usize,
    /// Every violation.
    pub violations: Vec<Violation>,
    /// Why the rule could not be exercised.
    pub untested: Option<String>,
}

/// The verdict on a check with its reasons.
#[derive(Clone, Debug)]
pub struct CheckOutcome {
    /// The verdict.
    pub verdict: CheckVerdict,
    /// The level at which it was judged; `None` if the rule is not in the version.
    pub level: Option<Level>,
    /// Why it is not applicable or not tested, or whether another run has confirmed it.
    pub reason: Option<String>,
    /// What the judge found.
    pub judgement: Judgement,
    /// The check whose violation is the cause of all that the judge found.
    pub cause: Option<&'static str>,
    /// Whether it is not tried in this version because it is in another one.
    pub is_left_out: bool,
}

impl CheckOutcome {
    /// A verdict on a check that was not judged.
    pub fn without(verdict: CheckVerdict, reason: String, level: Option<Level>) -> CheckOutcome {
        CheckOutcome {
            verdict,
            level,
            reason: Some(reason),
            judgement: Judgement::default(),
            cause: None,
            is_left_out: false,
        }
    }
}

impl Judgement {
    /// Counts one exercise of the rule; a violation if it does not hold.
    pub fn check<S: Into<String>>(&mut self, holds: bool, message: &Message<'_>, found: impl FnOnce() -> S) {
        self.check_at(holds, None, vec![message.place], found);
        self.settled += 1;
    }

    /// As [`Judgement::check`], of something with a name.
    pub fn check_subject<S: Into<String>>(
        &mut self,
        holds: bool,
        subject: &str,
        message: &Message<'_>,
        found: impl FnOnce() -> S,
    ) {
        self.check_at(holds, Some(subject), vec![message.place], found);
        self.settled += 1;
    }

    /// As [`Judgement::check`], of an answer. What was found is the answer, in a few words.
    pub fn check_call(&mut self, holds: bool, call: &Call<'_>) {
        self.check_answer(holds, call, || call.answer_text());
    }

    /// As [`Judgement::check_call`], of an answer that must be an error with one of these codes.
    pub fn check_code(&mut self, codes: &[i64], call: &Call<'_>) {
        let code = call.error_code();
        let holds = code.is_some_and(|code| codes.contains(&code));
        self.check_call(holds, call);
        if let Some(violation) = self.violations.last_mut().filter(|_| !holds) {
            violation.wrong_code = code.zip(codes.first().copied());
        }
    }

    /// As [`Judgement::check`], of an answer. The subject is the case of the probe.
    pub fn check_answer<S: Into<String>>(&mut self, holds: bool, call: &Call<'_>, found: impl FnOnce() -> S) {
        self.check_at(holds, call.request.case, call.places(), found);
        self.settle(holds, call.response.is_some());
    }

    /// Says of the last exercise whether the answer that it is about is there.
    pub(crate) fn settle(&mut self, holds: bool, is_answered: bool) {
        self.settled += usize::from(is_answered);
        self.violations.last_mut().filter(|_| !holds).into_iter().for_each(|it| it.awaits_answer = !is_answered);
    }

    /// As [`Judgement::check`], with all that can be said.
    pub fn check_at<S: Into<String>>(
        &mut self,
        holds: bool,
        subject: Option<&str>,
        places: Vec<EventRef>,
        found: impl FnOnce() -> S,
    ) {
        self.exercised += 1;
        if !holds {
            let (level, wrong_code, sdk) = (None, None, None);
            let (subject, found) = (subject.map(ToOwned::to_owned), found().into());
            self.violations.push(Violation { subject, found, places, level, wrong_code, sdk, awaits_answer: false });
        }
    }

    /// Whether there is a violation by something of this name.
    pub fn has_found(&self, name: &str) -> bool {
        self.violations.iter().any(|it| it.subject.as_deref() == Some(name))
    }

    /// Changes the level of the last violation, if there is one.
    pub fn at_level(&mut self, level: Level) {
        if let Some(last) = self.violations.last_mut() {
            last.level = Some(level);
        }
    }

    /// Changes the level of the last violation in a case that has another one.
    pub fn at_level_if(&mut self, is_other: bool, level: Level) {
        if is_other {
            self.at_level(level);
        }
    }

    /// Changes the level of all violations so far.
    pub fn all_at_level(&mut self, level: Level) {
        self.violations.iter_mut().for_each(|it| it.level = Some(level));
    }

    /// Says why the rule could not be exercised. The first reason counts.
    pub fn untested(&mut self, reason: impl Into<String>) {
        self.untested.get_or_insert_with(|| reason.into());
    }
}

impl Call<'_> {
    /// The frames of the call: what was sent, and the answer or the head of the HTTP response.
    pub fn places(&self) -> Vec<EventRef> {
        let mut places = vec![self.request.place];
        match (self.response, self.http.and_then(|http| http.response)) {
            (Some(response), _) => places.push(response.place),
            (None, Some(head)) => places.push(head),
            (None, None) => {}
        }
        places
    }

    /// As [`Call::places`], with more.
    pub fn places_with(&self, more: impl IntoIterator<Item = EventRef>) -> Vec<EventRef> {
        self.places().into_iter().chain(more).collect()
    }
}
