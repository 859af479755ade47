//! The judges, one file for each area of the specification.

use crate::{Case, Evidence, Judgement, Material};

pub(crate) mod apps;
mod ask;
pub(crate) mod auth;
mod cache;
mod cancel;
mod changes;
mod client;
mod common;
mod comp;
mod discover;
mod era;
mod gateway;
mod hdr;
mod http;
mod io;
mod issuer;
mod life;
mod log;
mod lsse;
mod meta;
mod mrtr;
mod page;
mod ping;
mod progress;
mod prompts;
mod query;
mod res;
mod result;
mod rpc;
mod safety;
mod schema;
mod skills;
mod stateless;
mod sub;
mod task;
mod tasks;
mod taskx;
mod tool_schema;
mod tools;
mod ws;

pub(crate) use client::answered;
pub(crate) use common::{is_base64, shown};
pub use gateway::is_named;

/// Judges one check.
pub(crate) type Judge = fn(&Evidence<'_>, &mut Judgement);

/// The checks of one area.
pub(crate) struct Area {
    #[cfg(test)]
    pub(crate) name: &'static str,
    /// One JSON object a line.
    pub(crate) checks: &'static str,
    /// In one table or several.
    judges: &'static [&'static [(&'static str, Judge)]],
    /// What the area's probes send.
    pub(crate) cases: fn(&Material) -> Vec<Case>,
}

impl Area {
    /// The judge of each check.
    pub(crate) fn judges(&self) -> impl Iterator<Item = (&'static str, Judge)> {
        self.judges.iter().flat_map(|table| table.iter().copied())
    }
}

macro_rules! area {
    ($name:ident) => {
        Area { cases: $name::cases, ..area!($name without cases) }
    };
    ($name:ident without cases) => {
        Area {
            #[cfg(test)]
            name: stringify!($name),
            checks: include_str!(concat!("../../checks/", stringify!($name), ".jsonl")),
            judges: &[$name::JUDGES],
            cases: |_| Vec::new(),
        }
    };
    (client $name:ident) => {
        Area {
            #[cfg(test)]
            name: concat!("client-", stringify!($name)),
            checks: include_str!(concat!("../../checks/client-", stringify!($name), ".jsonl")),
            judges: &[client::$name::JUDGES],
            cases: |_| Vec::new(),
        }
    };
}

/// Every area, in the order of reports.
pub(crate) const ALL: &[Area] = &[
    area!(rpc),
    area!(meta),
    Area { judges: &[schema::JUDGES, schema::SHAPES], ..area!(schema without cases) },
    area!(life),
    area!(discover),
    area!(result without cases),
    area!(ping),
    area!(cache without cases),
    area!(page),
    area!(tools),
    area!(res),
    area!(prompts),
    area!(comp),
    area!(log),
    area!(progress),
    area!(cancel),
    area!(sub without cases),
    area!(mrtr without cases),
    area!(ask without cases),
    Area { judges: http::TABLES, ..area!(http) },
    area!(hdr),
    area!(lsse without cases),
    area!(io),
    area!(tasks),
    area!(taskx),
    area!(ws without cases),
    area!(skills),
    area!(apps without cases),
    area!(era),
    area!(auth without cases),
    area!(safety without cases),
    area!(issuer without cases),
    area!(gateway without cases),
    area!(client rpc),
    area!(client life),
    area!(client list),
    area!(client tools),
    area!(client res),
    area!(client log),
    area!(client cancel),
    area!(client ping),
    area!(client ask),
    area!(client mrtr),
    area!(client sub),
    area!(client tasks),
    area!(client skills),
    area!(client apps),
    area!(client modern),
    area!(client era),
    area!(client http),
    area!(client sse),
    area!(client lsse),
    area!(client io),
    area!(client ws),
    area!(client hdr),
    Area { judges: client::auth::TABLES, ..area!(client auth) },
    area!(client robust),
];

/// What the probes of all areas send to this server, in the order of the areas.
pub fn cases(material: &Material) -> Vec<Case> {
    ALL.iter().flat_map(|area| (area.cases)(material)).collect()
}
