//! Whether a call may go ahead.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value};

use super::{Approval, Decision, Member, RegisteredTool, Request};

/// The tools that somebody has allowed for good.
#[derive(Debug, Default)]
pub(super) struct Granted(Mutex<HashSet<(Arc<str>, String)>>);

/// Why a call may not go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Somebody said no.
    ByUser,
    /// Nobody was there to ask.
    Unasked,
    /// This setting forbids it.
    By(&'static str),
}

impl Granted {
    /// Decides about a call: trust and lists of the config first, then what was allowed for good, then whoever is asked.
    ///
    /// # Errors
    /// [`Denial`] says who decided.
    pub(super) async fn decide(
        &self,
        approval: &Approval,
        member: &Member,
        tool: &Arc<RegisteredTool>,
        arguments: Option<&Map<String, Value>>,
    ) -> Result<(), Denial> {
        let is_listed = member.always_allow.iter().any(|allowed| *allowed == tool.original);
        let granted = || (tool.server.clone(), tool.original.clone());
        if member.is_trusted || is_listed {
            return Ok(());
        }
        let ask = match approval {
            Approval::Granted => return Ok(()),
            _ if self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&granted()) => return Ok(()),
            Approval::Refused => return Err(Denial::Unasked),
            Approval::Forbidden(setting) => return Err(Denial::By(setting)),
            Approval::Ask(ask) => ask,
        };
        match ask(Request { tool: tool.clone(), arguments: arguments.cloned() }).await {
            Decision::Allow => Ok(()),
            Decision::AllowAlways => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(granted());
                Ok(())
            }
            Decision::Deny => Err(Denial::ByUser),
        }
    }
}
