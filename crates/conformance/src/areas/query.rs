//! Queries of judges: the things that a rule is about, and what must hold of each.

use std::iter::once;

use serde_json::Value;

use crate::{Ask, Call, Connection, EventRef, HttpExchange, Judgement, Message};

/// One thing that a rule is about.
pub(super) trait Subject {
    /// What the rule looks at.
    type Value: ?Sized;

    fn value(&self) -> &Self::Value;

    /// Its name, where it stands, and whether it is a message, which nothing changes that comes later.
    fn about(&self) -> (Option<&str>, Vec<EventRef>, bool);

    fn name(&self) -> Option<&str> {
        self.about().0
    }

    fn places(&self) -> Vec<EventRef> {
        self.about().1
    }
}

macro_rules! subject {
    ([$($generics:tt)*] $type:ty, $value:ty, |$it:ident| $looked:expr, $about:expr) => {
        impl<$($generics)*> $crate::areas::query::Subject for $type {
            type Value = $value;

            fn value(&self) -> &$value {
                let $it = self;
                $looked
            }

            fn about(&self) -> (Option<&str>, Vec<$crate::EventRef>, bool) {
                let $it = self;
                $about
            }
        }
    };
}

pub(super) use subject;

/// Something with another name than its own.
pub(super) struct Named<'e, T>(Option<&'e str>, T);

subject!(['e] Call<'e>, Call<'e>, |it| it, (it.request.case, Call::places(it), it.response.is_some()));
subject!(['t] Message<'t>, Message<'t>, |it| it, (None, vec![it.place], true));
subject!(['t] HttpExchange<'t>, HttpExchange<'t>, |it| it, (None, HttpExchange::places(it), false));
subject!(['t] (&Connection<'t>, &HttpExchange<'t>), HttpExchange<'t>, |it| it.1, (None, it.1.places(), false));
// A result, or a part of it.
subject!(['e] (Call<'e>, &Value), Value, |it| it.1, (None, it.0.places(), false));
// A value in the params of a request.
subject!(['t] (&Message<'t>, &Value), Value, |it| it.1, (None, vec![it.0.place], true));
// A request with a name.
subject!(['t] (&str, &Message<'t>), Message<'t>, |it| it.1, (Some(it.0), vec![it.1.place], true));
// What an exchange says, with the case of the probe.
subject!(['t, T] (&HttpExchange<'t>, T), T, |it| &it.1, (it.0.case, it.0.places(), false));
// An item of a list with its name, or a part of it.
subject!(['e] (&Value, &str, Call<'e>), Value, |it| it.0, (Some(it.1), it.2.places(), false));
subject!(['e] Ask<'e>, Ask<'e>, |it| it, (Some(it.method()), it.places(), false));
subject!(['e, T: Subject] Named<'e, T>, T::Value, |it| it.1.value(), (it.0, it.1.places(), false));
subject!([T: Subject] &T, T::Value, |it| T::value(it), T::about(it));

/// What must hold of each thing.
pub(super) trait Query: Iterator<Item: Subject> + Sized {
    /// Checks each; `found` says what was found where the rule does not hold.
    fn must<S: Into<String>>(
        self,
        j: &mut Judgement,
        holds: impl Fn(&<Self::Item as Subject>::Value) -> bool,
        found: impl Fn(&<Self::Item as Subject>::Value) -> S,
    ) {
        for it in self {
            let (name, places, is_settled) = it.about();
            let holds = holds(it.value());
            j.check_at(holds, name, places, || found(it.value()));
            j.settle(holds, is_settled);
        }
    }

    /// As [`Query::must`], with one finding for each name, however often it comes.
    fn must_once<S: Into<String>>(
        self,
        j: &mut Judgement,
        holds: impl Fn(&<Self::Item as Subject>::Value) -> bool,
        found: impl Fn(&<Self::Item as Subject>::Value) -> S,
    ) {
        for it in self {
            if !it.name().is_some_and(|name| j.has_found(name)) {
                once(it).must(j, &holds, &found);
            }
        }
    }

    /// Checks each; `wrong` says what is wrong with it.
    fn must_not(self, j: &mut Judgement, wrong: impl Fn(&<Self::Item as Subject>::Value) -> Option<String>) {
        for it in self {
            let wrong = wrong(it.value());
            once(it).must(j, |_| wrong.is_none(), |_| wrong.clone().unwrap_or_default());
        }
    }

    /// Checks each answer. What was found is the answer, in a few words.
    fn must_get<'e>(self, j: &mut Judgement, holds: impl Fn(&Call<'e>) -> bool)
    where
        Self::Item: Subject<Value = Call<'e>>,
    {
        self.must(j, holds, Call::answer_text);
    }
}

impl<I: Iterator<Item: Subject>> Query for I {}

/// What is part of a call.
pub(super) trait OfCall<'e> {
    fn call(&self) -> &Call<'e>;
}

macro_rules! of_call {
    ($type:ty, $call:tt) => {
        impl<'e> OfCall<'e> for $type {
            fn call(&self) -> &Call<'e> {
                &self.$call
            }
        }
    };
}

of_call!((Call<'e>, &Value), 0);
of_call!((&Value, &str, Call<'e>), 2);

impl<'e> OfCall<'e> for Call<'e> {
    fn call(&self) -> &Call<'e> {
        self
    }
}

/// Calls, or what is part of them.
pub(super) trait Calls<'e>: Iterator<Item: OfCall<'e>> + Sized {
    /// Those of normal work.
    fn plain(self) -> impl Iterator<Item = Self::Item> {
        self.filter(|it| it.call().request.case.is_none())
    }

    /// Those with a response.
    fn responded(self) -> impl Iterator<Item = Self::Item> {
        self.filter(|it| it.call().response.is_some())
    }

    /// Those with a response that have reached their method.
    fn reached(self) -> impl Iterator<Item = Self::Item> {
        self.responded().filter(|it| !it.call().is_refused_elsewhere())
    }

    /// Names each by its call.
    fn by(self, name: impl Fn(&Call<'e>) -> Option<&'e str>) -> impl Iterator<Item = Named<'e, Self::Item>> {
        self.map(move |it| Named(name(it.call()), it))
    }

    /// Names each by its method.
    fn by_method(self) -> impl Iterator<Item = Named<'e, Self::Item>> {
        self.by(|call| Some(call.method()))
    }

    /// What the client sent.
    fn requests(self) -> impl Iterator<Item = &'e Message<'e>> {
        self.map(|it| it.call().request)
    }

    /// What the client sent, named by the method.
    fn requests_by_method(self) -> impl Iterator<Item = (&'e str, &'e Message<'e>)> {
        self.map(|it| (it.call().method(), it.call().request))
    }
}

impl<'e, I: Iterator<Item: OfCall<'e>>> Calls<'e> for I {}

/// HTTP exchanges.
pub(super) trait Exchanges<'e, 't: 'e>: Iterator<Item = &'e HttpExchange<'t>> + Sized {
    /// Names each by the case of the probe.
    fn by_case(self) -> impl Iterator<Item = Named<'e, &'e HttpExchange<'t>>> {
        self.map(|http| Named(http.case, http))
    }
}

impl<'e, 't: 'e, I: Iterator<Item = &'e HttpExchange<'t>>> Exchanges<'e, 't> for I {}

/// Messages.
pub(super) trait Messages<'e, 't: 'e>: Iterator<Item = &'e Message<'t>> + Sized {
    /// A value in each, by JSON pointer; null if there is none.
    fn pointer(self, pointer: &str) -> impl Iterator<Item = (&'e Message<'t>, &'e Value)> {
        self.map(move |message| (message, message.at(pointer)))
    }
}

impl<'e, 't: 'e, I: Iterator<Item = &'e Message<'t>>> Messages<'e, 't> for I {}

/// A JSON value in an answer.
pub(super) trait Part<'e>: Subject<Value = Value> + Sized {
    fn json(&self) -> &'e Value;

    /// Another value of the same call and name.
    fn with(&self, value: &'e Value) -> Self;
}

macro_rules! part {
    ([$($generics:tt)*] $type:ty, |$it:ident| $json:expr, |$value:ident| $with:expr) => {
        impl<'e, $($generics)*> Part<'e> for $type {
            fn json(&self) -> &'e Value {
                let $it = self;
                $json
            }

            fn with(&self, $value: &'e Value) -> Self {
                let $it = self;
                $with
            }
        }
    };
}

part!([] (Call<'e>, &'e Value), |it| it.1, |value| (it.0, value));
part!([] (&'e Value, &'e str, Call<'e>), |it| it.0, |value| (value, it.1, it.2));
part!([T: Part<'e>] Named<'e, T>, |it| it.1.json(), |value| Named(it.0, it.1.with(value)));

/// Values in answers.
pub(super) trait Parts<'e>: Iterator<Item: Part<'e>> + Sized {
    /// A member of each; null if it has none.
    fn at(self, key: &str) -> impl Iterator<Item = Self::Item> {
        self.map(move |it| it.with(&it.json()[key]))
    }

    /// The member of those that have it.
    fn member(self, key: &str) -> impl Iterator<Item = Self::Item> {
        self.filter_map(move |it| Some(it.with(it.json().get(key)?)))
    }

    /// The elements of a member that is an array.
    fn each(self, key: &str) -> impl Iterator<Item = Self::Item> {
        self.flat_map(move |it| elements(&it.json()[key]).map(move |value| it.with(value)))
    }

    /// Those of which something holds.
    fn having(self, holds: impl Fn(&Value) -> bool) -> impl Iterator<Item = Self::Item> {
        self.filter(move |it| holds(it.json()))
    }
}

impl<'e, I: Iterator<Item: Part<'e>>> Parts<'e> for I {}

/// The elements of an array; none of another value.
pub(super) fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
