//! Whether a call may go ahead.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value};

use super::{ApprovalDecision, ApprovalMode, ApprovalRequest, HubServer, RegisteredTool};

/// The tools that somebody has allowed for good.
#[derive(Debug, Default)]
pub(super) struct SavedApprovals(Mutex<HashSet<(Arc<str>, String)>>);

/// Why a call may not go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Somebody said no.
    ByUser,
    /// Nobody was there to ask.
    NoApprover,
    /// This setting forbids it.
    BySetting(&'static str),
}

impl SavedApprovals {
    /// Decides about a call: trust and lists of the config first, then what was allowed for good, then whoever is asked.
    ///
    /// # Errors
    /// [`Denial`] says who decided.
    pub(super) async fn decide(
        &self,
        approval: &ApprovalMode,
        member: &HubServer,
        tool: &Arc<RegisteredTool>,
        arguments: Option<&Map<String, Value>>,
    ) -> Result<(), Denial> {
        let is_listed = member.always_allow.iter().any(|allowed| *allowed == tool.original);
        let granted = || (tool.server.clone(), tool.original.clone());
        if member.is_trusted || is_listed {
            return Ok(());
        }
        let ask = match approval {
            ApprovalMode::AllowAll => return Ok(()),
            _ if self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&granted()) => return Ok(()),
            ApprovalMode::NoApprover => return Err(Denial::NoApprover),
            ApprovalMode::DeniedBySetting(setting) => return Err(Denial::BySetting(setting)),
            ApprovalMode::Ask(ask) => ask,
        };
        match ask(ApprovalRequest { tool: tool.clone(), arguments: arguments.cloned() }).await {
            ApprovalDecision::Allow => Ok(()),
            ApprovalDecision::AllowAlways => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(granted());
                Ok(())
            }
            ApprovalDecision::Deny => Err(Denial::ByUser),
        }
    }
}
