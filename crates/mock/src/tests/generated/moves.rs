//! The moves of clients, valid and invalid.

use std::sync::LazyLock;

use arbitrary::{Arbitrary, Result, Unstructured};
use rehearse_testing::table;
use serde_json::{Map, Value as Json, json};

use super::{
    choice::{Few, mostly_usual, pick},
    script::{Kind, LEGACY, MODERN, ScriptPlan},
};

/// A script, some clients, and their moves in order.
#[derive(Debug, Clone, Arbitrary)]
pub(crate) struct Run {
    pub script: ScriptPlan,
    pub clients: Few<ClientPlan, 1, 3>,
    pub moves: Few<ClientMove, 4, 40>,
}

impl Run {
    /// The same with tasks everywhere.
    pub(crate) fn with_tasks(mut self) -> Run {
        self.script = self.script.with_tasks();
        for client in &mut self.clients.0 {
            client.era = EraPlan::Modern { http: false };
            client.tasks = true;
        }
        self
    }
}

/// A move of one of the clients.
#[derive(Debug, Clone, Arbitrary)]
pub(crate) struct ClientMove {
    pub who: u8,
    #[arbitrary(with = often_to_the_point)]
    pub what: Move,
}

/// Mostly a use of an item or a continuation; otherwise any move.
fn often_to_the_point(u: &mut Unstructured<'_>) -> Result<Move> {
    Ok(match u.int_in_range(0..=2)? {
        0 => {
            let (kind, which, arguments) = u.arbitrary()?;
            Move::Use { kind, which, arguments, extras: u.arbitrary()?, events: u.arbitrary()? }
        }
        3..=4 => Move::Follow { which: u.arbitrary()? },
        5 => Move::Answer { which: u.arbitrary()?, how: u.arbitrary()? },
        6 => Move::Retry { which: u.arbitrary()?, how: u.arbitrary()?, extras: u.arbitrary()? },
        7 => Move::Task { which: u.arbitrary()?, what: u.arbitrary()?, extras: u.arbitrary()? },
        _ => u.arbitrary()?,
    })
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) struct ClientPlan {
    pub era: EraPlan,
    #[arbitrary(with = often)]
    forms: bool,
    urls: bool,
    #[arbitrary(with = often)]
    sampling: bool,
    sampling_tools: bool,
    #[arbitrary(with = often)]
    roots: bool,
    #[arbitrary(with = often)]
    tasks: bool,
}

fn often(u: &mut Unstructured<'_>) -> Result<bool> {
    u.ratio(3, 4)
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum EraPlan {
    Legacy {
        version: u8,
        #[arbitrary(with = mostly_usual)]
        silent: bool,
    },
    Modern {
        http: bool,
    },
}

impl ClientPlan {
    /// The version in which the client speaks.
    pub(crate) fn version(&self) -> &'static str {
        match self.era {
            EraPlan::Legacy { version, .. } => pick(&LEGACY, version).copied().unwrap_or(MODERN),
            EraPlan::Modern { .. } => MODERN,
        }
    }

    /// What the client declares, as far as its version knows it.
    pub(crate) fn capabilities(&self) -> Json {
        let mut all = Map::new();
        let version = self.version();
        let latest = version >= "2025-11-25";
        if version >= "2025-06-18" && (self.forms || self.urls) {
            let mut modes = Map::new();
            if latest && self.urls {
                modes.insert("url".into(), json!({}));
                if self.forms {
                    modes.insert("form".into(), json!({}));
                }
            }
            all.insert("elicitation".into(), modes.into());
        }
        if self.sampling {
            all.insert(
                "sampling".into(),
                if latest && self.sampling_tools { json!({ "tools": {} }) } else { json!({}) },
            );
        }
        if self.roots {
            all.insert("roots".into(), json!({}));
        }
        if self.tasks && version == MODERN {
            all.insert("extensions".into(), json!({ "io.modelcontextprotocol/tasks": {} }));
        }
        all.into()
    }
}

#[derive(Debug, Clone, Arbitrary)]
pub(crate) enum Move {
    Use {
        kind: KindPlan,
        which: u8,
        arguments: Arguments,
        extras: Extras,
        events: u8,
    },
    UseAgain {
        which: u8,
        extras: Extras,
    },
    List {
        kind: KindPlan,
        cursor: Cursor,
        extras: Extras,
    },
    Walk {
        kind: KindPlan,
    },
    Complete {
        which: u8,
        template: bool,
        prefix: u8,
        extras: Extras,
    },
    Simple {
        which: u8,
        extras: Extras,
    },
    Subscribe {
        which: u8,
        undo: bool,
    },
    SetLevel(u8),
    /// What is open is answered as it should be, and what is under way goes on.
    Follow {
        which: u8,
    },
    Go {
        which: u8,
        events: u8,
    },
    TimeOut {
        which: u8,
    },
    Answer {
        which: u8,
        how: Answering,
    },
    Retry {
        which: u8,
        how: Retrying,
        extras: Extras,
    },
    Task {
        which: u8,
        what: TaskMove,
        extras: Extras,
    },
    PendingSubscription {
        filter: u8,
        which: u8,
        extras: Extras,
    },
    StopListening {
        which: u8,
    },
    Cancel {
        which: u8,
    },
    GoAway {
        which: u8,
    },
    Tick(u16),
    Garbage(Garbage),
    Damaged {
        at: u16,
        length: u8,
        with: u8,
    },
    Batch(Few<(u8, u8), 0, 4>),
    Initialize,
    Reset,
    Reload,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum KindPlan {
    Tool,
    ToolAgain,
    Prompt,
    Resource,
    Template,
    Method,
}

impl KindPlan {
    pub(crate) fn kind(self) -> Kind {
        match self {
            KindPlan::Tool | KindPlan::ToolAgain => Kind::Tool,
            KindPlan::Prompt => Kind::Prompt,
            KindPlan::Resource => Kind::Resource,
            KindPlan::Template => Kind::Template,
            KindPlan::Method => Kind::Method,
        }
    }
}

/// What a request has besides its method and its own parameters.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) struct Extras {
    pub id: IdPlan,
    pub token: Token,
    pub level: Option<u8>,
    #[arbitrary(with = mostly_usual)]
    pub meta: MetaPlan,
    #[arbitrary(with = mostly_usual)]
    pub headers: HeadersPlan,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum IdPlan {
    Number,
    Negative,
    Text,
    Awkward,
}

impl IdPlan {
    pub(crate) fn id(self, number: i64) -> Json {
        match self {
            IdPlan::Number => number.into(),
            IdPlan::Negative => (-number).into(),
            IdPlan::Text => number.to_string().into(),
            IdPlan::Awkward => format!("\"\\{number}\n\u{2028}").into(),
        }
    }
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum Token {
    None,
    Number,
    Text,
    Wrong,
}

#[derive(Debug, Clone, Copy, Arbitrary, Default)]
pub(crate) enum MetaPlan {
    #[default]
    Complete,
    None,
    NoCapabilities,
    NullVersion,
    UnknownVersion,
    LegacyVersion,
    WrongLevel,
    NoObject,
}

#[derive(Debug, Clone, Copy, Arbitrary, Default, PartialEq, Eq)]
pub(crate) enum HeadersPlan {
    #[default]
    Right,
    NoVersion,
    NoMethod,
    OtherMethod,
    NoName,
    OtherName,
    Twice,
    UnknownVersion,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum Arguments {
    None,
    Empty,
    Right,
    RightAgain,
    Text,
    WrongType,
    Null,
    List,
    Deep,
}

impl Arguments {
    pub(crate) fn to_json(self) -> Option<Json> {
        Some(match self {
            Arguments::None => return None,
            Arguments::Empty => json!({}),
            Arguments::Right | Arguments::RightAgain => json!({ "a": "x" }),
            Arguments::Text => json!({ "a": "x\"é\n", "id": "1" }),
            Arguments::WrongType => json!({ "a": 5 }),
            Arguments::Null => Json::Null,
            Arguments::List => json!(["a"]),
            Arguments::Deep => json!({ "a": "x", "deep": (0..200).fold(json!(1), |inner, _| json!([inner])) }),
        })
    }
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum Cursor {
    None,
    Next,
    Unknown,
    Empty,
    WrongType,
    Null,
}

#[derive(Debug, Clone, Copy, Arbitrary, PartialEq, Eq)]
pub(crate) enum Answering {
    Rightly,
    Declining,
    Refusing,
    Wrongly(u8),
    UnknownId,
    TextId,
    Twice,
}

#[derive(Debug, Clone, Copy, Arbitrary, PartialEq, Eq)]
pub(crate) enum Retrying {
    Rightly,
    WithMore,
    WithoutAnswers,
    WithoutState,
    Partly,
    Wrongly(u8),
    /// The byte that is so far from the end of the state is another one.
    Tampered(u8, u8),
    OnAnotherRequest,
    WithAnotherArgument,
    WrongStateType,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) enum TaskMove {
    Get,
    Answer(Answering),
    AnswerUnknown,
    UpdateWithoutAnswers,
    Cancel,
    GetUnknown,
}

#[derive(Debug, Clone, Arbitrary)]
pub(crate) enum Garbage {
    Known(u8),
    Bytes(Vec<u8>),
}

/// Frames that are wrong, or odd but right.
pub(crate) static FRAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let frames = table::rows(include_str!("frames.txt"), "frames").into_iter().map(|[frame]| frame);
    [String::new()].into_iter().chain(frames).collect()
});
