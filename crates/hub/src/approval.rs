//! The approval of tool calls.

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::{ApprovalDecision, ApprovalMode, ApprovalRequest, HubServer, RegisteredTool};

/// The tools that the user has always allowed.
#[derive(Debug, Default)]
pub(super) struct SavedApprovals(Mutex<HashSet<(Arc<str>, String)>>);

/// Why a call was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The user denied it.
    ByUser,
    /// There is no approver.
    NoApprover,
    /// This setting denies it.
    BySetting(&'static str),
}

impl SavedApprovals {
    /// Decides about a call: first the config's trust and allow lists, then saved approvals, then the approver.
    ///
    /// # Errors
    /// [`Denial`] is the reason.
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
            _ if self.0.lock().contains(&granted()) => return Ok(()),
            ApprovalMode::NoApprover => return Err(Denial::NoApprover),
            ApprovalMode::DeniedBySetting(setting) => return Err(Denial::BySetting(setting)),
            ApprovalMode::Ask(ask) => ask,
        };
        match ask(ApprovalRequest { tool: tool.clone(), arguments: arguments.cloned() }).await {
            ApprovalDecision::Allow => Ok(()),
            ApprovalDecision::AllowAlways => {
                self.0.lock().insert(granted());
                Ok(())
            }
            ApprovalDecision::Deny => Err(Denial::ByUser),
        }
    }
}
